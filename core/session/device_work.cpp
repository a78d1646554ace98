// SPDX-License-Identifier: MIT
#include "core/session/device_work.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/session/access.h"
#include "core/session/guarded.h"

namespace hw::core {

Result<DeviceWork> loadDeviceWork(const Session& session, std::int64_t ordinal,
                                  std::int64_t originNs) {
    return guarded(session.path(), "reading the device's work", [&] {
        DeviceWork work;
        std::unordered_map<std::string, std::int32_t> known;
        std::map<std::int64_t, DeviceWork::Stream> streams;
        Statement from(databaseOf(session),
                       "SELECT w.name, stream, begin_ns, end_ns FROM"
                       " (SELECT device, name, stream, begin_ns, end_ns FROM kernels UNION ALL"
                       "  SELECT device, kind, stream, begin_ns, end_ns FROM copies) w"
                       " JOIN devices d ON d.id = w.device WHERE d.ordinal = ? AND"
                       " d.kind <> 'cpu' AND end_ns > begin_ns AND end_ns > ? ORDER BY begin_ns");
        from.bind(1, ordinal).bind(2, originNs);
        while (from.step()) {
            std::int64_t begin = 0, end = 0;
            if (__builtin_sub_overflow(from.integer(2), originNs, &begin) ||
                __builtin_sub_overflow(from.integer(3), originNs, &end))
                continue;
            begin = std::max<std::int64_t>(begin, 0);
            const auto [name, isNew] =
                known.try_emplace(from.text(0), static_cast<std::int32_t>(work.names.size()));
            if (isNew) work.names.push_back(name->first);
            DeviceWork::Stream& stream = streams[from.integer(1)];
            stream.id = from.integer(1);
            stream.busy += Nanoseconds(end - begin);
            stream.spans.push_back({name->second, Nanoseconds(begin), Nanoseconds(end)});
        }
        for (auto& [id, stream] : streams) work.streams.push_back(std::move(stream));
        std::stable_sort(work.streams.begin(), work.streams.end(),
                         [](const auto& a, const auto& b) { return a.busy > b.busy; });
        return work;
    });
}

}  // namespace hw::core
