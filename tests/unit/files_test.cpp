// SPDX-License-Identifier: MIT
// What is written, where temporary files lie, and what goes to a terminal.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/file.h"
#include "core/base/printable.h"
#include "profiler/framework/used_torches.h"
#include "tests/unit/test_data.h"

namespace hw {
namespace {

/// Sets a variable for as long as it lives.
class Variable {
public:
    Variable(const char* name, const std::string& value) : name_(name) {
        if (const char* before = std::getenv(name)) before_ = before;
        setenv(name, value.c_str(), 1);
    }
    ~Variable() {
        if (before_)
            setenv(name_, before_->c_str(), 1);
        else
            unsetenv(name_);
    }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    const char* name_;
    std::optional<std::string> before_;
};

std::string contents(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST(WritingFiles, WithoutRoomLeavesWhatWasThere) {
    const test::TemporaryFolder folder;
    const std::string path = folder / "f";
    ASSERT_TRUE(core::writeFileAtomically(path, "before"));
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const rlimit most{100, 100};  // bytes of a file
        setrlimit(RLIMIT_FSIZE, &most);
        signal(SIGXFSZ, SIG_IGN);
        const core::Status written = core::writeFileAtomically(path, std::string(1000, 'x'));
        _exit(!written && written.error().code == core::ErrorCode::Internal ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(contents(path), "before");
    EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST(WritingFiles, DoesNotFollowALinkInItsWay) {
    const test::TemporaryFolder folder;
    const std::string path = folder / "f", precious = folder / "precious";
    std::ofstream(precious) << "precious";
    std::filesystem::create_symlink(precious, path + ".partial");
    ASSERT_TRUE(core::writeFileAtomically(path, "text"));
    EXPECT_EQ(contents(path), "text");
    EXPECT_EQ(contents(precious), "precious");
}

TEST(WritingFiles, IntoAFolderThatIsNotThereIsBadInput) {
    const core::Status written = core::writeFileAtomically("/nowhere/f", "text");
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, core::ErrorCode::BadInput);
}

TEST(ReadingFiles, EndsWhereADeviceDoesNot) {
    const auto read = core::readTextFile("/dev/zero", "plan");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, core::ErrorCode::BadInput);
    EXPECT_NE(read.error().what.find("longer than any plan"), std::string::npos);
    EXPECT_FALSE(core::readTextFile("/tmp", "plan"));
    EXPECT_FALSE(core::readTextFile("/no/such/file", "plan"));
    EXPECT_EQ(*core::readTextFile("/dev/null", "plan"), "");
}

TEST(ScratchFolder, GoesWhereThereIsAFolder) {
    const Variable nowhere("TMPDIR", "/nowhere");
    const core::ScratchFolder scratch;
    EXPECT_EQ(scratch.path().parent_path(), "/tmp");
}

TEST(ScratchFolder, SweepsWhatKilledProcessesHaveLeft) {
    const test::TemporaryFolder folder;
    const std::filesystem::path parent(folder / "");
    const core::ScratchFolder lives(parent);
    std::filesystem::create_directory(parent / "highwater-scratch.abc123");
    std::filesystem::create_directory(parent / "highwater-scratch.new123");
    // Somebody's own.
    for (const char* name : {"highwater.results", "highwater-scratch.results", "highwater-scratch"})
        std::filesystem::create_directory(parent / name);
    const auto longAgo = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
    for (const std::filesystem::path& old :
         {lives.path(), parent / "highwater-scratch.abc123", parent / "highwater.results",
          parent / "highwater-scratch.results", parent / "highwater-scratch"})
        std::filesystem::last_write_time(old, longAgo);
    const core::ScratchFolder next(parent);
    EXPECT_FALSE(std::filesystem::exists(parent / "highwater-scratch.abc123"));
    EXPECT_TRUE(std::filesystem::exists(parent / "highwater-scratch.new123"));
    for (const char* name : {"highwater.results", "highwater-scratch.results", "highwater-scratch"})
        EXPECT_TRUE(std::filesystem::exists(parent / name)) << name;
    EXPECT_TRUE(std::filesystem::exists(lives.path()));
}

TEST(PrintableOnly, LeavesTextAndTakesControlCharacters) {
    std::ostringstream text;
    {
        const core::PrintableOnly only(text);
        text << "a\x1b[31mb\r\n\tü \xc2\x9b"
             << "2J \xc2\xa0é\x7f 漢\xf0\x9f\x99\x82\xe2\x80\xae\xed\xa0\x80\xff \xc2";
    }
    EXPECT_EQ(text.str(), "a?[31mb?\n\tü ?2J \xc2\xa0é? 漢\xf0\x9f\x99\x82??? ?");
}

TEST(UsedTorches, AreThoseThatWereRemembered) {
    const test::TemporaryFolder folder;
    const Variable state("XDG_STATE_HOME", folder / "state");
    for (const char* name : {"used", "other"}) {
        const std::filesystem::path lib(folder / (std::string(name) + "/lib"));
        std::filesystem::create_directories(lib);
        std::ofstream(lib / "libtorch_cpu.so") << name;
    }
    const std::string library =
        std::filesystem::canonical(folder / "used/lib/libtorch_cpu.so").string();
    EXPECT_FALSE(profiler::isUsedTorch(folder / "used"));
    profiler::rememberTorch(library);
    profiler::rememberTorch(library);
    EXPECT_TRUE(profiler::isUsedTorch(folder / "used"));
    EXPECT_FALSE(profiler::isUsedTorch(folder / "other"));
    EXPECT_FALSE(profiler::isUsedTorch(""));
    const std::string list = folder / "state/highwater/torches";
    EXPECT_EQ(contents(list), library + "\n");
    ASSERT_EQ(chmod(list.c_str(), 0666), 0);  // anybody may have written it
    EXPECT_FALSE(profiler::isUsedTorch(folder / "used"));
}

}  // namespace
}  // namespace hw
