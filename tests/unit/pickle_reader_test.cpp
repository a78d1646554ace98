// SPDX-License-Identifier: MIT
#include "core/import/pickle_reader.h"

#include <fstream>

#include "tests/unit/test_data.h"

namespace hw::core {
namespace {

class Pickle : public testing::Test {
protected:
    Result<PickleDocument> read(const std::string& bytes, const PickleLimits& limits = {}) {
        std::ofstream(folder_ / "p", std::ios::binary) << bytes;
        auto source = TextSource::open(folder_ / "p");
        if (!source) return source.error();
        return PickleDocument::read(*source, limits);
    }
    void refused(const std::string& bytes, const std::string& why,
                 const PickleLimits& limits = {}) {
        const auto document = read(bytes, limits);
        ASSERT_FALSE(document) << why;
        EXPECT_EQ(document.error().code, ErrorCode::BadInput);
        EXPECT_NE(document.error().what.find(why), std::string::npos) << document.error().what;
        EXPECT_FALSE(document.error().hint.empty());
    }
    test::TemporaryFolder folder_;
};

std::string bytes(std::initializer_list<int> values) {
    std::string text;
    for (const int value : values) text += static_cast<char>(value);
    return text;
}

TEST_F(Pickle, ReadsTextFormsOfTheFirstProtocol) {
    // pickle.dumps({'a': [1, True, None, 2**63], 'b': (2.5, 'x')}, 0), shortened
    const auto document = read(
        "(dp0\nVa\np1\n(lp2\nI1\naI01\naNaL9223372036854775808L\nasVb\np3\n(F2.5\nVx\ntp4\ns.");
    ASSERT_TRUE(document) << document.error().what;
    const auto list = document->find(document->root(), "a");
    ASSERT_TRUE(list);
    const auto& items = document->items(*list);
    ASSERT_EQ(items.size(), 4u);
    EXPECT_EQ(document->integer(items[0]), 1);
    EXPECT_EQ(document->kind(items[1]), PickleDocument::Kind::Bool);
    EXPECT_EQ(document->kind(items[2]), PickleDocument::Kind::None);
    EXPECT_EQ(document->integer(items[3]), INT64_MIN) << "addresses are unsigned";
    const auto tuple = document->find(document->root(), "b");
    ASSERT_TRUE(tuple);
    EXPECT_EQ(document->text(document->items(*tuple)[1]), "x");
    EXPECT_FALSE(document->find(document->root(), "c"));
}

TEST_F(Pickle, NumbersOfAnyLength) {
    const auto long1 = [&](const std::string& littleEndian) {
        const auto document = read(bytes({0x80, 4, 0x8a, static_cast<int>(littleEndian.size())}) +
                                   littleEndian + ".");
        EXPECT_TRUE(document);
        return document->integer(document->root());
    };
    EXPECT_EQ(long1(""), 0);
    EXPECT_EQ(long1(bytes({0xff})), -1);
    EXPECT_EQ(long1(bytes({0xff, 0x00})), 255);
    EXPECT_EQ(long1(bytes({0, 0, 0, 0, 0, 0, 0, 0x80, 0})), INT64_MIN) << "2^63 has nine bytes";
    EXPECT_EQ(long1(bytes({0, 0, 0, 0, 0, 0, 0, 0, 1})), std::nullopt) << "2^64";
    const auto small = read(bytes({0x80, 4, 'J', 0xfe, 0xff, 0xff, 0xff, '.'}));
    EXPECT_EQ(small->integer(small->root()), -2);
    for (const char* wide : {"I18446744073709551616\n.", "L-18446744073709551616L\n."}) {
        const auto decimal = read(wide);
        ASSERT_TRUE(decimal) << decimal.error().what;
        EXPECT_EQ(decimal->integer(decimal->root()), std::nullopt);
    }
}

TEST_F(Pickle, RefusesWhateverWouldRunCode) {
    refused("cos\nsystem\n(S\"touch pwned\"\ntR.", "run code (GLOBAL)");
    refused(bytes({0x80, 4, 0x8c, 2, 'o', 's', 0x8c, 1, 'x', 0x93, '.'}), "STACK_GLOBAL");
    refused("(NtR.", "REDUCE");
    refused("(ios\nsystem\n.", "INST");
    refused("(No.", "OBJ");
    refused(bytes({0x80, 2, 'N', ')', 0x81, '.'}), "NEWOBJ");
    refused(bytes({'N', '}', 'b', '.'}), "BUILD");
    refused("P1\n.", "PERSID");
    refused("NQ.", "BINPERSID");
    refused(bytes({0x82, 1, '.'}), "EXT1");
    refused(bytes({0xf0, '.'}), "0xf0");
}

TEST_F(Pickle, RefusesWhatContradictsItself) {
    refused(".", "not there");
    refused("(.", "not there");
    refused("t.", "mark");
    refused("Na.", "not there");
    refused("NNa.", "no list or dict");
    refused("(Nd.", "no value");
    refused("h\x05.", "never stored");
    refused(bytes({'N', 'r', 0xff, 0xff, 0xff, 0x7f, '.'}), "hole");
    refused("I12x\n.", "number");
    refused("S'a\n.", "quotes");
    refused("N", "ends early");
    refused(bytes({'X', 0xff, 0xff, 0xff, 0xff, 'a'}), "more than can be read");
    refused(bytes({0x80, 9, 'N', '.'}), "protocol");
}

TEST_F(Pickle, DepthAndSizeAreBounded) {
    const std::size_t deep = 1'000'000;
    const auto nested = read(std::string(deep, ']') + std::string(deep - 1, 'a') + ".");
    ASSERT_TRUE(nested) << nested.error().what;
    EXPECT_TRUE(nested->isList(nested->root()));
    PickleLimits limits;
    limits.stack = 1000;
    refused(std::string(2000, ']').append("."), "deeper", limits);
    refused(std::string(2000, '(').append("."), "deeper", limits);
    limits = {};
    limits.values = 1000;
    refused("(" + std::string(2000, 'N') + "t.", "more values", limits);
}

TEST_F(Pickle, AListMayHoldItself) {
    const auto document = read("]q\001h\001a.");
    ASSERT_TRUE(document) << document.error().what;
    EXPECT_EQ(document->items(document->root()).front(), document->root());
}

}  // namespace
}  // namespace hw::core
