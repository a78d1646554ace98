// SPDX-License-Identifier: MIT
// Where the public sample files lie; tests that need them skip where they are absent.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace hw::test {

inline std::string testData(const std::string& name) {
    const char* folder = std::getenv("HIGHWATER_TEST_DATA");
    return std::string(folder != nullptr && *folder != '\0' ? folder : DEFAULT_TEST_DATA) + "/" +
           name;
}

/// A folder of the test's own, empty, removed with it.
class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string name =
            (std::filesystem::temp_directory_path() / "highwater-test-XXXXXX").string();
        path_ = mkdtemp(name.data());
    }
    ~TemporaryFolder() { std::filesystem::remove_all(path_); }
    std::string operator/(const std::string& name) const { return (path_ / name).string(); }

private:
    std::filesystem::path path_;
};

}  // namespace hw::test

#define SKIP_WITHOUT_TEST_DATA(file)                        \
    if (!std::filesystem::exists(hw::test::testData(file))) \
    GTEST_SKIP() << "no " << hw::test::testData(file)       \
                 << "; enable with: export HIGHWATER_TEST_DATA=FOLDER (with simrd/ in it)"
