// SPDX-License-Identifier: MIT
// What a run comes to. The process that runs a session's ops has no right to write files
// (sandbox.h): it hands this to the one that started it, which prints it and keeps it in the
// session.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/memory/signature.h"
#include "core/session/load_menu.h"
#include "core/session/rows.h"

namespace hw::executor {

/// Measured figures of the captured order, one an op.
struct Profile {
    core::Signatures signatures;
    std::vector<core::Bytes> workspaces;
    std::vector<core::Nanoseconds> times;  // median of the passes
};

struct Outcome {
    std::string json, text;                 // the report, see report.h
    std::optional<core::Error> difference;  // of the results, where there is one
    core::RunRow run;                       // but for its plan and details
    std::int64_t recomputedOps = 0;
    bool recordedHere = false;  // the session's step ran on the same kind of device
    Profile profile;
    std::string menu;  // core::writeMenu(); empty: none was measured
    std::vector<core::ImplementationSignature> signatures;  // of its entries
};

/// As one text, for a pipe.
std::string writeOutcome(const core::Result<Outcome>& outcome);
/// Errors: the error that was written; Internal where writeOutcome() cannot have written the text.
core::Result<Outcome> readOutcome(const std::string& text);

}  // namespace hw::executor
