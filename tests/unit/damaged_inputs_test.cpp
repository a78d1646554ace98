// SPDX-License-Identifier: MIT
// Every sample, cut short and with flipped bits: an error of one line, or an import that
// says what is missing; never a crash, and nothing but the input in its folder.
// HIGHWATER_DAMAGES=1000 tries as many of each kind (default: few, for a quick test).
#include <zlib.h>

#include <fstream>
#include <iterator>
#include <random>

#include "tests/unit/memory_rows.h"

namespace hw::core {
namespace {

std::string contentsOf(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}
std::string unpacked(const std::string& path, std::size_t limit) {
    std::string text(limit, '\0');
    gzFile file = gzopen(path.c_str(), "rb");
    const int got = gzread(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
}
int damages(int otherwise) {
    const char* wanted = std::getenv("HIGHWATER_DAMAGES");
    return wanted != nullptr ? std::atoi(wanted) : otherwise;
}

struct Damaged {
    std::string file;
    int quick;  // of each kind
};
void PrintTo(const Damaged& damaged, std::ostream* out) {
    *out << damaged.file;
}

std::vector<Damaged> damagedFiles() {
    std::vector<Damaged> files;
    for (const auto& [name, quick] : std::initializer_list<std::pair<const char*, int>>{
             {"torch-snapshot/before-history.pickle.gz", 10},
             {"torch-snapshot/empty-cache.pickle.gz", 10},
             {"torch-snapshot/expandable.pickle.gz", 10},
             {"torch-snapshot/no-free-requested.pickle.gz", 10},
             {"kineto/gpu-2021.json.gz", 10},
             {"kineto/gpu-rank1.json.gz", 10},
             {"kineto/resnet50-train.pt.trace.json.gz", 10},
             {"kineto/v100-rank1-memory.json.gz", 10},
             {"execution-trace/training_et.json.gz", 10},
             {"execution-trace/training_trace.json.gz", 10},
             {"execution-trace/benchmark_simple_add_et.json.gz", 50},
             {"execution-trace/benchmark_simple_add_trace.json.gz", 50},
             {"nsight/memory.sqlite", 20},
             {"nsight/kernels-and-copies.sqlite", 20},
             {"torch-snapshot/memory_timeline.raw.gz", 10},
             {"simrd/unet.log.gz", 8},
             {"simrd/resnet32.log.gz", 8},
             {"simrd/transformer.log.gz", 4},
             {"simrd/treelstm.log.gz", 4},
             {"minimalloc/A.1048576.csv", 50}})
        for (const std::string& file : test::dataFiles({name})) files.push_back({file, quick});
    return files;
}

class DamagedInput : public testing::TestWithParam<Damaged> {
protected:
    // Opens `bytes` as a file of the sample's name.
    void open(const std::string& bytes, const std::string& name, bool cut) {
        const std::string path = folder_ / name;
        std::ofstream(path, std::ios::binary) << bytes;
        const bool table = name.find(".csv") != std::string::npos;  // may end after any line
        if (auto session = openAny(path); !session) {
            EXPECT_EQ(session.error().code, ErrorCode::BadInput);
            EXPECT_EQ(session.error().what.find('\n'), std::string::npos) << session.error().what;
        } else if (const auto step = session->lastStep()) {
            static_cast<void>(loadGraph(*session, *step));
        } else if (cut && !table) {
            EXPECT_TRUE(test::hasGap(*session, "end")) << bytes.size();
        }
        int files = 0;
        for ([[maybe_unused]] const auto& entry :
             std::filesystem::directory_iterator(std::filesystem::path(path).parent_path()))
            ++files;
        EXPECT_EQ(files, 1);
        std::filesystem::remove(path);
    }
    test::TemporaryFolder folder_;
};

// Large traces are damaged in their first part: the rest is more of the same.
constexpr std::size_t kPart = 300'000;

TEST_P(DamagedInput, GivesOneClearErrorOrAGap) {
    const std::string& file = GetParam().file;
    std::mt19937 random(7);
    const std::string packed = contentsOf(file), plain = unpacked(file, kPart);
    std::string name = std::filesystem::path(file).filename().string();
    const bool gz = name.ends_with(".gz");
    const std::string plainName = gz ? name.substr(0, name.size() - 3) : name;
    const bool whole = packed.size() < kPart;
    for (int i = 0; i < damages(GetParam().quick); ++i) {
        open(plain.substr(0, random() % plain.size()), plainName, true);
        std::string flipped = plain;
        for (int bits = 0; bits < 3; ++bits)
            flipped[random() % flipped.size()] ^= static_cast<char>(1u << (random() % 8));
        open(flipped, plainName, false);
        if (!gz || !whole) continue;
        open(packed.substr(0, 1 + random() % (packed.size() - 1)), name, true);
        flipped = packed;
        flipped[random() % flipped.size()] ^= static_cast<char>(1u << (random() % 8));
        open(flipped, name, false);
    }
}
INSTANTIATE_TEST_SUITE_P(Data, DamagedInput, testing::ValuesIn(damagedFiles()),
                         [](const auto& info) { return test::dataName(info.param.file); });

}  // namespace
}  // namespace hw::core
