// SPDX-License-Identifier: MIT
// What foreign traces add to a session besides ops: devices, memory events, kernels, copies,
// layers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/session/session_writer.h"

namespace hw::core {

/// How an error of the session leaves an importer, which importing() makes an Error again.
struct SessionRefused {
    Error error;
};
/// Throws SessionRefused when it is an error.
void require(const Status& status);
template <class T>
T required(Result<T> result) {
    if (!result) throw SessionRefused{result.error()};
    return std::move(*result);
}

/// Runs an importer's work: its exceptions (wrong input, a session that cannot be written) become
/// one Error. `format` names the input, `hint` says what to do about a wrong one.
template <class Work>
Status importing(const std::string& format, const std::string& hint, Work work) {
    try {
        return work();
    } catch (const SessionRefused& refused) {
        return badInput("writing the imported " + format + " failed: " + refused.error.what,
                        "check that the folder is writable and has room");
    } catch (const std::exception& error) {
        return badInput(format + ": " + error.what(), hint);
    }
}

/// Writes into a session; all that it cannot write is thrown as SessionRefused.
class TraceWriter {
public:
    explicit TraceWriter(SessionWriter& session) : session_(session) {}

    /// The id of a device, which is written when it is first named: "cuda" 0, "cpu" -1.
    std::int64_t device(const std::string& kind, std::int64_t ordinal);
    /// Adds what is known of a device.
    void describe(std::int64_t device, const std::string& name,
                  std::optional<std::int64_t> capacityBytes);
    /// Its kind and ordinal.
    const DeviceRow& deviceOf(std::int64_t id) const { return devices_.at(id); }
    void memory(const MemoryEventRow& event) { require(session_.insert(event)); }
    void kernel(const DeviceWorkRow& work) { require(session_.insertKernel(work)); }
    void copy(const DeviceWorkRow& work) { require(session_.insertCopy(work)); }
    void gap(const std::string& what, const std::string& why);

    /// The layer `name` below `parent`, written when it is first named; its path joins the names
    /// with `separator`. None beyond kMostLayers (a gap says so) and kDeepest levels.
    std::optional<std::int64_t> layer(std::optional<std::int64_t> parent, const std::string& name,
                                      const std::string& type, const char* separator);

    /// A call stack, by its frames, the outermost first; none where there are none.
    std::optional<std::int64_t> stack(const std::vector<SourceFrameRow>& frames);

    static constexpr std::size_t kMostLayers = 100'000;
    static constexpr std::size_t kLongestPath = 4096;  // bytes

private:
    SessionWriter& session_;
    std::map<std::int64_t, DeviceRow> devices_;                            // by id
    std::map<std::pair<std::int64_t, std::string>, std::int64_t> layers_;  // by parent and name
    std::unordered_map<std::string, std::int64_t> byPath_;
    std::vector<std::string> paths_;  // by layer id
    std::map<std::tuple<std::string, std::string, std::int64_t>, std::int64_t> frames_;
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> stacks_;  // by parent and frame
    bool layersLeftOut_ = false;
};

}  // namespace hw::core
