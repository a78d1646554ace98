// SPDX-License-Identifier: MIT
// Where files to read lie: samples in the repository, made up and small, and public ones of the
// same form where they are.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

namespace hw::test {

/// The folder of the public files, which need not be there.
inline std::string publicData() {
    const char* folder = std::getenv("HIGHWATER_TEST_DATA");
    return folder != nullptr && *folder != '\0' ? folder : DEFAULT_TEST_DATA;
}

/// The folders that hold all of `names`: tests/samples, and the public one.
inline std::vector<std::string> dataFolders(std::initializer_list<const char*> names) {
    std::vector<std::string> folders;
    for (const std::string& folder : {std::string(TEST_SAMPLES), publicData()})
        if (std::all_of(names.begin(), names.end(), [&](const char* name) {
                return std::filesystem::exists(folder + "/" + name);
            }))
            folders.push_back(folder);
    return folders;
}

/// The files of those names (`simrd/unet.log.gz`) in both folders, as many as there are.
inline std::vector<std::string> dataFiles(std::initializer_list<const char*> names) {
    std::vector<std::string> files;
    for (const char* name : names)
        for (const std::string& folder : dataFolders({name})) files.push_back(folder + "/" + name);
    return files;
}

inline std::vector<std::string> simrdLogs() {
    return dataFiles({"simrd/resnet32.log.gz", "simrd/transformer.log.gz", "simrd/treelstm.log.gz",
                      "simrd/unet.log.gz"});
}

/// Of a test with such a folder or file: Samples, Public_simrd_unet_log_gz.
inline std::string dataName(const std::string& path) {
    const bool sample = path.starts_with(TEST_SAMPLES);
    std::string name = sample ? "Samples" : "Public";
    for (const char c : path.substr((sample ? std::string(TEST_SAMPLES) : publicData()).size()))
        name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    return name;
}
inline std::string dataNameOf(const testing::TestParamInfo<std::string>& info) {
    return dataName(info.param);
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

/// Runs the tests of a suite with each folder that holds these files.
#define HW_WITH_DATA(suite, ...)                                                                   \
    INSTANTIATE_TEST_SUITE_P(Data, suite, testing::ValuesIn(hw::test::dataFolders({__VA_ARGS__})), \
                             hw::test::dataNameOf)
