// SPDX-License-Identifier: MIT
// Allocates as the framework's libc10 does: through entries of its own linkage table.
#include <stdlib.h>

extern "C" __attribute__((visibility("default"))) void* standinAllocate(size_t bytes) {
    void* block = nullptr;
    return posix_memalign(&block, 64, bytes) == 0 ? block : nullptr;
}
extern "C" __attribute__((visibility("default"))) void standinFree(void* block) {
    free(block);
}
