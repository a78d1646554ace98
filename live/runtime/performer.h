// SPDX-License-Identifier: MIT
// The one place where an action of a plan becomes what a runtime does. A performer states in `kCan`
// what it can do, and has a function for each of these; readProgram() lets nothing else in.
#pragma once

#include "program.h"

namespace hw::live::runtime {

template <class Performer>
void perform(Performer& performer, const Action& action) {
    using wire::LiveAction;
    switch (action.kind) {
        case LiveAction::Recompute:
            return performer.recompute(action);
        case LiveAction::Drop:
            return performer.drop(action.target);
        case LiveAction::Hold:
            return performer.hold(action.target);
        case LiveAction::Release:
            return performer.release(action.target);
        case LiveAction::Secure:
            return performer.secure(action.target);
        case LiveAction::Encode:
            if constexpr (Performer::kCan.has(LiveAction::Encode))
                return performer.encode(action.target, action.encoding);
            break;
        case LiveAction::Decode:
            if constexpr (Performer::kCan.has(LiveAction::Decode))
                return performer.decode(action.target);
            break;
        case LiveAction::Offload:
            if constexpr (Performer::kCan.has(LiveAction::Offload))
                return performer.offload(action.target);
            break;
        case LiveAction::Leave:
            if constexpr (Performer::kCan.has(LiveAction::Leave))
                return performer.leave(action.target);
            break;
        case LiveAction::Prefetch:
            if constexpr (Performer::kCan.has(LiveAction::Prefetch))
                return performer.prefetch(action.target);
            break;
    }
    TORCH_INTERNAL_ASSERT(false, "an action that the performer has not declared");
}

}  // namespace hw::live::runtime
