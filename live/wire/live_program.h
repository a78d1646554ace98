// SPDX-License-Identifier: MIT
// A plan as the training process carries it out: every op of the step in captured order, with what
// it must look like and what is done before and after it. Written by the recorder
// (live/compile/program_writer.h), read by the live runtime (live/runtime).
//
// All numbers are little-endian; a text is a u32 length and its bytes.
//
//   u32 magic, u32 version, u32 storages, u32 ops
//   storages times: i64 bytes, u8 flags
//   ops times:
//     text name, text overload, u8 flags
//     u32 n, (u32 storage, u64 form)[n]            tensors that it reads, in argument order
//     u32 n, (u32 storage, u64 form, u8 makes)[n]  results, in order
//     u32 n, u32 storage[n]                        what it writes
//     u32 n, u32 storage[n]                        what the program has let go of since the op
//     before u32 n, action[n]                             before it u32 n, action[n] after it
//   action: u8 kind, u32 target, for Recompute u32 n, u32 output[n], for Encode u8 codec, u8 type
//           (the framework's number for that of the elements), i64 bytes
//
// Within a budget it comes to a program that runs in a file PREFIX + kLivePlan + N, N being 0, 1,
// …:
//   i64 kind of step, u8 LiveMode of steps that keep to it, then the above
// for steps that the program has left in PREFIX.KIND + kLiveSoon or kLiveOften
// (live/compile/traced_step.h).
#pragma once

#include <cstdint>
#include <initializer_list>

namespace hw::profiler::wire {

inline constexpr std::uint32_t kLiveMagic = 0x504c5748;  // "HWLP"
inline constexpr std::uint32_t kLiveVersion = 8;

enum class LiveAction : std::uint8_t {
    Recompute = 0,  // run the op again and keep the named results
    Drop = 1,       // the storage's bytes go, whatever refers to it
    Hold = 2,       // the storage stays although the program lets go of it
    Release = 3,    // the end of Hold
    Secure = 4,     // make it again if the program still has it: after this op nothing could
    Encode = 5,     // an encoded form takes the place of the storage's bytes
    Decode = 6,     // and the bytes that of the encoded form
    Offload = 7,    // a copy of the storage's bytes to host memory begins
    Leave = 8,      // the bytes go, and that copy stands for them
    Prefetch = 9,   // the bytes come back from it
};

/// What holds of each of them, by its number.
struct LiveActionTraits {
    const char* name;  // in messages
    bool takes;        // its storage may have to be made again from others
    bool remakes;      // it makes bytes that were away, whatever the program has done so far
};
inline constexpr LiveActionTraits kLiveActions[] = {
    {"recompute", false, true}, {"drop", true, false},     {"hold", false, false},
    {"release", false, false},  {"secure", false, false},  {"encode", true, false},
    {"decode", false, true},    {"offload", false, false}, {"leave", false, false},
    {"prefetch", false, true}};
constexpr const LiveActionTraits& traitsOf(LiveAction action) {
    return kLiveActions[static_cast<unsigned>(action)];
}

/// What a performer can do.
class LiveActions {
public:
    constexpr LiveActions(std::initializer_list<LiveAction> actions) {
        for (const LiveAction action : actions) bits_ |= bit(action);
    }
    constexpr bool has(LiveAction action) const { return (bits_ & bit(action)) != 0; }

private:
    static constexpr std::uint32_t bit(LiveAction action) {
        return std::uint32_t{1} << static_cast<unsigned>(action);
    }
    std::uint32_t bits_ = 0;
};

/// The performer of a plan that was made for the step (live/runtime/runtime_actions.cpp), and the
/// one within a budget (live/runtime/budget_actions.cpp). A plan is compiled for one of them, and a
/// program that asks for more is refused when it is compiled and when it arrives.
inline constexpr LiveActions kPlanActions{
    LiveAction::Recompute, LiveAction::Drop,    LiveAction::Hold,   LiveAction::Release,
    LiveAction::Secure,    LiveAction::Encode,  LiveAction::Decode, LiveAction::Offload,
    LiveAction::Leave,     LiveAction::Prefetch};
inline constexpr LiveActions kBudgetActions{LiveAction::Recompute, LiveAction::Drop,
                                            LiveAction::Hold, LiveAction::Release,
                                            LiveAction::Secure};

/// See core/plan/codec.h.
enum class LiveCodec : std::uint8_t { Mask = 0, Sign = 1, Index = 2 };

inline constexpr std::uint8_t kLiveConstant = 1;  // flag of a storage: no op of the step makes it
inline constexpr std::uint8_t kLiveLasting = 2;   // flag of a storage: the step leaves it behind
inline constexpr std::uint8_t kLiveGathered = 4;  // flag of a storage: its bytes go by no op
/// Flag of a storage: the plan moves its bytes, or may make others from them.
inline constexpr std::uint8_t kLiveFollowed = 8;

inline constexpr std::uint8_t kLiveKeep = 1;    // flag of an op: its arguments may be needed again
inline constexpr std::uint8_t kLiveRandom = 2;  // flag of an op: it draws from a generator

inline constexpr const char* kLivePlan = ".plan.";
inline constexpr const char* kLiveSoon = ".soon";    // one of several kinds, as it came by first
inline constexpr const char* kLiveOften = ".often";  // worth a longer search
/// Behind the begin of the names of programs: the first step waits for more of them until it is
/// gone.
inline constexpr char kLiveAwaited[] = ".awaited";
/// Of a region that torch.compile makes, which waits for the answer (live/host/planner_task.h).
inline constexpr char kLiveRegion[] = ".region";
inline constexpr char kLiveAnswer[] = ".answer";

/// Type, sizes and strides of a tensor as one number: two that differ in any of them have the same
/// one in 1 of 2^64 cases. Every step of a number's way into it can be undone. Not the offset: a
/// program takes its batch from another place of its data in every step.
class LiveForm {
public:
    LiveForm(std::uint64_t scalarType, std::uint64_t dimensions)
        : form_(scalarType << 32 | dimensions) {}
    LiveForm& mix(std::int64_t number) {
        form_ = (form_ ^ static_cast<std::uint64_t>(number)) * 0x9e3779b97f4a7c15ull;
        form_ ^= form_ >> 29;
        return *this;
    }
    std::uint64_t value() const { return form_; }

private:
    std::uint64_t form_;
};

}  // namespace hw::profiler::wire
