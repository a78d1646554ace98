// SPDX-License-Identifier: MIT
// What foreign traces add to a session besides ops: devices, memory events, kernels, copies,
// layers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/session/database.h"
#include "core/session/session.h"

namespace hw::core {

/// Runs an importer's work: its exceptions (wrong input, SQLite's) become one Error. `format` names
/// the input, `hint` says what to do about a wrong one.
template <class Work>
Status importing(const std::string& format, const std::string& hint, Work work) {
    try {
        return work();
    } catch (const DatabaseError& error) {
        return badInput("writing the imported " + format + " failed: " + error.message,
                        "check that the folder is writable and has room");
    } catch (const std::exception& error) {
        return badInput(format + ": " + error.what(), hint);
    }
}

/// A row of the devices table.
struct TraceDevice {
    std::string kind;
    std::int64_t ordinal = 0;  // of MemoryEventRow::device; -1: the host

    /// As StorageRow::device names it: "cpu", "cuda:0".
    std::string name() const { return ordinal < 0 ? kind : kind + ":" + std::to_string(ordinal); }
};

/// A kernel or copy on a device. Times in nanoseconds on the axis of the ops.
struct TraceDeviceWork {
    std::optional<std::int64_t> device, stream;
    std::string name;        // of a copy: its kind
    std::int64_t bytes = 0;  // of a copy
    std::int64_t beginNs = 0, endNs = 0;
    std::optional<std::int64_t> op, correlation;
};

/// Throws DatabaseError where SQLite does, and lets Session's errors pass as one.
class TraceWriter {
public:
    explicit TraceWriter(Session& session);

    /// The id of a device, which is written when it is first named: "cuda" 0, "cpu" -1.
    std::int64_t device(const std::string& kind, std::int64_t ordinal);
    /// Adds what is known of a device.
    void describe(std::int64_t device, const std::string& name,
                  std::optional<std::int64_t> capacityBytes);
    const TraceDevice& deviceOf(std::int64_t id) const { return deviceRows_.at(id); }
    void memory(const MemoryEventRow& event) { require(session_.insert(event)); }
    void kernel(const TraceDeviceWork& work);
    void copy(const TraceDeviceWork& work);
    void gap(const std::string& what, const std::string& why);
    void require(const Status& status);  // throws when it is an error

    /// The layer `name` below `parent`, written when it is first named; its path joins the names
    /// with `separator`. None beyond kMostLayers (a gap says so) and kDeepest levels.
    std::optional<std::int64_t> layer(std::optional<std::int64_t> parent, const std::string& name,
                                      const std::string& type, const char* separator);

    static constexpr std::size_t kMostLayers = 100'000;
    static constexpr std::size_t kLongestPath = 4096;  // bytes

private:
    Session& session_;
    Statement device_, describe_, kernel_, copy_;
    std::map<std::pair<std::string, std::int64_t>, std::int64_t> devices_;
    std::map<std::int64_t, TraceDevice> deviceRows_;
    std::map<std::pair<std::int64_t, std::string>, std::int64_t> layers_;  // by parent and name
    std::unordered_map<std::string, std::int64_t> byPath_;
    std::vector<std::string> paths_;  // by layer id
    bool layersLeftOut_ = false;
};

}  // namespace hw::core
