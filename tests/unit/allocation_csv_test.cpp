// SPDX-License-Identifier: MIT
#include "core/import/allocation_csv.h"

#include <fstream>
#include <sstream>

#include "tests/unit/test_data.h"

namespace hw::core {
namespace {

class AllocationCsv : public ::testing::Test {
protected:
    Result<AllocationProblem> read(const std::string& text) {
        std::ofstream(folder_ / "p.csv", std::ios::binary) << text;
        return readAllocationCsv(folder_ / "p.csv");
    }
    void refused(const std::string& text, const std::string& why) {
        const auto problem = read(text);
        ASSERT_FALSE(problem) << text;
        EXPECT_EQ(problem.error().code, ErrorCode::BadInput);
        EXPECT_NE(problem.error().what.find(why), std::string::npos) << problem.error().what;
        EXPECT_FALSE(problem.error().hint.empty());
    }
    test::TemporaryFolder folder_;
};

TEST_F(AllocationCsv, ColumnsComeInAnyOrderWithOthersBetween) {
    const auto problem = read(
        "\xEF\xBB\xBFsize, upper ,note,lower,id\r\n\r\n64,5,\"a, b\",0,x\r\n\"32\",9,,5,\"y "
        "\"\"1\"\"\"\r\n");
    ASSERT_TRUE(problem) << problem.error().what;
    EXPECT_EQ(problem->ids, (std::vector<std::string>{"x", "y \"1\""}));
    ASSERT_EQ(problem->blocks.size(), 2u);
    EXPECT_EQ(problem->blocks[0].begin, 0);
    EXPECT_EQ(problem->blocks[0].end, 5);
    EXPECT_EQ(problem->blocks[1].size, Bytes(32));
}

TEST_F(AllocationCsv, WrongTablesNameTheirLine) {
    const std::string header = "id,lower,upper,size\n";
    refused("id,lower,upper\n1,2,3\n", "line 1: there is no column 'size'");
    refused(header + "a,0,1,5\nb,0,1\n", "line 3: there are 3 fields");
    refused(header + "a,0,1,5,6\n", "line 2: there are 5 fields");
    refused(header + "a,0,1,ten\n", "line 2: size 'ten' is no whole number");
    refused(header + "a,0,1,1.5\n", "is no whole number");
    refused(header + "a,0,1,\n", "is no whole number");
    refused(header + "a,0,1,-5\n", "size '-5' is negative");
    refused(header + "a,-1,1,5\n", "lower '-1' is negative");
    refused(header + "a,3,3,5\n", "line 2: lower is not below upper");
    refused(header + "a,0,1,99999999999999999999\n", "too large");
    refused(header + "a,0,1,4611686018427387903\nb,0,1,4611686018427387903\n", "add up");
    refused(header + "a,0,1,5\na,0,1,5\n", "line 3: there is a second block 'a'");
    refused(header + ",0,1,5\n", "the id is empty");
    refused(header + "\"a,0,1,5\n", "no end");
    refused(header + "a\"b,0,1,5\n", "middle of a field");
    refused("\n\n", "no lines");
    refused(std::string("\x89PNG\0\0", 6), "line 1");
}

TEST_F(AllocationCsv, OffsetsAreWrittenWithTheirIds) {
    const std::string path = folder_ / "o.csv";
    ASSERT_TRUE(writeOffsetCsv(path, {"b", "a,1", "c\"d"}, {Bytes(64), Bytes(0), Bytes(128)}));
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    EXPECT_EQ(text.str(), "id,offset\nb,64\n\"a,1\",0\n\"c\"\"d\",128\n");
    EXPECT_FALSE(writeOffsetCsv(folder_ / "none/o.csv", {}, {}));
}

}  // namespace
}  // namespace hw::core
