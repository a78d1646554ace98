// SPDX-License-Identifier: MIT
#include "core/session/shortages.h"

#include <nlohmann/json.hpp>

namespace hw::core {

using nlohmann::json;

std::string shortagesText(const std::vector<Shortage>& shortages) {
    json list = json::array();
    for (const Shortage& each : shortages)
        list.push_back({{"device", each.device},
                        {"ordinal", each.ordinal},
                        {"seq", each.seq},
                        {"time_ns", each.timeNs},
                        {"asked_bytes", each.asked.count()},
                        {"free_bytes", each.free ? json(each.free->count()) : json(nullptr)},
                        {"allocated_bytes", each.allocated.count()},
                        {"place", each.place}});
    // Names in a file of another program need not be UTF-8.
    return list.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<Shortage> loadShortages(const Session& session) {
    std::vector<Shortage> shortages;
    const auto text = session.meta(kShortagesKey);
    if (!text || text->empty()) return shortages;
    const json list = json::parse(*text, nullptr, false);
    if (!list.is_array()) return shortages;
    const auto number = [](const json& row, const char* key) {
        const auto at = row.find(key);
        return at != row.end() && at->is_number_integer() ? at->get<std::int64_t>() : 0;
    };
    const auto words = [](const json& row, const char* key) {
        const auto at = row.find(key);
        return at != row.end() && at->is_string() ? at->get<std::string>() : std::string();
    };
    for (const json& row : list) {
        if (!row.is_object() || shortages.size() >= kMostShortages) continue;
        Shortage& each = shortages.emplace_back();
        each.device = words(row, "device"), each.place = words(row, "place");
        each.ordinal = number(row, "ordinal");
        each.seq = number(row, "seq"), each.timeNs = number(row, "time_ns");
        each.asked = Bytes(number(row, "asked_bytes"));
        each.allocated = Bytes(number(row, "allocated_bytes"));
        if (const auto free = row.find("free_bytes");
            free != row.end() && free->is_number_integer())
            each.free = Bytes(free->get<std::int64_t>());
    }
    return shortages;
}

std::string describeShortage(const Shortage& shortage) {
    std::string text = "out of memory: asked for " + humanBytes(shortage.asked);
    if (shortage.free) text += ", " + humanBytes(*shortage.free) + " free on the device";
    text += ", " + humanBytes(shortage.allocated) + " allocated";
    if (!shortage.place.empty()) text += ", at " + shortage.place;
    return text;
}

}  // namespace hw::core
