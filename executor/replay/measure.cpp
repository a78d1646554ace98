// SPDX-License-Identifier: MIT
#include "executor/replay/measure.h"

#include <algorithm>
#include <map>

#include "core/memory/evaluate.h"
#include "executor/replay/implementations.h"
#include "executor/replay/profile_run.h"

namespace hw::executor {
namespace {

using core::Bytes;
using core::Implementation;
using core::ImplementationChoice;
using core::ImplementationKind;
using core::kNone;
using core::Menu;
using core::OpIndex;
using core::Status;

class Measurement {
public:
    Measurement(const Step& step, MemoryTracker& tracker, const Profile& captured,
                const Reference& reference, int repeat)
        : step_(step),
          tracker_(tracker),
          captured_(captured),
          reference_(reference),
          repeat_(repeat) {}

    core::Result<MeasuredMenu> run(Offered wanted,
                                   const std::function<void(const std::string&)>& progress) {
        std::map<std::string, std::vector<const Implementation*>> byName;
        for (Implementation& one : offeredImplementations(step_))
            if (wanted == Offered::All || keepsBits(one.name))
                offers_.implementations.push_back(std::move(one));
        result_.offered = static_cast<std::int64_t>(offers_.implementations.size());
        for (const Implementation& one : offers_.implementations) byName[one.name].push_back(&one);
        for (auto& [name, entries] : byName) {
            progress("measuring '" + name + "' of " + std::to_string(entries.size()) + " ops");
            while (!entries.empty()) {
                ImplementationChoice choice;
                std::vector<const Implementation*> later;
                addAll(choice, entries, later);
                if (choice.empty()) {  // none can run so even by itself
                    result_.impossible += static_cast<std::int64_t>(entries.size());
                    break;
                }
                if (Status ok = round(choice); !ok) return ok.error();
                entries = std::move(later);
            }
        }
        return std::move(result_);
    }

private:
    // As many of the entries as go together, halving what does not.
    void addAll(ImplementationChoice& choice, const std::vector<const Implementation*>& entries,
                std::vector<const Implementation*>& later) const {
        ImplementationChoice wanted = choice;
        for (const Implementation* one : entries) wanted.emplace(one->op, one->name);
        if (core::applyImplementations(step_.graph, offers_, wanted)) {
            choice = std::move(wanted);
        } else if (entries.size() == 1) {
            later.push_back(entries.front());
        } else {
            const auto middle = entries.begin() + static_cast<std::ptrdiff_t>(entries.size() / 2);
            addAll(choice, {entries.begin(), middle}, later);
            addAll(choice, {middle, entries.end()}, later);
        }
    }

    Status round(ImplementationChoice choice) {
        while (!choice.empty()) {
            auto under = stepUnder(step_, offers_, choice);
            if (!under) return under.error();
            auto interpreter = Interpreter::create(*under, tracker_);
            if (!interpreter) return interpreter.error();
            const core::Schedule order = core::baselineSchedule(under->graph);
            // Warms caches up besides.
            Origins origins(reference_, under->graph);
            RunOptions options;
            options.observer = &origins;
            if (auto ran = interpreter->run(order, options); !ran) return ran.error();
            tracker_.disownLive();
            if (keepsBits(choice.begin()->second) && !origins.ops().empty()) {
                if (leaveOut(choice, origins.ops()) == 0)
                    return core::Error{
                        core::ErrorCode::Internal,
                        "op " + std::to_string(*origins.ops().begin()) + " differs from run to run",
                        "implementations cannot be measured on this step"};
                continue;
            }
            return measure(choice, *under, order, *interpreter);
        }
        return {};
    }

    std::size_t leaveOut(ImplementationChoice& choice, const std::set<OpIndex>& origins) {
        return std::erase_if(choice, [&](const auto& item) {
            const Implementation& one = *offers_.find(item.first, item.second);
            const bool differs = origins.contains(one.op) || origins.contains(one.backward);
            if (differs) ++result_.different;
            return differs;
        });
    }

    Status measure(const ImplementationChoice& choice, const Step& under,
                   const core::Schedule& order, Interpreter& interpreter) {
        const auto made = profileOrder(interpreter, under.graph, order, tracker_, repeat_);
        if (!made) return made.error();
        const Profile& found = made->profile;
        for (const auto& [op, name] : choice) {
            Implementation one = *offers_.find(op, name);
            one.time = found.times[op];
            one.workspace = found.workspaces[op];
            if (one.kind == ImplementationKind::Algorithm && *one.time >= captured_.times[op] &&
                *one.workspace >= captured_.workspaces[op]) {
                ++result_.dominated;
                continue;
            }
            result_.signatures.push_back({op, name, op, found.signatures[op]});
            if (const OpIndex gradient = one.backward; gradient != kNone) {
                one.backwardTime = found.times[gradient];
                one.backwardWorkspace = found.workspaces[gradient];
                result_.signatures.push_back({op, name, gradient, found.signatures[gradient]});
            }
            result_.menu.implementations.push_back(std::move(one));
        }
        return {};
    }

    const Step& step_;
    MemoryTracker& tracker_;
    const Profile& captured_;
    const Reference& reference_;
    int repeat_;
    Menu offers_;
    MeasuredMenu result_;
};

}  // namespace

core::Result<MeasuredMenu> measureImplementations(
    const Step& step, MemoryTracker& tracker, const Profile& captured, const Reference& reference,
    Offered offered, int repeat, const std::function<void(const std::string&)>& progress) {
    return Measurement(step, tracker, captured, reference, repeat).run(offered, progress);
}

}  // namespace hw::executor
