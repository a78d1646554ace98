// SPDX-License-Identifier: MIT
// Memory that the program lends to a tensor (from_numpy, frombuffer, dlpack, from_blob) and takes
// back when the tensor is gone: it closes the file, frees or unmaps. A reference of ours would
// stand in its way (BufferError), or outlive the memory. So nothing holds such a storage: its bytes
// are copied at its end, as long as something may still read them.
#pragma once

#include <c10/core/StorageImpl.h>

#include <atomic>
#include <memory>

namespace hw::live::runtime {

class LentMemory {
public:
    /// Of a storage whose end can be seen; null: it is the framework's, or is shared between
    /// processes, which look at how its memory ends.
    static std::shared_ptr<LentMemory> of(c10::StorageImpl& storage);

    explicit LentMemory(const c10::StorageImpl& storage);

    /// The bytes at the end of the storage, which has come, in memory of our own; null where there
    /// was none for them. Any thread.
    c10::intrusive_ptr<c10::StorageImpl> copy();

private:
    enum class State { There, Leaves, Gone };

    const void* data_;
    std::size_t bytes_;
    std::atomic<State> state_{State::There};
    c10::intrusive_ptr<c10::StorageImpl> copy_;
};

}  // namespace hw::live::runtime
