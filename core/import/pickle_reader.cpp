// SPDX-License-Identifier: MIT
#include "core/import/pickle_reader.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <stdexcept>

#include "core/base/bits.h"

namespace hw::core {
namespace {

using Kind = PickleDocument::Kind;

struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What would run code, by its name in Python's pickletools.
const char* codeOf(unsigned char opcode) {
    switch (opcode) {
        case 'c':
            return "GLOBAL";
        case 0x93:
            return "STACK_GLOBAL";
        case 'R':
            return "REDUCE";
        case 'b':
            return "BUILD";
        case 'i':
            return "INST";
        case 'o':
            return "OBJ";
        case 0x81:
            return "NEWOBJ";
        case 0x92:
            return "NEWOBJ_EX";
        case 'P':
            return "PERSID";
        case 'Q':
            return "BINPERSID";
        case 0x82:
            return "EXT1";
        case 0x83:
            return "EXT2";
        case 0x84:
            return "EXT4";
        default:
            return nullptr;
    }
}

}  // namespace

// The stack machine that a pickle is a program for (protocols 0 to 5, builtin values only). It has
// no recursion: depth costs stack entries, which are bounded.
class PickleMachine {
public:
    PickleMachine(TextSource& source, const PickleLimits& limits)
        : source_(source), limits_(limits) {}

    PickleDocument run() {
        for (;;) {
            const unsigned char opcode = byte();
            if (opcode == '.') break;
            if (!scalar(opcode) && !text(opcode) && !container(opcode) && !memory(opcode))
                refuse(opcode);
        }
        document_.root_ = pop();
        return std::move(document_);
    }
    std::int64_t position() const { return position_; }

private:
    [[noreturn]] void refuse(unsigned char opcode) const {
        if (const char* name = codeOf(opcode))
            throw Refused(std::string("it wants to run code (") + name +
                          "), which a memory snapshot never needs");
        std::array<char, 8> hex{};
        std::snprintf(hex.data(), hex.size(), "0x%02x", opcode);
        throw Refused(std::string("unknown pickle instruction ") + hex.data());
    }

    // --- input

    unsigned char byte() {
        if (at_ == filled_) {
            filled_ = source_.read(buffer_.data(), buffer_.size());
            at_ = 0;
            if (filled_ == 0)
                throw Refused(source_.error().empty() ? "it ends early" : source_.error());
        }
        ++position_;
        return static_cast<unsigned char>(buffer_[at_++]);
    }
    std::uint64_t number(int bytes) {
        std::uint64_t value = 0;
        for (int i = 0; i < bytes; ++i) value |= std::uint64_t{byte()} << (8 * i);
        return value;
    }
    // Grows with what is really there: a length that lies cannot take memory.
    std::string bytes(std::uint64_t length) {
        charge(length);
        std::string result;
        for (std::uint64_t i = 0; i < length; ++i) result.push_back(static_cast<char>(byte()));
        return result;
    }
    std::string line() {
        std::string result;
        for (char c = static_cast<char>(byte()); c != '\n'; c = static_cast<char>(byte())) {
            charge(1);
            result.push_back(c);
        }
        if (!result.empty() && result.back() == '\r') result.pop_back();
        return result;
    }
    void charge(std::uint64_t bytes) {
        if (bytes > limits_.bytes - used_) throw Refused("it holds more than can be read");
        used_ += bytes;
    }

    // --- values

    PickleRef make(Kind kind, std::int64_t payload = 0) {
        if (document_.values_.size() >= limits_.values)
            throw Refused("it holds more values than can be read");
        charge(sizeof(PickleDocument::Value));
        document_.values_.push_back({kind, payload});
        return static_cast<PickleRef>(document_.values_.size() - 1);
    }
    PickleRef makeText(Kind kind, std::string text) {
        charge(sizeof(std::string));
        document_.texts_.push_back(std::move(text));
        return make(kind, static_cast<std::int64_t>(document_.texts_.size()) - 1);
    }
    PickleRef makeContainer(Kind kind, std::vector<PickleRef> children) {
        charge(sizeof(std::vector<PickleRef>) + children.size() * sizeof(PickleRef));
        document_.children_.push_back(std::move(children));
        return make(kind, static_cast<std::int64_t>(document_.children_.size()) - 1);
    }
    PickleRef makeLong(std::string littleEndian) {
        if (littleEndian.size() > 8) return makeText(Kind::BigInt, std::move(littleEndian));
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < littleEndian.size(); ++i)
            value |= std::uint64_t{static_cast<unsigned char>(littleEndian[i])} << (8 * i);
        if (const std::size_t n = littleEndian.size();
            n > 0 && n < 8 && (static_cast<unsigned char>(littleEndian.back()) & 0x80) != 0)
            value |= ~std::uint64_t{0} << (8 * n);
        return make(Kind::Int, static_cast<std::int64_t>(value));
    }
    PickleRef makeDecimal(std::string text) {
        if (text == "00" || text == "01") return make(Kind::Bool, text == "01");
        if (!text.empty() && text.back() == 'L') text.pop_back();
        std::int64_t value = 0;
        const char* end = text.data() + text.size();
        const auto [stop, failure] = std::from_chars(text.data(), end, value);
        if (failure == std::errc{} && stop == end) return make(Kind::Int, value);
        std::uint64_t wide = 0;
        const auto [wideStop, wideFailure] = std::from_chars(text.data(), end, wide);
        if (wideFailure == std::errc{} && wideStop == end)
            return make(Kind::Int, static_cast<std::int64_t>(wide));
        // Protocol 2 writes what is beyond 64 bits as bytes: here too it is a number out of range.
        const std::size_t digits = text.find_first_not_of('-');
        if (digits > 1 || text.find_first_not_of("0123456789", digits) != std::string::npos)
            throw Refused("a number is none");
        return makeText(Kind::BigInt, std::string(9, '\xff'));
    }

    void push(PickleRef value) {
        if (stack_.size() >= limits_.stack) throw Refused("it nests deeper than can be read");
        stack_.push_back(value);
    }
    PickleRef pop() {
        const PickleRef value = top();
        stack_.pop_back();
        return value;
    }
    PickleRef top() const {
        if (stack_.size() <= (marks_.empty() ? 0 : marks_.back()))
            throw Refused("it takes a value that is not there");
        return stack_.back();
    }
    std::vector<PickleRef> popToMark() {
        if (marks_.empty()) throw Refused("it takes a mark that is not there");
        const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
        std::vector<PickleRef> values(from, stack_.end());
        stack_.erase(from, stack_.end());
        marks_.pop_back();
        return values;
    }

    // --- instructions, by group; false: not of this group

    bool scalar(unsigned char opcode) {
        switch (opcode) {
            case 'N':
                push(make(Kind::None));
                return true;
            case 0x88:
            case 0x89:
                push(make(Kind::Bool, opcode == 0x88));
                return true;
            case 'K':
                push(make(Kind::Int, byte()));
                return true;
            case 'M':
                push(make(Kind::Int, static_cast<std::int64_t>(number(2))));
                return true;
            case 'J':
                push(make(Kind::Int, static_cast<std::int32_t>(number(4))));
                return true;
            case 0x8a:
                push(makeLong(bytes(byte())));
                return true;
            case 0x8b:
                push(makeLong(bytes(number(4))));
                return true;
            case 'I':
            case 'L':
                push(makeDecimal(line()));
                return true;
            case 'F':
                push(
                    make(Kind::Float, bitCast<std::int64_t>(std::strtod(line().c_str(), nullptr))));
                return true;
            case 'G':
                number(8);  // a snapshot's figures are whole numbers: its value is not kept
                push(make(Kind::Float));
                return true;
            default:
                return false;
        }
    }

    bool text(unsigned char opcode) {
        switch (opcode) {
            case 0x8c:
            case 'U':
                push(makeText(Kind::Text, bytes(byte())));
                return true;
            case 'X':
            case 'T':
                push(makeText(Kind::Text, bytes(number(4))));
                return true;
            case 0x8d:
                push(makeText(Kind::Text, bytes(number(8))));
                return true;
            case 'V':
                push(makeText(Kind::Text, line()));
                return true;
            case 'S': {
                std::string quoted = line();
                if (quoted.size() < 2 || quoted.front() != quoted.back())
                    throw Refused("a text has no quotes");
                push(makeText(Kind::Text, quoted.substr(1, quoted.size() - 2)));
                return true;
            }
            case 'C':
                push(makeText(Kind::Bytes, bytes(byte())));
                return true;
            case 'B':
                push(makeText(Kind::Bytes, bytes(number(4))));
                return true;
            case 0x8e:
            case 0x96:
                push(makeText(Kind::Bytes, bytes(number(8))));
                return true;
            default:
                return false;
        }
    }

    bool container(unsigned char opcode) {
        switch (opcode) {
            case ']':
            case ')':
                push(makeContainer(Kind::List, {}));
                return true;
            case '}':
                push(makeContainer(Kind::Dict, {}));
                return true;
            case 'l':
            case 't':
                push(makeContainer(Kind::List, popToMark()));
                return true;
            case 'd': {
                auto pairs = popToMark();
                if (pairs.size() % 2 != 0) throw Refused("a key has no value");
                push(makeContainer(Kind::Dict, std::move(pairs)));
                return true;
            }
            case 0x85:
            case 0x86:
            case 0x87: {
                std::vector<PickleRef> values(opcode - 0x84u);
                for (std::size_t i = values.size(); i-- > 0;) values[i] = pop();
                push(makeContainer(Kind::List, std::move(values)));
                return true;
            }
            case 'a':
                extend(Kind::List, {pop()});
                return true;
            case 'e':
                extend(Kind::List, popToMark());
                return true;
            case 's': {
                const PickleRef value = pop(), key = pop();
                extend(Kind::Dict, {key, value});
                return true;
            }
            case 'u':
                extend(Kind::Dict, popToMark());
                return true;
            default:
                return false;
        }
    }

    void extend(Kind kind, const std::vector<PickleRef>& values) {
        const PickleDocument::Value& target = document_.values_[top()];
        if (target.kind != kind || (kind == Kind::Dict && values.size() % 2 != 0))
            throw Refused("it adds to a value that is no list or dict");
        charge(values.size() * sizeof(PickleRef));
        auto& children = document_.children_[static_cast<std::size_t>(target.payload)];
        children.insert(children.end(), values.begin(), values.end());
    }

    bool memory(unsigned char opcode) {
        switch (opcode) {
            case 0x80:
                if (byte() > 5) throw Refused("its pickle protocol is unknown");
                return true;
            case 0x95:  // a frame: how the writer cut its output
                number(8);
                return true;
            case '(':
                if (marks_.size() >= limits_.stack)
                    throw Refused("it nests deeper than can be read");
                marks_.push_back(stack_.size());
                return true;
            case '0':
                pop();
                return true;
            case '1':
                popToMark();
                return true;
            case '2':
                push(top());
                return true;
            case 0x94:
                remember(memo_.size());
                return true;
            case 'q':
                remember(byte());
                return true;
            case 'r':
                remember(number(4));
                return true;
            case 'p':
                remember(lineNumber());
                return true;
            case 'h':
                recall(byte());
                return true;
            case 'j':
                recall(number(4));
                return true;
            case 'g':
                recall(lineNumber());
                return true;
            default:
                return false;
        }
    }
    std::uint64_t lineNumber() {
        const std::string text = line();
        std::uint64_t value = 0;
        const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (failure != std::errc{} || stop != text.data() + text.size())
            throw Refused("a place in its memory is no number");
        return value;
    }
    // Writers number their memory without large holes.
    void remember(std::uint64_t place) {
        constexpr std::uint64_t kHole = 1u << 16;
        if (place > memo_.size() + kHole) throw Refused("its memory has a hole");
        if (place >= memo_.size()) {
            charge((place + 1 - memo_.size()) * sizeof(PickleRef));
            memo_.resize(place + 1, kForgotten);
        }
        memo_[place] = top();
    }
    void recall(std::uint64_t place) {
        if (place >= memo_.size() || memo_[place] == kForgotten)
            throw Refused("it recalls a value that it never stored");
        push(memo_[place]);
    }

    static constexpr PickleRef kForgotten = ~PickleRef{0};

    TextSource& source_;
    const PickleLimits limits_;
    PickleDocument document_;
    std::vector<PickleRef> stack_, memo_;
    std::vector<std::size_t> marks_;
    std::array<char, 1 << 16> buffer_{};
    std::size_t at_ = 0, filled_ = 0;
    std::int64_t position_ = 0;
    std::uint64_t used_ = 0;
};

Result<PickleDocument> PickleDocument::read(TextSource& source, const PickleLimits& limits) {
    PickleMachine machine(source, limits);
    try {
        return machine.run();
    } catch (const Refused& refused) {
        return badInput(
            "pickle, byte " + std::to_string(machine.position()) + ": " + refused.what(),
            "the file is damaged, cut short or no memory snapshot; nothing in it was executed");
    }
}

const std::vector<PickleRef>& PickleDocument::items(PickleRef value) const {
    static const std::vector<PickleRef> kNothing;
    return isList(value) ? children_[static_cast<std::size_t>(values_[value].payload)] : kNothing;
}

std::optional<PickleRef> PickleDocument::find(PickleRef dict, std::string_view key) const {
    if (!isDict(dict)) return std::nullopt;
    const auto& pairs = children_[static_cast<std::size_t>(values_[dict].payload)];
    for (std::size_t i = pairs.size(); i >= 2; i -= 2)
        if (const auto name = text(pairs[i - 2]); name && *name == key) return pairs[i - 1];
    return std::nullopt;
}

std::optional<std::int64_t> PickleDocument::integer(PickleRef value) const {
    const Value& number = values_[value];
    if (number.kind == Kind::Int || number.kind == Kind::Bool) return number.payload;
    if (number.kind != Kind::BigInt) return std::nullopt;
    const std::string& bytes = texts_[static_cast<std::size_t>(number.payload)];
    for (std::size_t i = 8; i < bytes.size(); ++i)
        if (bytes[i] != 0) return std::nullopt;
    std::uint64_t low = 0;
    for (std::size_t i = 0; i < 8; ++i)
        low |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    return static_cast<std::int64_t>(low);
}

std::optional<std::string_view> PickleDocument::text(PickleRef value) const {
    if (kind(value) != Kind::Text) return std::nullopt;
    return texts_[static_cast<std::size_t>(values_[value].payload)];
}

}  // namespace hw::core
