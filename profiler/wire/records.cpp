// SPDX-License-Identifier: MIT
#include "profiler/wire/records.h"

#include <bit>
#include <cstring>
#include <type_traits>

namespace hw::profiler::wire {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

/// Reads fields one after another; the first that does not fit makes everything after it fail.
class Fields {
public:
    explicit Fields(Payload payload) : rest_(payload) {}

    template <class... Values>
    bool read(Values&... values) {
        return (one(values) && ...);
    }

    /// A u32 or u16 count of items that take at least `itemBytes` each.
    template <class Count = std::uint32_t>
    bool count(std::size_t& n, std::size_t itemBytes) {
        Count value{};
        if (!one(value) || value > rest_.size() / itemBytes) return false;
        n = value;
        return true;
    }

    bool numbers(std::vector<std::int64_t>& values, std::size_t n) {
        if (n > rest_.size() / sizeof(std::int64_t)) return false;
        values.resize(n);
        for (auto& value : values)
            if (!one(value)) return false;
        return true;
    }

    void rest(std::vector<std::byte>& data) {
        data.assign(rest_.begin(), rest_.end());
        rest_ = {};
    }

    bool done() const { return rest_.empty(); }

private:
    template <class Value>
    requires(std::is_arithmetic_v<Value> || std::is_enum_v<Value>) bool one(Value& value) {
        if (rest_.size() < sizeof(Value)) return false;
        std::memcpy(&value, rest_.data(), sizeof(Value));
        rest_ = rest_.subspan(sizeof(Value));
        return true;
    }

    bool one(std::string& text) {
        std::uint32_t length = 0;
        if (!one(length) || length > rest_.size()) return false;
        text.assign(reinterpret_cast<const char*>(rest_.data()), length);
        rest_ = rest_.subspan(length);
        return true;
    }

    Payload rest_;
};

}  // namespace

bool decode(Payload payload, HelloRecord& record) {
    Fields fields(payload);
    return fields.read(record.pid) && fields.done();
}

bool decode(Payload payload, ProcessRecord& record) {
    Fields fields(payload);
    return fields.read(record.framework, record.version, record.command, record.startedNs,
                       record.rank, record.worldSize, record.run) &&
           fields.done();
}

bool decode(Payload payload, MilestoneRecord& record) {
    Fields fields(payload);
    return fields.read(record.what) && fields.done();
}

bool decode(Payload payload, LayerRecord& record) {
    Fields fields(payload);
    return fields.read(record.id, record.parent, record.path, record.type) && fields.done();
}

bool decode(Payload payload, StorageRecord& record) {
    Fields fields(payload);
    return fields.read(record.id, record.seq, record.bytes, record.creator, record.layer,
                       record.address, record.category, record.device) &&
           fields.done();
}

bool decode(Payload payload, TensorRecord& record) {
    Fields fields(payload);
    std::size_t dimensions = 0;
    return fields.read(record.id, record.storage, record.creator, record.offset, record.dtype) &&
           fields.count<std::uint16_t>(dimensions, 2 * sizeof(std::int64_t)) &&
           fields.numbers(record.sizes, dimensions) && fields.numbers(record.strides, dimensions) &&
           fields.done();
}

bool decode(Payload payload, OpRecord& record) {
    Fields fields(payload);
    if (!fields.read(record.id, record.seq, record.beginNs, record.durationNs, record.workspace,
                     record.live, record.layer, record.thread, record.stack, record.phase,
                     record.random, record.name, record.overload, record.args))
        return false;
    std::size_t n = 0;
    if (!fields.count(n, 12)) return false;
    record.inputs.resize(n);
    for (auto& input : record.inputs)
        if (!fields.read(input.tensor, input.version)) return false;
    if (!fields.count(n, 9)) return false;
    record.outputs.resize(n);
    for (auto& output : record.outputs) {
        std::uint8_t makes = 0;
        if (!fields.read(output.tensor, makes) || makes > 1) return false;
        output.makes = makes == 1;
    }
    if (!fields.count(n, 12)) return false;
    record.writes.resize(n);
    for (auto& write : record.writes)
        if (!fields.read(write.storage, write.before)) return false;
    return fields.done();
}

bool decode(Payload payload, SourceFrameRecord& record) {
    Fields fields(payload);
    return fields.read(record.id, record.line, record.framework, record.file, record.function) &&
           fields.done();
}

bool decode(Payload payload, StackNodeRecord& record) {
    Fields fields(payload);
    return fields.read(record.id, record.parent, record.source) && fields.done();
}

bool decode(Payload payload, FreeRecord& record) {
    Fields fields(payload);
    return fields.read(record.storage, record.seq) && fields.done();
}

bool decode(Payload payload, CategoryRecord& record) {
    Fields fields(payload);
    std::size_t n = 0;
    return fields.read(record.category, record.layer) && fields.count(n, sizeof(std::int64_t)) &&
           fields.numbers(record.storages, n) && fields.done();
}

bool decode(Payload payload, ResizeRecord& record) {
    Fields fields(payload);
    return fields.read(record.storage, record.bytes) && fields.done();
}

bool decode(Payload payload, ContentsRecord& record) {
    Fields fields(payload);
    if (!fields.read(record.seq, record.storage, record.total, record.offset)) return false;
    fields.rest(record.data);
    return true;
}

bool decode(Payload payload, GeneratorRecord& record) {
    Fields fields(payload);
    if (!fields.read(record.seq, record.id, record.device)) return false;
    fields.rest(record.state);
    return true;
}

bool decode(Payload payload, StepStartRecord& record) {
    Fields fields(payload);
    return fields.read(record.seq, record.timeNs, record.live) && fields.done();
}

bool decode(Payload payload, StepEndRecord& record) {
    Fields fields(payload);
    std::size_t n = 0;
    return fields.read(record.seq, record.timeNs, record.live, record.peak, record.environment) &&
           fields.count(n, sizeof(std::int64_t)) && fields.numbers(record.tensors, n) &&
           fields.done();
}

bool decode(Payload payload, GapRecord& record) {
    Fields fields(payload);
    return fields.read(record.beginNs, record.endNs, record.what, record.why) && fields.done();
}

bool decode(Payload payload, FaultRecord& record) {
    Fields fields(payload);
    return fields.read(record.what) && fields.done();
}

bool decode(Payload payload, DeviceRecord& record) {
    Fields fields(payload);
    return fields.read(record.ordinal, record.capacity, record.name) && fields.done();
}

bool decode(Payload payload, ClockRecord& record) {
    Fields fields(payload);
    return fields.read(record.deviceNs, record.hostNs, record.widthNs) && fields.done();
}

bool decode(Payload payload, NameRecord& record) {
    Fields fields(payload);
    return fields.read(record.id, record.text) && fields.done();
}

bool decode(Payload payload, ActivitiesRecord& record) {
    Fields fields(payload);
    std::size_t n = 0;
    std::vector<std::byte> data;
    if (!fields.count(n, sizeof(Activity))) return false;
    fields.rest(data);
    if (data.size() != n * sizeof(Activity)) return false;
    record.activities.resize(n);
    if (n > 0) std::memcpy(record.activities.data(), data.data(), data.size());
    for (const Activity& activity : record.activities)
        if (activity.kind == 0 || activity.kind >= kActivityKinds) return false;
    return true;
}

bool decode(Payload payload, RefusalRecord& record) {
    Fields fields(payload);
    return fields.read(record.code, record.what, record.hint) && fields.done();
}

bool decode(Payload payload, FootprintRecord& record) {
    Fields fields(payload);
    return fields.read(record.timeNs, record.ordinal, record.bytes) && fields.done();
}

bool decode(Payload payload, LiveStepRecord& record) {
    Fields fields(payload);
    return fields.read(record.step, record.beginNs, record.endNs, record.peak, record.recomputed,
                       record.restored, record.pinned, record.ops, record.runtimeNs,
                       record.recomputedNs, record.evictions, record.verified, record.verifyingNs,
                       record.uncompared, record.offloaded, record.waitedNs, record.mode) &&
           record.mode <= LiveMode::Mimose && fields.done();
}

bool decode(Payload payload, LiveDivergenceRecord& record) {
    Fields fields(payload);
    return fields.read(record.step, record.op, record.expected, record.found) && fields.done();
}

bool decode(Payload payload, LiveCurveRecord& record) {
    Fields fields(payload);
    std::size_t n = 0;
    return fields.read(record.step, record.base) && fields.count(n, sizeof(std::int64_t)) &&
           fields.numbers(record.bytes, n) && fields.done();
}

bool decode(Payload payload, LiveRescueRecord& record) {
    Fields fields(payload);
    return fields.read(record.step, record.allocations, record.refused, record.bytes, record.freed,
                       record.evictions, record.op) &&
           fields.done();
}

bool decode(Payload payload, LiveMismatchRecord& record) {
    Fields fields(payload);
    return fields.read(record.op, record.program, record.bytes, record.kind, record.name,
                       record.layer, record.line) &&
           record.kind <= MismatchKind::NotDeterministic && fields.done();
}

bool decode(Payload payload, LiveNoteRecord& record) {
    Fields fields(payload);
    return fields.read(record.kind, record.text) && record.kind <= LiveNoteKind::Fault &&
           fields.done();
}

std::vector<std::byte> encode(const ConfigRecord& record) {
    std::vector<std::byte> bytes(sizeof(record));
    static_assert(sizeof(ConfigRecord) == 32 + 2 * kPathBytes);
    std::memcpy(bytes.data(), &record, sizeof(record));
    return bytes;
}

}  // namespace hw::profiler::wire
