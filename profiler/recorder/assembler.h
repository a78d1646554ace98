// SPDX-License-Identifier: MIT
// Turns the records of one process into the rows of a session, step by step.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/session/session.h"
#include "profiler/recorder/device_records.h"
#include "profiler/recorder/shared_session.h"
#include "profiler/wire/frame_reader.h"
#include "profiler/wire/records.h"

namespace hw::profiler {

/// Takes validated frames in; a step goes into the session, in one transaction, once it is known to
/// be complete. Nothing of an unfinished step is ever written. The session file is created with the
/// first finished step of any process.
class Assembler {
public:
    explicit Assembler(std::shared_ptr<SharedSession> session);
    explicit Assembler(std::string sessionPath);

    /// Of the steps of a process, the first ones lie in the session as rows in tables; the others
    /// are packed (core/session/packed_step.h), which costs a fraction of the time and the bytes.
    /// Not those of ranks or those with records of a GPU, whose rows are looked up one by one.
    static constexpr std::int64_t kPackAfter = 8;
    /// Instead of kPackAfter.
    void setPackAfter(std::int64_t steps) { packAfter_ = steps; }

    /// Errors: BadInput when the record is malformed or contradicts earlier ones (the stream cannot
    /// be trusted any more), whatever the session says when it cannot be written.
    core::Status handle(const wire::Frame& frame);
    /// The stream has ended: a step with a provisional end is complete.
    core::Status finish();

    bool saw(wire::Milestone milestone) const;
    bool started() const { return process_.has_value(); }
    std::int64_t pid() const { return pid_; }  // as the process itself sees it
    /// Among the processes of a distributed training; -1: not of one.
    std::int64_t rank() const { return process_ ? process_->rank : -1; }
    void setRank(std::int64_t rank) { process_->rank = rank; }
    bool done() const { return done_; }
    std::int64_t steps() const { return steps_; }
    std::int64_t opsOfLastStep() const { return opsOfLastStep_; }
    std::int64_t opsSeen() const { return nextOp_; }
    const std::vector<std::string>& faults() const { return faults_; }
    /// CUPTI could not be used.
    const std::optional<wire::RefusalRecord>& refusal() const { return refusal_; }
    const std::vector<std::string>& notes() const { return notes_; }
    /// Of a live run: its steps, and where they left the plan.
    const std::vector<wire::LiveStepRecord>& liveSteps() const { return liveSteps_; }
    const std::vector<wire::LiveDivergenceRecord>& divergences() const { return divergences_; }
    /// Steps of a live run in which allocations had failed.
    const std::vector<wire::LiveRescueRecord>& rescues() const { return rescues_; }
    /// The newest; of no bytes where there is none.
    const wire::LiveCurveRecord& liveCurve() const { return liveCurve_; }
    /// What the recording does to code that torch.compile has made; empty: there is none so far.
    const std::string& compiledCode() const { return compiledCode_; }
    const std::vector<wire::LiveMismatchRecord>& mismatches() const { return mismatches_; }
    const std::vector<wire::LiveNoteRecord>& liveNotes() const { return liveNotes_; }

private:
    struct StorageState {
        core::StorageRow row;
        std::int32_t version = 0;
        bool alive = true;
        bool written = false;  // its row is in the session
        bool dropped = false;  // came and went outside of every step
        bool readInForward = false;

        /// Nothing of it can change any more once the step that ends there is written.
        bool isOver(std::int64_t endSeq) const {
            return !alive && row.freeSeq && *row.freeSeq < endSeq;
        }
    };
    struct TensorState {
        std::int64_t storage = 0;
        std::int64_t seq = 0;  // when it was announced
    };
    struct Pending {
        std::vector<core::OpRow> ops;
        std::vector<core::LayerRow> layers;
        std::vector<core::SourceFrameRow> frames;
        std::vector<core::StackRow> stacks;
        std::vector<std::pair<std::int64_t, core::TensorRow>> tensors;  // with the seq of arrival
        std::vector<std::int64_t> storages;
        std::vector<std::int64_t> frees;    // storages that are written and then went
        std::vector<std::int64_t> changed;  // written storages with new bytes or category
        std::vector<core::GapRow> gaps;
        std::vector<std::pair<std::int64_t, core::Generator>> generators;
        std::vector<wire::ContentsRecord> contents;
    };

    /// Of what comes with every op, read into the same place each time: its lists keep their room.
    struct Frequent {
        wire::OpRecord op;
        wire::StorageRecord storage;
        wire::TensorRecord tensor;
        wire::FreeRecord free;
    };

    core::Status take(wire::ProcessRecord record);
    core::Status take(wire::MilestoneRecord record);
    core::Status take(wire::LayerRecord record);
    core::Status take(const wire::StorageRecord& record);
    core::Status take(const wire::TensorRecord& record);
    core::Status take(const wire::OpRecord& record);
    core::Status take(wire::SourceFrameRecord record);
    core::Status take(wire::StackNodeRecord record);
    core::Status take(const wire::FreeRecord& record);
    core::Status take(wire::CategoryRecord record);
    core::Status take(wire::ResizeRecord record);
    core::Status take(wire::ContentsRecord record);
    core::Status take(wire::GeneratorRecord record);
    core::Status take(wire::StepStartRecord record);
    core::Status take(wire::LiveStepRecord record);
    core::Status take(wire::LiveDivergenceRecord record);
    core::Status take(wire::LiveCurveRecord record);
    core::Status take(wire::LiveRescueRecord record);
    core::Status take(wire::LiveMismatchRecord record);
    core::Status take(wire::LiveNoteRecord record);
    core::Status take(wire::StepEndRecord record);
    core::Status take(wire::GapRecord record);
    core::Status take(wire::FaultRecord record);
    core::Status take(wire::RefusalRecord record);
    core::Status confirm();

    core::Status applyOp(const wire::OpRecord& record);
    core::Status openSession();
    core::Status writeLayers();
    core::Status writeStacks();
    core::Status writeGaps(std::optional<std::int64_t> step);
    bool packs() const;
    /// Within the step that ends there: no later step refers to it.
    bool cameAndWent(const StorageState& state, std::int64_t endSeq) const;
    void moveToSession(core::OpRow& row) const;
    core::StorageRow inSession(core::StorageRow row) const;
    core::TensorRow inSession(core::TensorRow row) const;
    std::int64_t at(std::int64_t id) const { return member_->base + id; }
    std::optional<std::int64_t> at(const std::optional<std::int64_t>& id) const {
        return id ? std::optional(at(*id)) : id;
    }
    std::optional<std::int64_t> layerAt(const std::optional<std::int64_t>& id) const {
        return id ? std::optional(layerIds_.at(static_cast<std::size_t>(*id))) : id;
    }
    core::Status writeStep(const wire::StepEndRecord& end);
    core::Status writeRows(const wire::StepEndRecord& end);
    core::Status writeStorages(std::int64_t endSeq, core::StepContents* packed);
    core::Status writeTensors(std::int64_t endSeq, core::StepContents* packed);
    core::Status writeOps(std::int64_t endSeq, core::StepContents* packed);
    core::Status writeDeviceRecords(const core::StepRow* step);
    core::Status writeContents(std::int64_t step, std::int64_t endSeq);
    void settleCategories(std::int64_t endSeq);
    void discardBefore(std::int64_t seq);
    void forgetBefore(std::int64_t seq);
    bool advance(std::int64_t seq);
    StorageState* storage(std::int64_t id);

    std::shared_ptr<SharedSession> session_;         // null: finished
    std::optional<SharedSession::Member> member_;    // once a step is complete
    std::vector<std::int64_t> layerIds_, stepIds_;   // of our layers and steps in the session
    std::vector<std::int64_t> frameIds_, stackIds_;  // likewise
    std::optional<wire::ProcessRecord> process_;
    std::int64_t pid_ = 0;
    std::uint32_t milestones_ = 0;
    std::unordered_map<std::int64_t, StorageState> storages_;
    std::unordered_map<std::int64_t, TensorState> tensors_;
    std::int64_t layers_ = 0, frames_ = 0, stacks_ = 0;
    std::int64_t nextOp_ = 0;
    std::int64_t lastSeq_ = -1, lastStorage_ = -1, lastTensor_ = -1;
    Pending pending_;
    Frequent frequent_;
    DeviceRecords device_;
    std::optional<wire::RefusalRecord> refusal_;
    std::optional<wire::StepStartRecord> start_;
    std::optional<wire::StepEndRecord> end_;
    std::int64_t steps_ = 0, packAfter_ = kPackAfter;
    std::int64_t opsOfLastStep_ = 0;
    bool done_ = false;
    std::vector<wire::LiveStepRecord> liveSteps_;
    std::vector<wire::LiveDivergenceRecord> divergences_;
    wire::LiveCurveRecord liveCurve_;
    std::vector<wire::LiveRescueRecord> rescues_;
    std::vector<wire::LiveMismatchRecord> mismatches_;
    std::string compiledCode_;
    std::vector<wire::LiveNoteRecord> liveNotes_;
    std::vector<std::string> faults_, notes_;
};

}  // namespace hw::profiler
