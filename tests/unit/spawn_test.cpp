// SPDX-License-Identifier: MIT
#include "core/base/spawn.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "core/base/file.h"

namespace hw::core {
namespace {

class SpawnTest : public testing::Test {
protected:
    /// What the program writes, and how it ends.
    std::string outputOf(Spawn program, int& status) {
        const std::string path = (folder_.path() / "output").string();
        const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        program.output = file;
        const Spawned spawned = spawn(program);
        close(file);
        EXPECT_EQ(spawned.error, 0);
        status = waitFor(spawned.pid);
        std::ifstream output(path);
        return {std::istreambuf_iterator<char>(output), {}};
    }

    ScratchFolder folder_;
};

TEST_F(SpawnTest, GivesArgumentsStreamsAndEnvironment) {
    int status = -1;
    EXPECT_EQ(outputOf({{"sh", "-c", "echo $0 $NAME", "two words"}, {"NAME=value"}}, status),
              "two words value\n");
    EXPECT_TRUE(succeeded(status));
    setenv("HIGHWATER_SPAWN_TEST", "ours", 1);
    EXPECT_EQ(outputOf({{"sh", "-c", "echo $HIGHWATER_SPAWN_TEST; exit 3"}, {}}, status), "ours\n");
    EXPECT_FALSE(succeeded(status));
    EXPECT_EQ(WEXITSTATUS(status), 3);
}

TEST_F(SpawnTest, RunsAScriptThatNamesNoInterpreter) {
    const std::string script = (folder_.path() / "script").string();
    std::ofstream(script) << "echo as the shell does\n";
    ASSERT_EQ(chmod(script.c_str(), 0700), 0);
    int status = -1;
    EXPECT_EQ(outputOf({{script}, {}}, status), "as the shell does\n");
}

TEST_F(SpawnTest, SaysWhyAProgramCannotBeStarted) {
    EXPECT_EQ(spawn({{"no-such-program-anywhere"}, {}}).error, ENOENT);
    EXPECT_EQ(spawn({{folder_.path().string()}, {}}).error, EACCES);
    EXPECT_EQ(waitFor(getpid()), -1);
}

}  // namespace
}  // namespace hw::core
