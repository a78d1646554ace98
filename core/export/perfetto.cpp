// SPDX-License-Identifier: MIT
// Field numbers are those of Perfetto's published protos: trace.proto, trace_packet.proto,
// track_event.proto, track_descriptor.proto, counter_descriptor.proto.
#include "core/export/perfetto.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/base/output_file.h"
#include "core/export/protobuf_writer.h"
#include "core/session/call_stacks.h"

namespace hw::core {
namespace {

namespace trace {
constexpr std::uint32_t kPacket = 1;
}
namespace packet {
constexpr std::uint32_t kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kFlags = 13,
                        kTrackDescriptor = 60;
}
namespace event {
constexpr std::uint32_t kAnnotation = 4, kType = 9, kTrack = 11, kCategory = 22, kName = 23,
                        kCounterValue = 30;
constexpr std::int64_t kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4;
}  // namespace event
namespace annotation {
constexpr std::uint32_t kInteger = 4, kText = 6, kName = 10;
}
namespace track {
constexpr std::uint32_t kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5, kCounter = 8;
constexpr std::uint32_t kPid = 1, kTid = 2, kThreadName = 5, kProcessName = 6;
constexpr std::uint32_t kUnit = 3;
constexpr std::int64_t kBytes = 3;
}  // namespace track

constexpr std::int64_t kProcessTrack = 1, kStepTrack = 2, kGapTrack = 3, kLiveTrack = 10;
constexpr std::int64_t kDeviceTracks = 1000, kThreadTracks = 1'000'000;
/// Perfetto wants small positive thread ids; ours are handles.
constexpr std::int64_t kFirstTid = 1;

class PerfettoWriter {
public:
    PerfettoWriter(const Session& session, OutputFile& out) : session_(session), out_(out) {}

    Status write() {
        auto stacks = CallStacks::load(session_);
        if (!stacks) return stacks.error();
        stacks_ = std::move(*stacks);
        HW_TRY(describeProcess());
        const auto steps = session_.steps();
        if (!steps) return steps.error();
        for (const StepRow& step : *steps) HW_TRY(writeStep(step));
        HW_TRY(writeDevices());
        return writeGaps();
    }

private:
    void put(ProtobufWriter& packet) {
        packet.number(packet::kSequence, 1);
        if (std::exchange(first_, false)) packet.number(packet::kFlags, 1);  // state cleared
        ProtobufWriter all;
        all.message(trace::kPacket, packet);
        out_.write(all.text());
    }
    void putEvent(std::int64_t time, const ProtobufWriter& body) {
        ProtobufWriter packet;
        packet.number(packet::kTimestamp, std::max<std::int64_t>(time, 0));
        packet.message(packet::kTrackEvent, body);
        put(packet);
    }
    void putTrack(const ProtobufWriter& descriptor) {
        ProtobufWriter packet;
        packet.message(packet::kTrackDescriptor, descriptor);
        put(packet);
    }
    void describe(std::int64_t uuid, const std::string& name, bool counter) {
        ProtobufWriter descriptor;
        descriptor.number(track::kUuid, uuid);
        descriptor.number(track::kParent, kProcessTrack);
        descriptor.bytes(track::kName, name);
        if (counter) {
            ProtobufWriter unit;
            unit.number(track::kUnit, track::kBytes);
            descriptor.message(track::kCounter, unit);
        }
        putTrack(descriptor);
    }

    Status describeProcess() {
        const auto processes = session_.processes();
        if (!processes) return processes.error();
        std::string name = "training process";
        if (!processes->empty()) {
            const ProcessRow& first = processes->front();
            if (first.pid > 0) pid_ = first.pid;
            if (!first.command.empty()) name = first.command;
        }
        ProtobufWriter process, descriptor;
        process.number(track::kPid, pid_);
        process.bytes(track::kProcessName, name);
        descriptor.number(track::kUuid, kProcessTrack);
        descriptor.message(track::kProcess, process);
        putTrack(descriptor);
        describe(kStepTrack, "steps", false);
        describe(kLiveTrack, "live", true);
        for (int c = 0; c < kCategoryCount; ++c)
            describe(kLiveTrack + 1 + c,
                     "live: " + std::string(categoryName(static_cast<Category>(c))), true);
        return {};
    }

    std::int64_t threadTrack(std::int64_t thread) {
        const auto [at, isNew] =
            threads_.try_emplace(thread, static_cast<std::int64_t>(threads_.size()));
        const std::int64_t uuid = kThreadTracks + at->second;
        if (!isNew) return uuid;
        ProtobufWriter inner, descriptor;
        inner.number(track::kPid, pid_);
        inner.number(track::kTid, kFirstTid + at->second);
        inner.bytes(track::kThreadName, "thread " + std::to_string(thread));
        descriptor.number(track::kUuid, uuid);
        descriptor.number(track::kParent, kProcessTrack);
        descriptor.message(track::kThread, inner);
        putTrack(descriptor);
        return uuid;
    }

    static ProtobufWriter eventOf(std::int64_t type, std::int64_t uuid) {
        ProtobufWriter body;
        body.number(event::kType, type);
        body.number(event::kTrack, uuid);
        return body;
    }
    void slice(std::int64_t begin, std::int64_t end, std::int64_t uuid,
               const ProtobufWriter& body) {
        putEvent(begin, body);
        putEvent(end, eventOf(event::kEnd, uuid));
    }
    static void annotate(ProtobufWriter& body, const char* name, const std::string& text) {
        ProtobufWriter note;
        note.bytes(annotation::kName, name);
        note.bytes(annotation::kText, text);
        body.message(event::kAnnotation, note);
    }
    static void annotate(ProtobufWriter& body, const char* name, std::int64_t value) {
        ProtobufWriter note;
        note.bytes(annotation::kName, name);
        note.number(annotation::kInteger, value);
        body.message(event::kAnnotation, note);
    }
    /// The line, and the program's own frames that led to it, the innermost first.
    void annotateStack(ProtobufWriter& body, std::int64_t stack) const {
        const SourceFrameRow* line = stacks_.line(stack);
        if (line == nullptr) return;
        annotate(body, "line", frameText(*line));
        std::string all;
        const auto frames = stacks_.frames(stack);
        for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
            if (!(*frame)->framework) all += frameText(**frame) + "\n";
        annotate(body, "call stack", all);
    }
    void counter(std::int64_t time, std::int64_t uuid, std::int64_t value) {
        ProtobufWriter body = eventOf(event::kCounter, uuid);
        body.number(event::kCounterValue, value);
        putEvent(time, body);
    }

    struct OpTime {
        std::int64_t begin = 0, end = 0, workspace = 0;
    };

    Status writeStep(const StepRow& step) {
        const auto spans = session_.opSpans(step.id);
        if (!spans) return spans.error();
        if (spans->empty()) return {};
        const std::map<std::int64_t, OpTime> times = writeOps(*spans);
        ProtobufWriter body = eventOf(event::kBegin, kStepTrack);
        body.bytes(event::kName, "step " + std::to_string(step.id));
        std::int64_t begin = times.begin()->second.begin, end = begin;
        for (const auto& [seq, op] : times)
            begin = std::min(begin, op.begin), end = std::max(end, op.end);
        slice(begin, end, kStepTrack, body);
        return writeLive(step, times);
    }

    std::map<std::int64_t, OpTime> writeOps(const std::vector<OpSpanRow>& spans) {
        std::map<std::int64_t, OpTime> times;
        for (const OpSpanRow& row : spans) {
            OpTime& op = times[row.seq];
            op.begin = row.beginNs, op.end = row.beginNs + row.durationNs;
            // Ops of a thread follow each other; clocks read twice may overlap by a hair.
            if (row.nextBeginNs) op.end = std::min(op.end, *row.nextBeginNs);
            op.workspace = row.workspace.count();
            const std::int64_t uuid = threadTrack(row.thread);
            ProtobufWriter body = eventOf(event::kBegin, uuid);
            body.bytes(event::kName, row.name);
            body.bytes(event::kCategory, std::string(phaseName(row.phase)));
            if (row.layer) annotate(body, "layer", *row.layer);
            annotateStack(body, stacks_.ofOp(row.id));
            if (!row.overload.empty()) annotate(body, "overload", row.overload);
            if (op.workspace > 0) annotate(body, "workspace bytes", op.workspace);
            slice(op.begin, op.end, uuid, body);
        }
        return times;
    }

    // A release has no time of its own: it counts from the end of the op before it.
    Status writeLive(const StepRow& step, const std::map<std::int64_t, OpTime>& times) {
        const auto storages = session_.storages(step);
        if (!storages) return storages.error();
        struct Change {
            std::int64_t seq;
            std::size_t category;
            std::int64_t bytes;
        };
        std::vector<Change> changes;
        std::array<std::int64_t, kCategoryCount> live{};
        for (const StorageRow& row : *storages) {
            const auto category = static_cast<std::size_t>(row.category);
            if (row.allocSeq < step.firstSeq)
                live[category] += row.bytes.count();
            else
                changes.push_back({row.allocSeq, category, row.bytes.count()});
            if (row.freeSeq && *row.freeSeq < step.endSeq)
                changes.push_back({*row.freeSeq, category, -row.bytes.count()});
        }
        const auto workspace = static_cast<std::size_t>(Category::Workspace);
        for (const auto& [seq, op] : times)
            if (op.workspace > 0) changes.push_back({seq, workspace, op.workspace});
        std::stable_sort(changes.begin(), changes.end(),
                         [](const Change& a, const Change& b) { return a.seq < b.seq; });
        std::int64_t total = 0;
        for (std::size_t c = 0; c < live.size(); ++c) {
            total += live[c];
            counter(times.begin()->second.begin, categoryTrack(c), live[c]);
        }
        counter(times.begin()->second.begin, kLiveTrack, total);
        const auto apply = [&](std::int64_t time, std::size_t category, std::int64_t bytes) {
            total += bytes;
            counter(time, categoryTrack(category), live[category] += bytes);
        };
        std::int64_t time = times.begin()->second.begin;
        for (std::size_t i = 0; i < changes.size();) {
            const std::int64_t seq = changes[i].seq;
            const auto op = times.find(seq);
            auto before = times.upper_bound(seq);
            if (op != times.end())
                time = op->second.begin;
            else if (before != times.begin())
                time = std::prev(before)->second.end;
            for (; i < changes.size() && changes[i].seq == seq; ++i)
                apply(time, changes[i].category, changes[i].bytes);
            counter(time, kLiveTrack, total);
            if (op == times.end() || op->second.workspace == 0) continue;
            apply(op->second.end, workspace, -op->second.workspace);
            counter(op->second.end, kLiveTrack, total);
        }
        return {};
    }
    static std::int64_t categoryTrack(std::size_t category) {
        return kLiveTrack + 1 + static_cast<std::int64_t>(category);
    }

    Status writeDevices() {
        const auto all = session_.series();
        if (!all) return all.error();
        for (const SeriesRow& row : *all) {
            if (row.key.axis != SeriesAxis::Time || row.key.unit != "bytes") continue;
            const std::int64_t uuid = kDeviceTracks + row.id;
            describe(uuid, row.key.name, true);
            HW_TRY(session_.visitSamples(
                row.id, [&](const Sample& sample) { counter(sample.x, uuid, sample.value); }));
        }
        return {};
    }

    Status writeGaps() {
        const auto gaps = session_.gaps();
        if (!gaps) return gaps.error();
        if (!gaps->empty()) describe(kGapTrack, "not recorded", false);
        for (const GapRow& gap : *gaps) {
            ProtobufWriter body = eventOf(gap.endNs ? event::kBegin : event::kInstant, kGapTrack);
            body.bytes(event::kName, gap.what);
            annotate(body, "why", gap.why);
            const std::int64_t begin = gap.beginNs.value_or(0);
            gap.endNs ? slice(begin, *gap.endNs, kGapTrack, body) : putEvent(begin, body);
        }
        return {};
    }

    const Session& session_;
    CallStacks stacks_;
    OutputFile& out_;
    bool first_ = true;
    std::int64_t pid_ = 1;
    std::map<std::int64_t, std::int64_t> threads_;
};

}  // namespace

Status exportPerfetto(const Session& session, const std::string& path) {
    OutputFile out(path);
    HW_TRY(PerfettoWriter(session, out).write());
    return out.finish();
}

}  // namespace hw::core
