// SPDX-License-Identifier: MIT
// Which program runs the steps of a session: a ready one beside ours, or one that is compiled for
// the torch at hand.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/session/session.h"
#include "profiler/framework/build.h"

namespace hw::executor {

/// A package of torch on this machine.
struct Torch {
    std::string package;  // its folder
    std::string version;  // "2.11.0+cu130"
};

/// Of what `python` would import. Errors: Target.
core::Result<Torch> torchOf(const std::string& python);

/// The program beside ours that was built with Highwater for "2.11"; empty where there is none.
std::string readyExecutor(const std::string& release);

/// How the executor is compiled for a torch; with `cuda` also for GPUs. Errors: Target where the
/// installation lacks what it is made of, or has nothing for that torch.
core::Result<profiler::Unit> executorUnit(const profiler::FrameworkFiles& torch, bool cuda);

/// Who is to run a session.
struct ExecutorChoice {
    std::string
        python;  // run it with this interpreter's torch; empty: the one it was recorded with
    bool cuda = false;
    bool anyOfRelease =
        false;  // of that interpreter's release: one that came with Highwater will do
};

/// An executor for the torch of `session`, if this user has trained with it, or it is that of the
/// `python3` in PATH; compiled on the first call, which `tell` hears of; where
/// that torch is not there, for another one, which it hears, too. Errors: Target, with what to
/// install, where there is none at all.
core::Result<std::string> executorFor(const core::Session& session, const ExecutorChoice& choice,
                                      const std::function<void(const std::string&)>& tell);

/// Whose ops executorFor() would run, without making anything: "torch 2.11.0, compiled for it first
/// (once, about a minute)". Errors: as there.
core::Result<std::string> whoRuns(const core::Session& session);
/// The interpreter that the session says it was recorded with. Empty where there is no such file,
/// and where executorFor() takes the session's torch without asking.
std::string pythonNamedBy(const core::Session& session);

}  // namespace hw::executor
