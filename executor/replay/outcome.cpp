// SPDX-License-Identifier: MIT
#include "executor/replay/outcome.h"

#include <nlohmann/json.hpp>

#include "core/base/error_json.h"

namespace hw::executor {
namespace {

using Json = nlohmann::json;
using core::Bytes;
using core::Nanoseconds;

template <class Number>
Json orNull(const std::optional<Number>& number) {
    return number ? Json(*number) : Json(nullptr);
}

std::optional<int> orNone(const Json& json) {
    return json.is_null() ? std::nullopt : std::optional(json.get<int>());
}

Json written(const core::OpSignature& signature) {
    Json allocations = Json::array();
    for (const core::Allocation& allocation : signature.allocations)
        allocations.push_back({allocation.bytes.count(), orNull(allocation.output),
                               allocation.beginEvent, orNull(allocation.endEvent)});
    return {signature.events, std::move(allocations)};
}

core::OpSignature signatureOf(const Json& json) {
    core::OpSignature signature;
    signature.events = json.at(0).get<int>();
    for (const Json& each : json.at(1)) {
        core::Allocation allocation;
        allocation.bytes = Bytes(each.at(0).get<std::int64_t>());
        allocation.output = orNone(each.at(1));
        allocation.beginEvent = each.at(2).get<int>();
        allocation.endEvent = orNone(each.at(3));
        signature.allocations.push_back(allocation);
    }
    return signature;
}

Json written(const core::RunRow& run) {
    return {{"step", run.step},
            {"created_ns", run.createdNs},
            {"device", run.device},
            {"predicted_peak", run.predictedPeak.count()},
            {"measured_peak", run.measuredPeak.count()},
            {"arena", orNull(run.arenaBytes)},
            {"time", run.time.count()},
            {"baseline_time", run.baselineTime.count()},
            {"compared", run.compared},
            {"different", run.different},
            {"nonfinite", run.nonfinite}};
}

core::RunRow runOf(const Json& json) {
    core::RunRow run;
    run.step = json.at("step").get<std::int64_t>();
    run.createdNs = json.at("created_ns").get<std::int64_t>();
    run.device = json.at("device").get<std::string>();
    run.predictedPeak = Bytes(json.at("predicted_peak").get<std::int64_t>());
    run.measuredPeak = Bytes(json.at("measured_peak").get<std::int64_t>());
    if (!json.at("arena").is_null()) run.arenaBytes = json.at("arena").get<std::int64_t>();
    run.time = Nanoseconds(json.at("time").get<std::int64_t>());
    run.baselineTime = Nanoseconds(json.at("baseline_time").get<std::int64_t>());
    run.compared = json.at("compared").get<std::int64_t>();
    run.different = json.at("different").get<std::int64_t>();
    run.nonfinite = json.at("nonfinite").get<std::int64_t>();
    return run;
}

Json written(const Profile& profile) {
    Json ops = Json::array();
    for (std::size_t i = 0; i < profile.signatures.size(); ++i)
        ops.push_back({profile.times[i].count(), profile.workspaces[i].count(),
                       written(profile.signatures[i])});
    return ops;
}

Profile profileOf(const Json& json) {
    Profile profile;
    for (const Json& op : json) {
        profile.times.emplace_back(op.at(0).get<std::int64_t>());
        profile.workspaces.emplace_back(op.at(1).get<std::int64_t>());
        profile.signatures.push_back(signatureOf(op.at(2)));
    }
    return profile;
}

core::Error errorOf(const Json& json) {
    return {static_cast<core::ErrorCode>(json.at("code").get<int>()),
            json.at("what").get<std::string>(), json.at("hint").get<std::string>()};
}

Outcome outcomeOf(const Json& json) {
    Outcome outcome;
    outcome.json = json.at("json").get<std::string>();
    outcome.text = json.at("text").get<std::string>();
    if (json.contains("difference")) outcome.difference = errorOf(json["difference"]);
    outcome.run = runOf(json.at("run"));
    outcome.recomputedOps = json.at("recomputed_ops").get<std::int64_t>();
    outcome.recordedHere = json.at("recorded_here").get<bool>();
    outcome.profile = profileOf(json.at("profile"));
    outcome.menu = json.at("menu").get<std::string>();
    for (const Json& each : json.at("signatures"))
        outcome.signatures.push_back({each.at(0).get<core::OpIndex>(),
                                      each.at(1).get<std::string>(),
                                      each.at(2).get<core::OpIndex>(), signatureOf(each.at(3))});
    return outcome;
}

}  // namespace

std::string writeOutcome(const core::Result<Outcome>& outcome) {
    Json json;
    if (!outcome) {
        json["error"] = core::errorJson(outcome.error());
    } else {
        json["json"] = outcome->json;
        json["text"] = outcome->text;
        if (outcome->difference) json["difference"] = core::errorJson(*outcome->difference);
        json["run"] = written(outcome->run);
        json["recomputed_ops"] = outcome->recomputedOps;
        json["recorded_here"] = outcome->recordedHere;
        json["profile"] = written(outcome->profile);
        json["menu"] = outcome->menu;
        json["signatures"] = Json::array();
        for (const core::ImplementationSignature& each : outcome->signatures)
            json["signatures"].push_back({each.op, each.name, each.of, written(each.signature)});
    }
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

core::Result<Outcome> readOutcome(const std::string& text) {
    try {
        const Json json = Json::parse(text);
        if (json.contains("error")) return errorOf(json["error"]);
        return outcomeOf(json);
    } catch (const Json::exception& error) {
        return core::Error{core::ErrorCode::Internal,
                           std::string("the run did not say what it came to: ") + error.what(),
                           "run it again"};
    }
}

}  // namespace hw::executor
