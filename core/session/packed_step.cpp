// SPDX-License-Identifier: MIT
#include "core/session/packed_step.h"
#include "core/base/utf8.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <string_view>
#include <unordered_map>

#include "core/base/varint.h"

namespace hw::core {
namespace {

constexpr std::byte kFormat{1};
// Larger steps are not packed, so that a damaged blob cannot ask for more.
constexpr std::size_t kMostInflated = std::size_t{16} << 20;
constexpr std::size_t kMostText = std::size_t{128} << 20;  // of all rows together
constexpr std::size_t kMostRows = std::size_t{1} << 19;    // of a kind; of texts, too
constexpr std::size_t kMostRatio = 1100;                   // zlib's own is 1032

enum Column : std::uint8_t {
    OpFlags,
    OpName,
    OpOverload,
    OpId,
    OpSeq,
    OpBegin,
    OpDuration,
    OpThread,
    OpLayer,
    OpWorkspace,
    OpLive,
    OpStack,
    OpArguments,
    ArgumentTensor,
    EdgeCount,
    EdgeTensor,
    EdgeVersion,
    EdgeStorage,
    StorageFlags,
    StorageId,
    StorageBytes,
    StorageDevice,
    StorageLayer,
    StorageCreator,
    StorageAlloc,
    StorageFree,
    StorageAddress,
    StorageStack,
    TensorFlags,
    TensorId,
    TensorStorage,
    TensorCreator,
    TensorForm,  // dtype, sizes, strides
    TensorOffset,
    kColumns
};

// The phase is in the lowest bits of an op's flags, the category in those of a storage.
constexpr std::uint64_t kPhaseBits = 3, kCategoryBits = 15;
enum OpFlag : std::uint64_t {
    OpHasLayer = 4,
    OpHasLive = 8,
    OpHasStack = 16,
    OpIsRandom = 32,
    OpHasHoles = 64  // its arguments are a text with holes
};
enum StorageFlag : std::uint64_t {
    StorageHasLayer = 16,
    StorageHasCreator = 32,
    StorageHasFree = 64,
    StorageHasAddress = 128,
    StorageHasStack = 256
};

/// {"a":[{"t":17}]} has a tensor, and with a hole for it reads {"a":[{"t":\1}]}.
constexpr std::string_view kTensorKey = "{\"t\":";
constexpr char kHole = '\1';

bool isPlainNumber(std::string_view digits) {
    if (digits.starts_with('-')) return digits[1] != '0';
    return digits.size() == 1 || digits[0] != '0';
}

/// False where the holes could not be told from the text.
bool takeTensors(std::string_view arguments, std::string& text, std::vector<std::int64_t>& taken) {
    text.clear(), taken.clear();
    if (arguments.find(kHole) != std::string_view::npos) return false;
    std::size_t from = 0, at = 0;
    while ((at = arguments.find(kTensorKey, from)) != std::string_view::npos) {
        at += kTensorKey.size();
        text.append(arguments, from, at - from);
        from = at;
        std::int64_t tensor = 0;
        const char* digits = arguments.data() + at;
        const auto [end, error] =
            std::from_chars(digits, arguments.data() + arguments.size(), tensor);
        const auto size = static_cast<std::size_t>(end - digits);
        if (error != std::errc() || !isPlainNumber({digits, size})) continue;
        text += kHole;
        taken.push_back(tensor);
        from += size;
    }
    text.append(arguments, from);
    return true;
}

class StepPacker {
public:
    void add(const OpRow& row) {
        const bool holes = takeTensors(row.args, text_, taken_);
        std::uint64_t flags = static_cast<std::uint64_t>(row.phase);
        if (row.layer) flags |= OpHasLayer;
        if (row.liveBytes) flags |= OpHasLive;
        if (row.stack) flags |= OpHasStack;
        if (row.random) flags |= OpIsRandom;
        if (holes) flags |= OpHasHoles;
        columns_[OpFlags].unsignedNumber(flags);
        text(OpName, row.name), text(OpOverload, row.overload);
        next(OpId, row.id), next(OpSeq, row.seq);
        difference(OpBegin, row.beginNs);
        columns_[OpDuration].number(row.duration.count());
        difference(OpThread, row.thread);
        columns_[OpWorkspace].number(row.workspace.count());
        if (row.layer) difference(OpLayer, *row.layer);
        if (row.liveBytes) difference(OpLive, *row.liveBytes);
        if (row.stack) difference(OpStack, *row.stack);
        text(OpArguments, holes ? text_ : row.args);
        for (std::size_t i = 0; holes && i < taken_.size(); ++i) {
            // Most are the op's inputs, in their order.
            const bool input = i < row.inputs.size() && row.inputs[i].tensor == taken_[i];
            columns_[ArgumentTensor].unsignedNumber(input ? 0 : 1);
            if (!input) difference(ArgumentTensor, taken_[i]);
        }
        addEdges(row);
    }

    void add(const StorageRow& row) {
        std::uint64_t flags = static_cast<std::uint64_t>(row.category);
        if (row.layer) flags |= StorageHasLayer;
        if (row.creator) flags |= StorageHasCreator;
        if (row.freeSeq) flags |= StorageHasFree;
        if (row.address) flags |= StorageHasAddress;
        if (row.stack) flags |= StorageHasStack;
        columns_[StorageFlags].unsignedNumber(flags);
        next(StorageId, row.id);
        columns_[StorageBytes].number(row.bytes.count());
        text(StorageDevice, row.device);
        if (row.layer) difference(StorageLayer, *row.layer);
        if (row.creator) difference(StorageCreator, *row.creator);
        difference(StorageAlloc, row.allocSeq);
        if (row.freeSeq) columns_[StorageFree].difference(*row.freeSeq, row.allocSeq);
        if (row.address) difference(StorageAddress, *row.address);
        if (row.stack) difference(StorageStack, *row.stack);
    }

    void add(const TensorRow& row) {
        columns_[TensorFlags].unsignedNumber(row.creator ? 1 : 0);
        next(TensorId, row.id), next(TensorStorage, row.storage);
        if (row.creator) difference(TensorCreator, *row.creator);
        for (const std::string* part : {&row.dtype, &row.sizes, &row.strides})
            text(TensorForm, *part);
        columns_[TensorOffset].number(row.offset);
    }

    /// Whether unpacking would take these texts for damage.
    bool tooMuchText() const { return textBytes_ > kMostText || texts_.size() > kMostRows; }
    std::vector<std::byte> inflated() const {
        VarintWriter all;
        all.unsignedNumber(texts_.size());
        for (const std::string& one : texts_) all.text(one);
        for (const VarintWriter& column : columns_) all.part(column.bytes());
        return all.bytes();
    }

private:
    void addEdges(const OpRow& row) {
        for (const std::size_t count : {row.inputs.size(), row.outputs.size(), row.writes.size()})
            columns_[EdgeCount].unsignedNumber(count);
        for (const OpRow::Input& input : row.inputs) {
            difference(EdgeTensor, input.tensor);
            columns_[EdgeVersion].number(input.version);
        }
        for (const OpRow::Output& output : row.outputs) {
            difference(EdgeTensor, output.tensor);
            columns_[EdgeVersion].number(output.makesStorage);
        }
        writes_ = row.writes;  // as the table has them
        std::sort(writes_.begin(), writes_.end(), [](const auto& a, const auto& b) {
            return a.storage != b.storage ? a.storage < b.storage
                                          : a.versionBefore < b.versionBefore;
        });
        for (const OpRow::Write& write : writes_) {
            difference(EdgeStorage, write.storage);
            columns_[EdgeVersion].number(write.versionBefore);
        }
    }

    void difference(Column column, std::int64_t value) {
        columns_[column].difference(value, last_[column]);
        last_[column] = value;
    }
    void next(Column column, std::int64_t value) {
        columns_[column].difference(value, wrappingSum(last_[column], 1));
        last_[column] = value;
    }
    void text(Column column, const std::string& value) {
        textBytes_ += value.size();
        auto at = known_.find(value);
        if (at == known_.end()) {
            texts_.push_back(value);
            at = known_.emplace(texts_.back(), texts_.size() - 1).first;
        }
        columns_[column].unsignedNumber(at->second);
    }

    std::array<VarintWriter, kColumns> columns_;
    std::array<std::int64_t, kColumns> last_{};
    std::deque<std::string> texts_;  // stay where they are: known_ points at them
    std::unordered_map<std::string_view, std::size_t> known_;
    std::size_t textBytes_ = 0;
    std::string text_;
    std::vector<std::int64_t> taken_;
    std::vector<OpRow::Write> writes_;
};

class StepUnpacker {
public:
    StepUnpacker(std::span<const std::byte> inflated, OpDetail detail) : detail_(detail) {
        VarintReader in(inflated);
        const std::uint64_t texts = in.unsignedNumber();
        for (std::uint64_t i = 0; i < texts && texts <= kMostRows && in.good(); ++i) {
            const auto one = in.part();
            texts_.emplace_back(reinterpret_cast<const char*>(one.data()), one.size());
        }
        columns_.reserve(kColumns);
        for (int i = 0; i < kColumns; ++i) columns_.emplace_back(in.part());
        good_ = in.good() && in.atEnd();
    }

    bool read(const PackedCounts& counts, StepContents& rows) {
        if (!good_) return false;
        rows = {};
        rows.ops.resize(static_cast<std::size_t>(counts.ops));
        for (OpRow& row : rows.ops)
            if (!read(row)) return false;
        if (detail_ == OpDetail::Spans) return true;
        rows.storages.resize(static_cast<std::size_t>(counts.storages));
        for (StorageRow& row : rows.storages)
            if (!read(row)) return false;
        rows.tensors.resize(static_cast<std::size_t>(counts.tensors));
        for (TensorRow& row : rows.tensors)
            if (!read(row)) return false;
        return detail_ != OpDetail::Everything ||
               std::all_of(columns_.begin(), columns_.end(),
                           [](const VarintReader& column) { return column.atEnd(); });
    }

private:
    bool read(OpRow& row) {
        const std::uint64_t flags = columns_[OpFlags].unsignedNumber();
        row.phase = static_cast<Phase>(flags & kPhaseBits);
        row.random = (flags & OpIsRandom) != 0;
        row.name = shownName(text(OpName)), row.overload = shownName(text(OpOverload));
        row.id = next(OpId), row.seq = next(OpSeq);
        row.beginNs = difference(OpBegin);
        row.duration = Nanoseconds(columns_[OpDuration].number());
        row.thread = difference(OpThread);
        row.workspace = Bytes(columns_[OpWorkspace].number());
        if ((flags & OpHasLayer) != 0) row.layer = difference(OpLayer);
        if ((flags & OpHasLive) != 0) row.liveBytes = difference(OpLive);
        if (detail_ == OpDetail::Spans) return good();
        if ((flags & OpHasStack) != 0) row.stack = difference(OpStack);
        return readEdges(row) &&
               (detail_ == OpDetail::Edges || readArguments((flags & OpHasHoles) != 0, row));
    }

    bool readEdges(OpRow& row) {
        VarintReader &counts = columns_[EdgeCount], &versions = columns_[EdgeVersion];
        const std::uint64_t inputs = counts.unsignedNumber(), outputs = counts.unsignedNumber(),
                            writes = counts.unsignedNumber();
        const std::uint64_t most = versions.rest().size();
        if (inputs > most || outputs > most - inputs || writes > most - inputs - outputs)
            return good_ = false;
        row.inputs.reserve(inputs), row.outputs.reserve(outputs), row.writes.reserve(writes);
        for (std::uint64_t i = 0; i < inputs; ++i) {
            const std::int64_t tensor = difference(EdgeTensor);
            row.inputs.push_back({tensor, static_cast<std::int32_t>(versions.number())});
        }
        for (std::uint64_t i = 0; i < outputs; ++i) {
            const std::int64_t tensor = difference(EdgeTensor);
            row.outputs.push_back({tensor, versions.number() != 0});
        }
        for (std::uint64_t i = 0; i < writes; ++i) {
            const std::int64_t storage = difference(EdgeStorage);
            row.writes.push_back({storage, static_cast<std::int32_t>(versions.number())});
        }
        return good();
    }

    bool readArguments(bool holes, OpRow& row) {
        const std::string_view text = this->text(OpArguments);
        if (!holes) {
            row.args = text;
            return good();
        }
        std::size_t from = 0, at = 0, index = 0;
        for (; (at = text.find(kHole, from)) != std::string_view::npos; from = at + 1, ++index) {
            row.args.append(text, from, at - from);
            std::int64_t tensor = 0;
            if (columns_[ArgumentTensor].unsignedNumber() != 0)
                tensor = difference(ArgumentTensor);
            else if (index < row.inputs.size())
                tensor = row.inputs[index].tensor;
            else
                good_ = false;
            if (!good()) return false;
            char digits[24];
            row.args.append(digits, std::to_chars(digits, digits + sizeof digits, tensor).ptr);
        }
        row.args.append(text, from);
        return good();
    }

    bool read(StorageRow& row) {
        const std::uint64_t flags = columns_[StorageFlags].unsignedNumber();
        if ((flags & kCategoryBits) >= kCategoryCount) return good_ = false;
        row.category = static_cast<Category>(flags & kCategoryBits);
        row.id = next(StorageId);
        row.bytes = Bytes(columns_[StorageBytes].number());
        row.device = text(StorageDevice);
        if ((flags & StorageHasLayer) != 0) row.layer = difference(StorageLayer);
        if ((flags & StorageHasCreator) != 0) row.creator = difference(StorageCreator);
        row.allocSeq = difference(StorageAlloc);
        if ((flags & StorageHasFree) != 0)
            row.freeSeq = columns_[StorageFree].difference(row.allocSeq);
        if ((flags & StorageHasAddress) != 0) row.address = difference(StorageAddress);
        if ((flags & StorageHasStack) != 0) row.stack = difference(StorageStack);
        return good();
    }

    bool read(TensorRow& row) {
        const std::uint64_t flags = columns_[TensorFlags].unsignedNumber();
        row.id = next(TensorId), row.storage = next(TensorStorage);
        if (flags != 0) row.creator = difference(TensorCreator);
        for (std::string* part : {&row.dtype, &row.sizes, &row.strides}) *part = text(TensorForm);
        row.offset = columns_[TensorOffset].number();
        return good();
    }

    /// A column that ends early reads as zeros from there on.
    bool good() {
        good_ = good_ && std::all_of(columns_.begin(), columns_.end(),
                                     [](const VarintReader& column) { return column.good(); });
        return good_;
    }
    std::int64_t difference(Column column) {
        return last_[column] = columns_[column].difference(last_[column]);
    }
    std::int64_t next(Column column) {
        return last_[column] = columns_[column].difference(wrappingSum(last_[column], 1));
    }
    std::string_view text(Column column) {
        const std::uint64_t index = columns_[column].unsignedNumber();
        if (index >= texts_.size() || (textBytes_ += texts_[index].size()) > kMostText)
            return good_ = false, std::string_view();
        return texts_[index];
    }

    OpDetail detail_;
    std::vector<std::string_view> texts_;
    std::vector<VarintReader> columns_;
    std::array<std::int64_t, kColumns> last_{};
    std::size_t textBytes_ = 0;
    bool good_ = true;
};

/// What stands before the zlib stream.
struct Head {
    PackedCounts counts;
    std::size_t inflated = 0;
    std::span<const std::byte> rest;
};

std::optional<Head> headOf(std::span<const std::byte> blob) {
    if (blob.empty() || blob[0] != kFormat) return std::nullopt;
    VarintReader in(blob.subspan(1));
    Head head;
    for (std::int64_t* count : {&head.counts.ops, &head.counts.storages, &head.counts.tensors}) {
        const std::uint64_t value = in.unsignedNumber();
        if (value > kMostRows) return std::nullopt;
        *count = static_cast<std::int64_t>(value);
    }
    head.inflated = in.unsignedNumber();
    head.rest = in.rest();
    if (!in.good() || head.inflated > kMostInflated ||
        head.inflated / kMostRatio > head.rest.size())
        return std::nullopt;
    return head;
}

bool inflateAll(const Head& head, std::vector<std::byte>& inflated) {
    inflated.resize(head.inflated);
    uLongf size = inflated.size();
    uLong used = head.rest.size();
    std::byte none{};
    const int code =
        uncompress2(reinterpret_cast<Bytef*>(inflated.empty() ? &none : inflated.data()), &size,
                    reinterpret_cast<const Bytef*>(head.rest.data()), &used);
    return code == Z_OK && size == inflated.size() && used == head.rest.size();
}

}  // namespace

std::optional<std::vector<std::byte>> packStep(const StepContents& rows) {
    if (std::max({rows.ops.size(), rows.storages.size(), rows.tensors.size()}) > kMostRows)
        return std::nullopt;
    StepPacker packer;
    for (const OpRow& row : rows.ops) packer.add(row);
    for (const StorageRow& row : rows.storages) packer.add(row);
    for (const TensorRow& row : rows.tensors) packer.add(row);
    const std::vector<std::byte> inflated = packer.inflated();
    if (packer.tooMuchText() || inflated.size() > kMostInflated) return std::nullopt;
    VarintWriter out;
    out.raw({&kFormat, 1});
    for (const std::size_t count : {rows.ops.size(), rows.storages.size(), rows.tensors.size()})
        out.unsignedNumber(count);
    out.unsignedNumber(inflated.size());
    std::vector<std::byte> blob = out.bytes();
    const std::size_t head = blob.size();
    uLongf size = compressBound(inflated.size());
    blob.resize(head + size);
    if (compress2(reinterpret_cast<Bytef*>(blob.data() + head), &size,
                  reinterpret_cast<const Bytef*>(inflated.data()), inflated.size(),
                  Z_BEST_SPEED) != Z_OK)
        return std::nullopt;
    blob.resize(head + size);
    return blob;
}

std::string unpackStep(std::span<const std::byte> blob, OpDetail detail, StepContents& rows) {
    if (!blob.empty() && blob[0] > kFormat)
        return "is packed in format " + std::to_string(std::to_integer<int>(blob[0])) +
               ", this program reads up to " + std::to_string(std::to_integer<int>(kFormat));
    const auto head = headOf(blob);
    std::vector<std::byte> inflated;
    const bool whole =
        head && inflateAll(*head, inflated) && unpackColumns(inflated, head->counts, detail, rows);
    return whole ? "" : "is damaged";
}

bool unpackColumns(std::span<const std::byte> inflated, const PackedCounts& counts, OpDetail detail,
                   StepContents& rows) {
    return StepUnpacker(inflated, detail).read(counts, rows);
}

std::optional<PackedCounts> packedCounts(std::span<const std::byte> blob) {
    const auto head = headOf(blob);
    return head ? std::optional(head->counts) : std::nullopt;
}

}  // namespace hw::core
