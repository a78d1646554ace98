// SPDX-License-Identifier: MIT
// The menu's JSON form, described in menu.h.
#include "core/plan/menu.h"

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/file.h"
#include "core/base/json_integer.h"
#include "core/plan/implementations.h"

namespace hw::core {
namespace {

using nlohmann::json;

constexpr int kMenuVersion = 1;
constexpr const char* kMenuHint = "docs/menu.md describes the form of a menu";

// Reads one entry; throws what is wrong with it.
class EntryReader {
public:
    explicit EntryReader(const json& entry) : entry_(entry) {}

    Implementation read() {
        if (!entry_.is_object()) throw std::invalid_argument("it is no object");
        one_.op = index("op");
        one_.name = text("name");
        readKind();
        if (const auto value = figure("time_ns")) one_.time = Nanoseconds(*value);
        if (const auto value = figure("workspace_bytes")) one_.workspace = Bytes(*value);
        if (one_.kind != ImplementationKind::Algorithm) readDataflow();
        refuseOthers();
        return one_;
    }

private:
    void readKind() {
        const std::string name = text("kind");
        for (const auto kind :
             {ImplementationKind::Algorithm, ImplementationKind::OutputActivated,
              ImplementationKind::IntermediateActivated, ImplementationKind::InPlace})
            if (name == implementationKindName(kind)) {
                one_.kind = kind;
                return;
            }
        throw std::invalid_argument("there is no kind '" + name + "'");
    }

    void readDataflow() {
        const bool inPlace = one_.kind == ImplementationKind::InPlace;
        if (inPlace) one_.takes = index("takes");
        if (one_.kind == ImplementationKind::IntermediateActivated)
            one_.bytes = Bytes(required("bytes"));
        else if (const auto value = figure("output"))
            one_.output = static_cast<std::int32_t>(std::min<std::int64_t>(*value, INT32_MAX));
        if (inPlace && !entry_.contains("backward")) return;
        one_.backward = index("backward");
        if (one_.backward <= one_.op)
            throw std::invalid_argument("'backward' does not come after 'op'");
        if (inPlace && !entry_.contains("instead_of"))
            one_.insteadOf = one_.takes;
        else
            one_.insteadOf = index("instead_of");
        if (const auto value = figure("backward_time_ns")) one_.backwardTime = Nanoseconds(*value);
        if (const auto value = figure("backward_workspace_bytes"))
            one_.backwardWorkspace = Bytes(*value);
    }

    void refuseOthers() const {
        for (const auto& [key, value] : entry_.items())
            if (!known_.contains(key) && key != "name" && key != "kind")
                throw std::invalid_argument("'" + key + "' has no meaning for kind '" +
                                            std::string(implementationKindName(one_.kind)) + "'");
    }

    std::string text(const char* key) const {
        const auto at = entry_.find(key);
        if (at == entry_.end() || !at->is_string() || at->get_ref<const std::string&>().empty())
            throw std::invalid_argument("'" + std::string(key) + "' is missing or no text");
        return at->get<std::string>();
    }
    std::optional<std::int64_t> figure(const char* key) {
        known_.insert(key);
        if (!entry_.contains(key)) return std::nullopt;
        const json& value = entry_.at(key);
        if (value.is_number() && !value.is_number_float() && value >= 0)
            return integerOf<std::int64_t>(value);
        throw std::invalid_argument("'" + std::string(key) + "' is no whole number from 0 on");
    }
    std::int64_t required(const char* key) {
        const auto value = figure(key);
        if (!value) throw std::invalid_argument("'" + std::string(key) + "' is missing");
        return *value;
    }
    std::int32_t index(const char* key) {
        const std::int64_t value = required(key);
        if (value > INT32_MAX)
            throw std::invalid_argument("'" + std::string(key) + "' is " + std::to_string(value) +
                                        ", more than a graph can have");
        return static_cast<std::int32_t>(value);
    }

    const json& entry_;
    Implementation one_;
    std::set<std::string> known_;
};

// `fingerprint` tells that of the graph; it is asked only where the menu states one.
Menu parseDocument(const json& document, const std::function<std::string()>& fingerprint) {
    if (const auto of = document.find("graph");
        of != document.end() && of->get<std::string>() != fingerprint())
        throw std::invalid_argument("it was made for another graph");
    Menu menu;
    std::set<std::pair<OpIndex, std::string>> names;
    const json& entries = document.at("implementations");
    if (!entries.is_array()) throw std::invalid_argument("'implementations' is no list");
    for (std::size_t i = 0; i < entries.size(); ++i) {
        try {
            Implementation one = EntryReader(entries[i]).read();
            if (!names.emplace(one.op, one.name).second)
                throw std::invalid_argument("op " + std::to_string(one.op) + " has '" + one.name +
                                            "' already");
            menu.implementations.push_back(std::move(one));
        } catch (const std::exception& error) {
            throw std::invalid_argument("entry " + std::to_string(i) + ": " + error.what());
        }
    }
    return menu;
}

json entryJson(const Implementation& one) {
    json entry{{"op", one.op}, {"name", one.name}, {"kind", implementationKindName(one.kind)}};
    if (one.time) entry["time_ns"] = one.time->count();
    if (one.workspace) entry["workspace_bytes"] = one.workspace->count();
    if (one.takes != kNone) entry["takes"] = one.takes;
    if (one.kind == ImplementationKind::IntermediateActivated)
        entry["bytes"] = one.bytes.count();
    else if (one.output != 0)
        entry["output"] = one.output;
    if (one.backward == kNone) return entry;
    entry["backward"] = one.backward;
    entry["instead_of"] = one.insteadOf;
    if (one.backwardTime) entry["backward_time_ns"] = one.backwardTime->count();
    if (one.backwardWorkspace) entry["backward_workspace_bytes"] = one.backwardWorkspace->count();
    return entry;
}

Error malformed(const std::string& what) {
    return badInput("the menu is malformed: " + what, kMenuHint);
}

Result<Menu> parseForm(const std::string& text, const std::function<std::string()>& fingerprint) {
    try {
        const json document = json::parse(text);
        if (!document.is_object() || document.value("format", "") != "highwater-menu")
            return badInput("this is no Highwater menu of implementations", kMenuHint);
        if (const int version = integerAt(document, "version", 0); version != kMenuVersion)
            return badInput(
                "the menu has version " + std::to_string(version) +
                    ", this program reads version " + std::to_string(kMenuVersion),
                version > kMenuVersion ? "use a newer Highwater" : "make the menu again");
        return parseDocument(document, fingerprint);
    } catch (const std::exception& error) {
        return malformed(error.what());
    }
}

// What makes the entry impossible on the graph; empty when nothing does.
std::string entryFault(const Implementation& one, const TrainingGraph& graph) {
    if (one.op < 0 || (one.kind == ImplementationKind::InPlace && one.takes < 0) ||
        (one.backward != kNone && one.insteadOf < 0))
        return "'" + one.name + "' does not say of what";
    const auto beyond = [](const char* key, std::int32_t index, std::size_t count) -> std::string {
        if (index < static_cast<std::int64_t>(count)) return {};
        return "'" + std::string(key) + "' is " + std::to_string(index) + ", the graph has " +
               std::to_string(count);
    };
    for (const auto& [key, index] : {std::pair("op", one.op), std::pair("backward", one.backward)})
        if (std::string fault = beyond(key, index, graph.ops.size()); !fault.empty()) return fault;
    for (const auto& [key, index] :
         {std::pair("takes", one.takes), std::pair("instead_of", one.insteadOf)})
        if (std::string fault = beyond(key, index, graph.storages.size()); !fault.empty())
            return fault;
    if (one.kind == ImplementationKind::Algorithm && (!one.time || !one.workspace))
        return "an algorithm states time_ns and workspace_bytes";
    const std::string fault = implementationFault(graph, one);
    return fault.empty() ? "" : "'" + one.name + "' " + fault;
}

}  // namespace

std::string_view implementationKindName(ImplementationKind kind) {
    switch (kind) {
        case ImplementationKind::Algorithm:
            return "algorithm";
        case ImplementationKind::OutputActivated:
            return "output-activated";
        case ImplementationKind::IntermediateActivated:
            return "intermediate-activated";
        case ImplementationKind::InPlace:
            return "in-place";
    }
    return "algorithm";
}

const Implementation* Menu::find(OpIndex op, std::string_view name) const {
    for (const Implementation& one : implementations)
        if (one.op == op && one.name == name) return &one;
    return nullptr;
}

Menu onlyChosen(const Menu& menu, const ImplementationChoice& choice) {
    Menu kept;
    for (const Implementation& one : menu.implementations)
        if (const auto at = choice.find(one.op); at != choice.end() && at->second == one.name)
            kept.implementations.push_back(one);
    return kept;
}

Result<Menu> parseMenu(const std::string& text, const TrainingGraph& graph) {
    auto menu = parseForm(text, [&] { return graph.fingerprint(); });
    if (!menu) return menu.error();
    if (const Status fits = checkMenu(*menu, graph); !fits) return fits.error();
    return menu;
}

Result<Menu> parseMenu(const std::string& text, const std::string& fingerprint) {
    return parseForm(text, [&] { return fingerprint; });
}

Status checkMenu(const Menu& menu, const TrainingGraph& graph) {
    for (std::size_t i = 0; i < menu.implementations.size(); ++i)
        if (const std::string fault = entryFault(menu.implementations[i], graph); !fault.empty())
            return malformed("entry " + std::to_string(i) + ": " + fault);
    return {};
}

Result<Menu> readMenuFile(const std::string& path, const TrainingGraph& graph) {
    const Result<std::string> text = readTextFile(path, "menu");
    if (!text) return text.error();
    Result<Menu> menu = parseMenu(*text, graph);
    if (!menu) return badInput(path + ": " + menu.error().what, menu.error().hint);
    return menu;
}

std::string writeMenu(const Menu& menu) {
    json entries = json::array();
    for (const Implementation& one : menu.implementations) entries.push_back(entryJson(one));
    const json document{
        {"format", "highwater-menu"}, {"version", kMenuVersion}, {"implementations", entries}};
    return document.dump();
}

}  // namespace hw::core
