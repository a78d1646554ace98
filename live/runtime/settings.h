// SPDX-License-Identifier: MIT
// Settings of the process and of the thread that change what a kernel computes: precision, flags of
// back ends, determinism, denormals, threads, default type. An op that runs again runs under those
// of its first run, as it does with its generator's state.
#pragma once

#include <array>
#include <cstdint>

namespace hw::live::runtime {

class Settings {
public:
    /// As they are now in this thread. The same settings are at the same address, for good.
    static const Settings* now();

    bool operator==(const Settings& other) const { return values_ == other.values_; }

private:
    friend class UnderSettings;
    static constexpr std::size_t kMost = 40;

    /// Sets what is different now.
    void apply() const;

    std::array<std::int64_t, kMost> values_{};
};

/// While it exists, the settings are those of then.
class UnderSettings {
public:
    /// Null: as they are.
    explicit UnderSettings(const Settings* then);
    ~UnderSettings();
    UnderSettings(const UnderSettings&) = delete;
    UnderSettings& operator=(const UnderSettings&) = delete;

private:
    const Settings* before_;
    bool changed_ = false;
};

}  // namespace hw::live::runtime
