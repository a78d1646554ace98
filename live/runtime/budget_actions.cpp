// SPDX-License-Identifier: MIT
// What the actions of a plan do within a budget: the tape and the slots know how a storage is
// recomputed, whether a plan asks for it or an op. Nothing depends on them but memory and time.
#include "budget_runtime.h"
#include "performer.h"

namespace hw::live::runtime {

struct BudgetRuntime::Performer {
    static constexpr wire::LiveActions kCan = wire::kBudgetActions;
    BudgetRuntime& self;

    /// In the runtime's numbers; none: it has not come by.
    std::optional<Storage> known(std::uint32_t planned) const {
        const std::int64_t storage = self.followers_.acting().storage(planned);
        return storage < 0 ? std::nullopt : std::optional<Storage>(static_cast<Storage>(storage));
    }
    bool mayGo(Storage s) const {
        const DtrStorage& state = self.evictor_[s];
        return state.material && state.locks == 0 && self.tape_.canMake(s);
    }

    void recompute(const Action& action) {
        const ProgramOp& op = self.followers_.acting().op(action.target);
        for (const std::uint32_t output : action.outputs)
            if (op.outputs[output].makes)
                if (const auto s = known(op.outputs[output].storage)) self.materialize(*s);
    }
    void hold(std::uint32_t planned) {
        if (const auto s = known(planned); s && self.present(*s)) self.hold(*s);
    }
    void drop(std::uint32_t planned) {
        const auto s = known(planned);
        if (!s) return;
        self.released(*s);
        if (mayGo(*s)) self.evict(*s);
    }
    void release(std::uint32_t planned) {
        const auto s = known(planned);
        if (!s) return;
        self.released(*s);
        if (!mayGo(*s) || self.wanted(*s)) return;
        if (self.needed_[*s]) return self.drop(*s);
        self.slots_.release(*s);  // neither it nor what it was made from is needed any more
        self.released(*s);
    }
    /// What a later op would make impossible is recomputed before that op, see aboutToChange().
    void secure(std::uint32_t) {}
};

void BudgetRuntime::perform(Items<Action> actions) {
    const std::string shortage = shortage_;
    Performer performer{*this};
    try {
        for (const Action& action : actions) runtime::perform(performer, action);
    } catch (const OtherBytes&) {
        throw;
    } catch (const std::exception&) {  // there is no room for it: DTR does without
        shortage_ = shortage;
        followers_.leaveActing();
    }
}

}  // namespace hw::live::runtime
