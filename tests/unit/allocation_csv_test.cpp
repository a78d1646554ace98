// SPDX-License-Identifier: MIT
#include "core/import/allocation_csv.h"

#include <fstream>
#include <sstream>

#include "core/import/import.h"
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

TEST_F(AllocationCsv, OlderNamesEndWithTheLastMomentOfALife) {
    for (const char* header :
         {"buffer,start,end,size", "buffer_id,begin,end,size", "id,begin,end,size"}) {
        const auto problem = read(std::string(header) + "\nb1,0,2,4\nb2,3,8,4\nb3,5,5,1\n");
        ASSERT_TRUE(problem) << problem.error().what;
        EXPECT_EQ(problem->ids, (std::vector<std::string>{"b1", "b2", "b3"}));
        EXPECT_EQ(problem->blocks[0].end, 3) << header;
        EXPECT_EQ(problem->blocks[1].begin, 3);
        EXPECT_FALSE(problem->blocks[0].livesWith(problem->blocks[1]));
        EXPECT_TRUE(problem->blocks[1].livesWith(problem->blocks[2])) << "one moment long";
        EXPECT_TRUE(openAny(folder_ / "p.csv")) << "it is imported, too";
    }
    const auto today = read("id,start,upper,size\nb1,0,2,4\n");
    ASSERT_TRUE(today) << today.error().what;
    EXPECT_EQ(today->blocks[0].end, 2) << "upper is the first moment after it";
    refused("id,buffer,lower,upper,size\n", "'id' and 'buffer' say the same");
    refused("id,lower,start,upper,size\n", "say the same");
    refused("id,begin,end,size\na,3,2,5\n", "begin is not below end");
}

TEST_F(AllocationCsv, AlignmentsAreKept) {
    auto problem = read("id,lower,upper,size,alignment\na,0,1,5,4\nb,0,1,5,4\n");
    ASSERT_TRUE(problem) << problem.error().what;
    EXPECT_EQ(problem->alignment, Bytes(4));
    EXPECT_FALSE(problem->mixedAlignment);
    problem = read("id,lower,upper,size,alignment\na,0,1,5,4\nb,0,1,5,6\nc,0,1,5,1\n");
    ASSERT_TRUE(problem) << problem.error().what;
    EXPECT_EQ(problem->alignment, Bytes(12));
    EXPECT_TRUE(problem->mixedAlignment);
    refused("id,lower,upper,size,alignment\na,0,1,5,0\n", "line 2: the alignment is 0");
    refused("id,lower,upper,size,alignment\na,0,1,5,\n", "no whole number");
    refused("id,lower,upper,size,alignment\na,0,1,5,2147483648\n", "common multiple");
    refused("id,lower,upper,size,alignment\na,0,1,5,1073741824\nb,0,1,5,3\n", "line 3");
}

TEST_F(AllocationCsv, GapsAreRefusedWhereThereAreAny) {
    refused("id,lower,upper,size,gaps\na,0,10,4,3-7\n", "line 2: block 'a' has gaps");
    refused("id,lower,upper,size,gaps\na,0,10,4,\nb,0,10,4,1-2 3-4@1:2\n", "line 3");
    EXPECT_TRUE(read("id,lower,upper,size,gaps\na,0,10,4,\nb,3,7,4,\n")) << "none has one";
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
