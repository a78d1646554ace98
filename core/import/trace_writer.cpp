// SPDX-License-Identifier: MIT
#include "core/import/trace_writer.h"

namespace hw::core {

TraceWriter::TraceWriter(Session& session)
    : session_(session),
      device_(session.database(),
              "INSERT INTO devices(id, process, kind, ordinal)"
              " VALUES(?,(SELECT coalesce(min(id), 1) FROM processes),?,?)"),
      describe_(session.database(),
                "UPDATE devices SET name = ?2, capacity_bytes = ?3 WHERE id = ?1"),
      kernel_(session.database(),
              "INSERT INTO kernels(device, stream, name, begin_ns, end_ns, op, correlation)"
              " VALUES(?,?,?,?,?,?,?)"),
      copy_(session.database(),
            "INSERT INTO copies(device, stream, kind, bytes, begin_ns, end_ns, op)"
            " VALUES(?,?,?,?,?,?,?)") {}

std::int64_t TraceWriter::device(const std::string& kind, std::int64_t ordinal) {
    const auto [at, isNew] = devices_.try_emplace(std::pair(kind, ordinal),
                                                  static_cast<std::int64_t>(devices_.size()) + 1);
    if (isNew) {
        device_.bind(1, at->second).bind(2, kind).bind(3, ordinal).execute();
        deviceRows_[at->second] = {kind, ordinal};
    }
    return at->second;
}

void TraceWriter::describe(std::int64_t device, const std::string& name,
                           std::optional<std::int64_t> capacityBytes) {
    describe_.bind(1, device).bind(2, name).bind(3, capacityBytes).execute();
}

void TraceWriter::kernel(const TraceDeviceWork& work) {
    kernel_.bind(1, work.device).bind(2, work.stream).bind(3, work.name).bind(4, work.beginNs);
    kernel_.bind(5, work.endNs).bind(6, work.op).bind(7, work.correlation).execute();
}

void TraceWriter::copy(const TraceDeviceWork& work) {
    copy_.bind(1, work.device).bind(2, work.stream).bind(3, work.name).bind(4, work.bytes);
    copy_.bind(5, work.beginNs).bind(6, work.endNs).bind(7, work.op).execute();
}

void TraceWriter::gap(const std::string& what, const std::string& why) {
    require(session_.insert(GapRow{{}, {}, {}, what, why}));
}

void TraceWriter::require(const Status& status) {
    if (!status) throw DatabaseError{0, status.error().what};
}

std::optional<std::int64_t> TraceWriter::layer(std::optional<std::int64_t> parent,
                                               const std::string& name, const std::string& type,
                                               const char* separator) {
    const auto known = layers_.find({parent.value_or(0), name});
    if (known != layers_.end()) return known->second;
    std::string path =
        parent ? paths_[static_cast<std::size_t>(*parent) - 1] + separator + name : name;
    if (paths_.size() >= kMostLayers || path.size() > kLongestPath) {
        if (!std::exchange(layersLeftOut_, true))
            gap("layers", "the trace names more or deeper layers than are kept (" +
                              std::to_string(kMostLayers) + ", paths of " +
                              std::to_string(kLongestPath) + " bytes)");
        return parent;
    }
    // Two ways to one path ("a.b" below the root, "b" below "a") are one layer.
    const auto [at, isNew] =
        byPath_.try_emplace(path, static_cast<std::int64_t>(paths_.size()) + 1);
    if (isNew) {
        require(session_.insert(LayerRow{at->second, parent, path, type}));
        paths_.push_back(std::move(path));
    }
    layers_[{parent.value_or(0), name}] = at->second;
    return at->second;
}

}  // namespace hw::core
