// SPDX-License-Identifier: MIT
// Traces in tar archives: the one file is read where it lies.
#include "core/import/text_source.h"

#include <zlib.h>

#include <cstring>
#include <fstream>

#include "core/import/import.h"
#include "tests/unit/test_data.h"

namespace hw::core {
namespace {

// A member of a POSIX archive.
std::string member(const std::string& name, const std::string& content, char kind = '0') {
    std::string head(512, '\0');
    head.replace(0, name.size(), name);
    head.replace(100, 7, "0000644");
    std::array<char, 13> size{};
    std::snprintf(size.data(), size.size(), "%011o", static_cast<unsigned>(content.size()));
    head.replace(124, 11, size.data());
    head[156] = kind;
    head.replace(257, 5, "ustar");
    head.replace(148, 8, 8, ' ');
    unsigned sum = 0;
    for (const char c : head) sum += static_cast<unsigned char>(c);
    std::snprintf(size.data(), size.size(), "%06o", sum);
    head.replace(148, 6, size.data());
    head[154] = '\0';
    return head + content + std::string((512 - content.size() % 512) % 512, '\0');
}
std::string archive(const std::string& members) {
    return members + std::string(1024, '\0');
}

class TarSource : public testing::Test {
protected:
    std::string packed(const std::string& bytes, const std::string& name = "t.tar.gz") {
        gzFile file = gzopen((folder_ / name).c_str(), "wb");
        gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
        gzclose(file);
        return folder_ / name;
    }
    void refused(const std::string& bytes, const std::string& why) {
        const auto source = TextSource::open(packed(bytes));
        ASSERT_FALSE(source) << why;
        EXPECT_EQ(source.error().code, ErrorCode::BadInput);
        EXPECT_NE(source.error().what.find(why), std::string::npos) << source.error().what;
        EXPECT_FALSE(source.error().hint.empty());
    }
    test::TemporaryFolder folder_;
};

TEST_F(TarSource, ReadsTheOneFileByLinesOrBytes) {
    const std::string text = "one\r\ntwo\nthree";  // no end of line before the padding
    const std::string bytes = archive(member("run/", "", '5') + member("./._t.json", "fork") +
                                      member("run/t.json", text));
    for (const bool gz : {true, false}) {
        std::string path = gz ? packed(bytes) : folder_ / "plain.tar";
        if (!gz) std::ofstream(path, std::ios::binary) << bytes;
        auto source = TextSource::open(path);
        ASSERT_TRUE(source) << source.error().what;
        EXPECT_EQ(source->name(), "run/t.json");
        std::vector<std::string> lines;
        for (std::string line; source->next(line);) lines.push_back(line);
        EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "three"}));
        EXPECT_EQ(source->lineNumber(), 3);
        EXPECT_EQ(source->error(), "");
        source = TextSource::open(path);
        std::string all(100, '\0');
        all.resize(source->read(all.data(), all.size()));
        EXPECT_EQ(all, text);
    }
}

TEST_F(TarSource, ImportsATraceInIt) {
    const std::string table = "id,lower,upper,size\na,0,2,7\nb,1,3,5\n";
    const auto session = openAny(packed(archive(member("p.csv", table))));
    ASSERT_TRUE(session) << session.error().what;
    EXPECT_EQ(session->counts()->storages, 2);
}

TEST_F(TarSource, RefusesSeveralFilesNoneAndDamage) {
    refused(archive(member("a.json", "1") + member("b.json", "2")), "'a.json', 'b.json'");
    refused(archive(member("a/", "", '5')), "holds no file");
    refused(archive(member("a.json", std::string(5000, 'x'))).substr(0, 2000), "cut short");
    std::string damaged = member("a.json", "1") + member("b.json", "2");
    damaged[1024 + 130] = 'z';
    refused(archive(damaged), "damaged");
    const auto table =
        openAny(packed(archive(member("t.sqlite", std::string("SQLite format 3\0", 16)))));
    ASSERT_FALSE(table);
    EXPECT_NE(table.error().what.find("packed SQLite"), std::string::npos) << table.error().what;
}

TEST(TextSource, EndsWhereADeviceDoesNot) {
    auto source = TextSource::open("/dev/zero");
    ASSERT_TRUE(source) << source.error().what;
    std::string line;
    EXPECT_FALSE(source->next(line));
    EXPECT_NE(source->error().find("longer than 64 MiB"), std::string::npos);
}

}  // namespace
}  // namespace hw::core
