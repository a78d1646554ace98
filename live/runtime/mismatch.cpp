// SPDX-License-Identifier: MIT
#include "mismatch.h"

#include <sstream>

#include "frame.h"

namespace hw::live::runtime {
namespace {

const char* causeOf(MismatchKind kind) {
    switch (kind) {
        case MismatchKind::UnseenWriter:
            return "code that calls no op has written what it was computed from";
        case MismatchKind::HiddenState:
            return "the op belongs to an extension and has a state or draws random numbers of its "
                   "own";
        case MismatchKind::NotDeterministic:
            return "the op's kernel is not deterministic";
        case MismatchKind::Unknown:
            break;
    }
    return "a setting of the process or bytes written by code that calls no op";
}

}  // namespace

std::string describe(const Mismatch& mismatch) {
    return "op " + std::to_string(mismatch.op) + " of the step (" + mismatch.name +
           "): " + std::to_string(mismatch.bytes) +
           " bytes that were dropped came back different; likely cause: " + causeOf(mismatch.kind);
}

void send(const profiler::native::AgentApi& agent, const Mismatch& mismatch) {
    if (agent.sendFrames == nullptr) return;
    profiler::native::Stream stream(agent);
    stream.begin(profiler::wire::Type::LiveMismatch)
        .put(mismatch.op)
        .put(mismatch.program)
        .put(mismatch.bytes)
        .put(static_cast<std::uint8_t>(mismatch.kind))
        .text(mismatch.name)
        .text(mismatch.layer)
        .text(mismatch.line)
        .end();
    try {
        stream.flush();
    } catch (const profiler::native::Broken&) {
    }  // the program says it, too
}

void KeptOps::read(const std::string& lines) {
    std::istringstream from(lines);
    for (std::string line; std::getline(from, line);) {
        if (line == "sources") {
            sourcesChange_ = true;
            continue;
        }
        std::istringstream fields(line);
        Op op{};
        if (fields >> op.number >> op.name) ops_.push_back(std::move(op));
    }
}

bool KeptOps::has(const std::string& name, std::int64_t number) const {
    for (const Op& op : ops_)
        if (op.name == name && (op.number < 0 || op.number == number)) return true;
    return false;
}

std::set<std::string> KeptOps::names() const {
    std::set<std::string> names;
    for (const Op& op : ops_) names.insert(op.name);
    return names;
}

}  // namespace hw::live::runtime
