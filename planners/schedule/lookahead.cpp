// SPDX-License-Identifier: MIT
#include "planners/schedule/lookahead.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace hw::planners {
namespace {

using namespace hw::core;

// What stage k rebuilt, and what came with it, stays until its last reader, or until it is dropped
// again; as much of it as fits stage k, when `fitting`.
void keepTouched(StageJudge& judge, StageIndex k, bool fitting) {
    const bool fits = judge.stagePeak(k) <= judge.budget();
    const std::vector<OpIndex> ops = judge.recomputed(k);
    const auto keep = [&](auto&& each) {
        for (auto op = ops.rbegin(); op != ops.rend(); ++op)
            for (const ItemIndex i : judge.model().outputs[*op])
                if (!judge.retained(i, k)) {
                    const StageIndex until = judge.previousInvolved(i, k + 1, judge.lastStage(i));
                    if (until > k) each(i, until);
                }
    };
    keep([&](ItemIndex i, StageIndex until) { judge.set(i, k + 1, until, true); });
    judge.settle();
    if (!fitting || !fits || judge.stagePeak(k) <= judge.budget()) return judge.commit();
    judge.rollback();
    keep([&](ItemIndex i, StageIndex until) {
        judge.set(i, k + 1, until, true);
        judge.settle();
        judge.stagePeak(k) <= judge.budget() ? judge.commit() : judge.rollback();
    });
}

class Lookahead {
public:
    Lookahead(StageJudge& judge, Distance distance, const std::vector<float>& bias)
        : judge_(judge), model_(judge.model()), distance_(distance), bias_(bias) {
        mark_.assign(model_.itemCount(), 0);
        const auto items = static_cast<ItemIndex>(model_.itemCount());
        for (ItemIndex i = 0; i < items; ++i) byBirth_.push_back(i);
        std::stable_sort(byBirth_.begin(), byBirth_.end(),
                         [&](ItemIndex a, ItemIndex b) { return model_.born[a] < model_.born[b]; });
    }

    void run(const std::function<bool()>& stop) {
        for (StageIndex k = 0; k <= model_.end && !stop(); ++k) {
            admit(k);
            while (judge_.stagePeak(k) > judge_.budget() && dropOne(k)) {
            }
            keepTouched(judge_, k, true);
        }
    }

private:
    struct Candidate {
        double score;
        ItemIndex item;
        StageIndex from, to;
    };
    static constexpr std::size_t kTried = 6;  // candidates whose exact cost is looked at

    // Keeps `present_`, the items that may be retained into stage k.
    void admit(StageIndex k) {
        while (born_ < byBirth_.size() && model_.born[byBirth_[born_]] < k)
            present_.push_back(byBirth_[born_++]);
        std::erase_if(present_, [&](ItemIndex i) {
            return model_.uses[i].empty() || model_.uses[i].back() < k;
        });
    }

    // Time of rebuilding the item at stage k, as far as a short search goes.
    double rebuildTime(ItemIndex item, StageIndex k) {
        constexpr std::size_t kDeepest = 48;
        ++stamp_;
        open_.assign(1, item);
        mark_[item] = stamp_;
        double time = 0;
        for (std::size_t next = 0; next < open_.size() && next < kDeepest; ++next)
            for (const OpIndex op : model_.chain[open_[next]]) {
                time += static_cast<double>(model_.time[op].count());
                for (const ItemIndex input : model_.inputs[op])
                    if (mark_[input] != stamp_ && !judge_.retained(input, k)) {
                        mark_[input] = stamp_;
                        open_.push_back(input);
                    }
            }
        return time;
    }

    double score(double time, ItemIndex item, StageIndex away) const {
        double size = static_cast<double>(model_.bytes[item].count());
        if (distance_ == Distance::Full) size *= away;
        if (distance_ == Distance::Root) size *= std::sqrt(static_cast<double>(away));
        return (bias_.empty() ? 1.0F : bias_[item]) * (time + 1) / size;
    }

    // Drops the cheapest item that stage k does not read. False when there is none.
    bool dropOne(StageIndex k) {
        std::array<Candidate, kTried> best;
        std::size_t count = 0;
        for (const ItemIndex i : present_) {
            if (!judge_.retained(i, k) || judge_.involved(i, k)) continue;
            const StageIndex next = judge_.nextInvolved(i, k + 1, judge_.lastStage(i));
            if (next > judge_.lastStage(i)) continue;
            const Candidate made{score(rebuildTime(i, next), i, next - k), i, 0, next};
            if (count == kTried && made.score >= best[count - 1].score) continue;
            std::size_t at = count < kTried ? count++ : count - 1;
            for (; at > 0 && best[at - 1].score > made.score; --at) best[at] = best[at - 1];
            best[at] = made;
        }
        if (count == 0) return false;
        Candidate chosen = best[0];
        chosen.score = INFINITY;
        for (std::size_t c = 0; c < count; ++c) {
            Candidate& tried = best[c];
            tried.from = judge_.previousInvolved(tried.item, model_.born[tried.item], k) + 1;
            const auto before = judge_.time();
            judge_.set(tried.item, tried.from, tried.to, false);
            judge_.settle();
            const auto cost = static_cast<double>((judge_.time() - before).count());
            judge_.rollback();
            tried.score = score(std::max(cost, 0.0), tried.item, tried.to - k);
            if (tried.score < chosen.score) chosen = tried;
        }
        judge_.set(chosen.item, chosen.from, chosen.to, false);
        judge_.settle();
        judge_.commit();
        return true;
    }

    StageJudge& judge_;
    const StageModel& model_;
    Distance distance_;
    const std::vector<float>& bias_;
    std::vector<ItemIndex> byBirth_, present_, open_;
    std::size_t born_ = 0;
    std::vector<std::uint32_t> mark_;
    std::uint32_t stamp_ = 0;
};

}  // namespace

void lookahead(StageJudge& judge, Distance distance, const std::vector<float>& bias,
               const std::function<bool()>& stop) {
    Lookahead(judge, distance, bias).run(stop);
}

void importResidents(StageJudge& judge, const std::vector<StageIndex>& cuts,
                     const std::vector<std::vector<bool>>& resident) {
    const StageModel& model = judge.model();
    for (std::size_t k = 0; k < cuts.size(); ++k) {
        const StageIndex cut = cuts[k], before = k == 0 ? 0 : cuts[k - 1];
        for (ItemIndex i = 0; i < static_cast<ItemIndex>(model.itemCount()); ++i) {
            if (model.born[i] >= cut || model.neededUntil[i] < cut) continue;
            const StageIndex touched = judge.previousInvolved(i, model.born[i], cut - 1);
            if (resident[k][i]) {
                const bool kept = touched >= before || (k > 0 && resident[k - 1][i]);
                judge.set(i, kept ? std::max(touched + 1, before) : cut, judge.lastStage(i), true);
                continue;
            }
            const auto uses = model.uses[i];
            const auto next = std::lower_bound(uses.begin(), uses.end(), cut);
            judge.set(i, touched + 1, next == uses.end() ? judge.lastStage(i) : *next, false);
        }
        judge.settle();
        judge.commit();
        const StageIndex end = k + 1 < cuts.size() ? cuts[k + 1] : model.end;
        for (StageIndex stage = cut; stage < end; ++stage) keepTouched(judge, stage, false);
    }
    judge.trim();
}

}  // namespace hw::planners
