// SPDX-License-Identifier: MIT
#include "executor/replay/memory_source.h"

#include <cstdlib>
#include <cstring>

#include "core/memory/layout.h"

namespace hw::executor {
namespace {

class HostMemory final : public MemorySource {
public:
    void* take(std::size_t bytes, std::size_t alignment) override {
        return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    }
    void give(void* block) override { std::free(block); }
    void fill(void* block, int byte, std::size_t bytes) override {
        std::memset(block, byte, bytes);
    }
    core::Bytes alignment() const override { return core::kArenaAlignment; }
};

}  // namespace

MemorySource& hostMemory() {
    static HostMemory memory;
    return memory;
}

}  // namespace hw::executor
