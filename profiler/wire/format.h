// SPDX-License-Identifier: MIT
// The record format between the agent and the recorder: frames over a local stream socket.
//
// A frame is a 12-byte header (magic u32, version u16, type u16, payload length u32) and a payload.
// All numbers are little-endian; a string is a u32 length and its bytes. Payloads:
//
// clang-format off
//   Hello          i64 pid
//   Process        str framework, str version, str command, i64 started_ns, i64 rank (-1),
//                  i64 world_size (-1), str run: what all ranks of one run have in common
//   Milestone      u32 what
//   Layer          i64 id, i64 parent (-1), str path, str type
//   Storage        i64 id, seq, bytes, creator (-1), layer (-1), address; u8 category; str device
//   Tensor         i64 id, storage, creator (-1), offset; str dtype; u16 n; i64 sizes[n], strides[n]
//   SourceFrame    i64 id, line; u8 framework; str file, function: before the first stack that has it
//   StackNode      i64 id, parent (-1: the outermost frame), source: a call stack ends in its innermost node
//   Op             i64 id, seq, begin_ns, duration_ns, workspace, live, layer (-1), thread, stack (-1);
//                  u8 phase, u8 random; str name, overload, args;
//                  u32 n, (i64 tensor, i32 version)[n]    inputs
//                  u32 n, (i64 tensor, u8 makes)[n]       outputs
//                  u32 n, (i64 storage, i32 before)[n]    writes
//   Free           i64 storage, seq
//   Category       u8 category, i64 layer (-1), u32 n, i64 storages[n]
//   Resize         i64 storage, bytes
//   Contents       i64 seq, storage, total, offset; the rest: data
//   Generator      i64 seq, id; str device; the rest: state
//   StepStart      i64 seq, time_ns, live
//   StepEnd        i64 seq, time_ns, live, peak; str environment; u32 n, i64 tensors[n]
//   StepConfirmed  nothing
//   Gap            i64 begin_ns, end_ns; str what, why
//   Fault          str what
//   Done           nothing
//   Device         i64 ordinal, capacity; str name
//   Clock          i64 device_ns, host_ns, width_ns: two clocks at one moment, and how sure that is
//   Name           i64 id; str text: a kernel or a range, before the first that is called so
//   Activities     u32 n, Activity[n] (activity.h)
//   Refusal        u32 code; str what, hint: CUPTI cannot be used
//   Footprint      i64 host_ns, ordinal (-1: the host), bytes: what CUPTI itself takes from then on
//   LiveStep       i64 step, begin_ns, end_ns, peak, recomputed ops, restored bytes, pinned bytes, ops,
//                  runtime_ns, recomputed_ns, evictions, verified bytes, verification_ns,
//                  uncompared ops, offloaded bytes, waited_ns; u8 LiveMode: a step of a live run,
//                  whole
//   LiveDivergence i64 step, op; str expected, found: before its LiveStep
//   LiveCurve      i64 step, base; u32 n, i64 bytes[n]: of each op of a planned step the highest live
//                  bytes from the end of the one before to its own, less `base`; before its LiveStep
//   LiveRescue     i64 step, allocations, refused, bytes, freed, evictions; str op: before its LiveStep, or
//                  instead of it where the program has ended within the step
//   LiveMismatch   i64 op, program, bytes; u8 MismatchKind; str name, layer, line: what was recomputed has other
//                  bytes, and the program ends
//   LiveNote       u8 LiveNoteKind; str text: what a live run has to say
//   Config         i32 steps, warmup, every; u32 flags; i64 cap, heuristic; char nativeCapture[kPathBytes],
//                  livePrograms[kPathBytes]
//                  (from the recorder to the agent)
//   Native         char nativeCapture[kPathBytes]: found once the process has said what it is
//                  (from the recorder to the agent)
// clang-format on
//
// A step ends provisionally with every Optimizer.step; the last StepEnd before a StepConfirmed, or
// before the end of the stream, is the one that counts.
//
// The shim has enums and integers of this file, of activity.h and others from agent/wire_py.cmake.
#pragma once

#include <cstdint>

namespace hw::profiler::wire {

inline constexpr std::uint32_t kMagic = 0x52575748;  // "HWWR"
inline constexpr std::uint16_t kVersion = 6;
inline constexpr std::uint32_t kHeaderBytes = 12;
inline constexpr std::uint32_t kMaxPayload = 16u << 20;
inline constexpr std::uint32_t kContentsChunk = 1u << 20;
/// Contents of floating constants up to this many bytes are always stored: scalars as tensors.
inline constexpr std::int64_t kSmallContents = 64;
/// Contents of integer constants above this many bytes are left out and become a gap.
inline constexpr std::int64_t kMaxPlainContents = 64ll << 20;

enum class Type : std::uint16_t {
    Hello = 1,
    Process = 2,
    Milestone = 3,
    Layer = 4,
    Storage = 5,
    Tensor = 6,
    Op = 7,
    Free = 8,
    Category = 9,
    Resize = 10,
    Contents = 11,
    Generator = 12,
    StepStart = 13,
    StepEnd = 14,
    StepConfirmed = 15,
    Gap = 16,
    Fault = 17,
    Done = 18,
    Device = 19,
    Clock = 20,
    Name = 21,
    Activities = 22,
    Refusal = 23,
    Footprint = 24,
    LiveStep = 25,
    LiveDivergence = 26,
    LiveCurve = 27,
    LiveNote = 28,
    SourceFrame = 29,
    StackNode = 30,
    LiveRescue = 31,
    LiveMismatch = 32,
    Config = 64,
    Native = 65,
};

/// Shortage: an allocation was refused because of the budget.
enum class LiveNoteKind : std::uint8_t { Remark, Shortage, Fault };

/// Why recomputed bytes are likely to be others than those that were dropped.
enum class MismatchKind : std::uint8_t {
    Unknown,           // a setting of the process, or an unseen writer
    UnseenWriter,      // code that calls no op has written a source
    HiddenState,       // the op is an extension's
    NotDeterministic,  // two recomputations differ
};

/// What is kept of the Python call stack that led to an op: its line in the program, or all of it.
enum class Stacks : std::uint8_t { Off, Line, Full };

/// What has acted in a step of a live run.
enum class LiveMode : std::uint8_t { None, Plan, Dtr, Mimose };

/// Of an op, as core/graph/training_graph.h has it; the recorder asserts that.
enum class Phase : std::uint8_t { Unknown, Forward, Backward, Optimizer };

/// Of a storage, likewise.
enum class Category : std::uint8_t {
    Parameter,
    Gradient,
    OptimizerState,
    Input,
    Activation,
    Temporary,
    Workspace,
    GatheredParameter,
    Unknown,
};

/// What the agent has seen so far, so that a recording without a step can say how far it came.
enum class Milestone : std::uint32_t {
    Shim = 1,       // Python runs, the shim waits for torch
    Torch = 2,      // torch is imported and patched
    Forward = 3,    // a forward with gradients
    Backward = 4,   // a backward
    Optimizer = 5,  // an Optimizer.step
    Capture = 6,    // the first captured op is about to run
};

inline constexpr std::uint32_t kConfigContents = 1;  // Config flag: floating constants too
inline constexpr std::uint32_t kConfigRunning = 2;   // Config flag: attached to a running program
/// Config flag: of a recording, only the step that runs out of memory is kept; of a live run, DTR
/// waits for an allocation that fails.
inline constexpr std::uint32_t kConfigOnOom = 4;
inline constexpr std::uint32_t kConfigGpu = 8;      // Config flag: without CUPTI, no recording
inline constexpr std::uint32_t kConfigNative = 16;  // Config flag: a Native frame answers Process

inline constexpr std::uint32_t kConfigLive = 32;    // Config flag: a plan acts, nothing is recorded
inline constexpr std::uint32_t kConfigCurves = 64;  // Config flag: with LiveCurves, a few a second

inline constexpr std::uint32_t kConfigLineStacks = 128;  // Config flag: Stacks::Line
inline constexpr std::uint32_t kConfigFullStacks = 256;  // Config flag: Stacks::Full

inline constexpr std::uint32_t kConfigVerifyOff = 512;       // Config flags: how much of what is
inline constexpr std::uint32_t kConfigVerifySampled = 1024;  // recomputed is compared; without them
inline constexpr std::uint32_t kConfigVerifyFull = 2048;     // as much as costs 1 % of a step
inline constexpr std::uint32_t kConfigStableSources = 4096;  // Config flag: see Exposures::trust()
inline constexpr std::uint32_t kConfigPlanners = 8192;       // Config flag: planners look at steps
/// Config flag: planners choose what compiled code saves for the backward pass.
inline constexpr std::uint32_t kConfigPartition = 16384;
/// Behind the path of the first plan: the file with the ops whose results stay.
inline constexpr char kLiveKept[] = ".kept";

/// Of the path of the native capture library, with its final 0.
inline constexpr std::uint32_t kPathBytes = 1024;

/// Where the agent finds the recorder's socket, and what LD_PRELOAD was before.
inline constexpr char kSocketVariable[] = "HIGHWATER_SOCKET";
inline constexpr char kPreloadVariable[] = "HIGHWATER_LD_PRELOAD";

}  // namespace hw::profiler::wire
