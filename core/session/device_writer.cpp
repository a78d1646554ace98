// SPDX-License-Identifier: MIT
// The part of SessionWriter about devices and what they did.
#include "core/session/guarded.h"
#include "core/session/session_writer.h"
#include "core/session/statements.h"

namespace hw::core {

SessionWriter::DeviceStatements& SessionWriter::deviceStatements() {
    if (!deviceStatements_) deviceStatements_ = std::make_unique<DeviceStatements>(*database_);
    return *deviceStatements_;
}

Result<std::int64_t> SessionWriter::device(const std::string& kind, std::int64_t ordinal) {
    return guarded(path_, "writing a device", [&] {
        DeviceStatements& to = deviceStatements();
        const std::pair key(kind, ordinal);
        if (const auto at = to.known.find(key); at != to.known.end()) return at->second;
        to.find.bind(1, kind).bind(2, ordinal);
        const bool there = to.find.step();
        std::int64_t id = there ? to.find.integer(0) : 0;
        to.find.reset();
        if (!there) {
            to.device.bind(1, kind).bind(2, ordinal).execute();
            id = database_->lastInsertId();
        }
        to.known.emplace(key, id);
        return id;
    });
}

Status SessionWriter::describeDevice(std::int64_t device, const std::string& name,
                                     std::optional<std::int64_t> capacityBytes) {
    return guarded(path_, "writing a device", [&] {
        deviceStatements().describe.bind(1, device).bind(2, name).bind(3, capacityBytes).execute();
    });
}

Status SessionWriter::insertKernel(const DeviceWorkRow& row) {
    return guarded(path_, "writing a kernel", [&] {
        Statement& to = deviceStatements().kernel;
        to.bind(1, row.device).bind(2, row.stream).bind(3, row.name).bind(4, row.beginNs);
        to.bind(5, row.endNs).bind(6, row.op).bind(7, row.correlation).execute();
    });
}

Status SessionWriter::insertCopy(const DeviceWorkRow& row) {
    return guarded(path_, "writing a copy", [&] {
        Statement& to = deviceStatements().copy;
        to.bind(1, row.device).bind(2, row.stream).bind(3, row.name).bind(4, row.bytes);
        to.bind(5, row.beginNs).bind(6, row.endNs).bind(7, row.op).execute();
    });
}

Status SessionWriter::insert(const RangeRow& row) {
    return guarded(path_, "writing a range", [&] {
        Statement& to = deviceStatements().range;
        to.bind(1, row.kind).bind(2, row.name).bind(3, row.thread);
        to.bind(4, row.beginNs).bind(5, row.endNs).execute();
    });
}

Status SessionWriter::chargeKernels() {
    return guarded(path_, "writing the times of kernels", [&] {
        database_->execute(
            "UPDATE ops SET device_ns = k.total FROM (SELECT op, sum(end_ns - begin_ns) AS total"
            " FROM kernels WHERE op IS NOT NULL GROUP BY op) k WHERE k.op = ops.id");
    });
}

}  // namespace hw::core
