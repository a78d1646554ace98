// SPDX-License-Identifier: MIT
// Addresses of functions, found in the file of a library that this very process has mapped.
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>

#include "profiler/attach/call_frame.h"
#include "profiler/attach/elf_symbols.h"
#include "profiler/attach/process.h"
#include "tests/unit/test_data.h"

namespace hw::profiler {
namespace {

const std::array<const char*, 3> kNames{"mmap", "no_such_function", "dlopen"};

MappedFile libc() {
    const auto files = mappedFiles(getpid());
    for (const MappedFile& file : *files)
        if (fileName(file.path).starts_with("libc.so")) return file;
    return {};
}

TEST(ElfSymbols, AreWhereTheLoaderFindsThem) {
    const MappedFile file = libc();
    ASSERT_FALSE(file.path.empty());
    const auto found = functionAddresses(file.path, file.start, kNames);
    ASSERT_TRUE(found);
    EXPECT_EQ((*found)[0],
              reinterpret_cast<std::uint64_t>(dlsym(dlopen("libc.so.6", RTLD_LAZY), "mmap")));
    EXPECT_EQ((*found)[1], 0u);
    EXPECT_EQ((*found)[2],
              reinterpret_cast<std::uint64_t>(dlsym(dlopen("libc.so.6", RTLD_LAZY), "dlopen")));
}

TEST(ElfSymbols, FindsCodeInExecutableSegments) {
    const MappedFile file = libc();
    const auto at = codeAddress(file.path, file.start, kRestoreCode);
    ASSERT_TRUE(at);
    EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(*at), kRestoreCode.size()),
              kRestoreCode);
    EXPECT_FALSE(codeAddress(file.path, file.start, "code that no library has"));
    EXPECT_FALSE(codeAddress("/no such file", file.start, kRestoreCode));
}

TEST(ElfSymbols, DamagedFilesAreRefusedOrSurvived) {
    const MappedFile file = libc();
    std::ifstream input(file.path, std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(input), {}};
    test::TemporaryFolder folder;
    const std::string path = folder / "damaged.so";
    for (std::size_t keep = 0; keep < 4096; keep += 61) {
        std::ofstream(path, std::ios::binary) << whole.substr(0, keep);
        EXPECT_FALSE(functionAddresses(path, 0, kNames)) << keep;
    }
    for (std::size_t at = 0; at < sizeof(std::uint64_t) * 8; ++at) {
        std::string flipped = whole;
        flipped[at] ^= 0x55;
        std::ofstream(path, std::ios::binary) << flipped;
        functionAddresses(path, 0, kNames);  // whatever it says, it comes back
        codeAddress(path, 0, kRestoreCode);
    }
    EXPECT_FALSE(functionAddresses(folder / "none", 0, kNames));
}

TEST(Process, TellsOfItself) {
    const auto status = statusOf(getpid());
    ASSERT_TRUE(status);
    EXPECT_EQ(status->uid, geteuid());
    EXPECT_EQ(status->parent, getppid());
    EXPECT_EQ(status->tracer, 0);
    EXPECT_NE(commandOf(getpid()).find("unit_tests"), std::string::npos);
    EXPECT_FALSE(statusOf(0x7ffffff));
}

}  // namespace
}  // namespace hw::profiler
