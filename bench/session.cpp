// SPDX-License-Identifier: MIT
// How fast a session takes memory events in, how large they are in the file, and what it costs to
// open it and to read a window of it, by the number of events.
// usage: bench_session [CSV]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <vector>

#include "bench/made_up_events.h"
#include "core/session/session_writer.h"

namespace {

using namespace hw::core;
using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

[[noreturn]] void stop(const Error& error) {
    std::fprintf(stderr, "bench_session: %s\n", error.what.c_str());
    std::exit(1);
}

template <class T>
T checked(Result<T> result) {
    if (!result) stop(result.error());
    return std::move(*result);
}
void checked(const Status& status) {
    if (!status) stop(status.error());
}

struct Figures {
    double perSecond = 0, bytesPerEvent = 0, openMs = 0;
    double wholeMs = 0, windowMs = 0, eventsMs = 0;  // medians
};

double median(std::vector<double> values) {
    std::nth_element(values.begin(),
                     values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

Figures measure(const std::string& path, std::int64_t count) {
    Figures figures;
    std::vector<MemoryEventRow> events;
    events.reserve(static_cast<std::size_t>(count));
    hw::bench::MadeUpEvents source;
    for (std::int64_t i = 0; i < count; ++i) events.push_back(source.next());
    auto begin = Clock::now();
    {
        SessionWriter session = checked(SessionWriter::create(path));
        checked(session.begin());
        std::int64_t written = 0;
        for (const MemoryEventRow& event : events) {
            checked(session.insert(event));
            if (++written % 100'000 == 0) {
                checked(session.commit());
                checked(session.begin());
            }
        }
        checked(session.commit());
    }
    figures.perSecond = static_cast<double>(count) / secondsSince(begin);
    figures.bytesPerEvent =
        static_cast<double>(std::filesystem::file_size(path)) / static_cast<double>(count);

    std::vector<double> opens, wholes, windows, raws;
    std::mt19937_64 random(2);
    const std::int64_t first = events.front().timeNs, span = events.back().timeNs - first;
    for (int trial = 0; trial < 15; ++trial) {
        begin = Clock::now();
        Session session = checked(Session::open(path));
        opens.push_back(secondsSince(begin) * 1e3);
        const auto read = [&](std::int64_t from, std::int64_t length, std::vector<double>& times) {
            begin = Clock::now();
            if (checked(session.window(1, from, from + length, 1000)).empty())
                stop({ErrorCode::Internal, "an empty window", ""});
            times.push_back(secondsSince(begin) * 1e3);
        };
        read(first, span + 1, wholes);
        for (int k = 0; k < 10; ++k) {  // from a hundredth of the session to a screenful of events
            const std::int64_t length = std::max<std::int64_t>(span / 100 >> k, 100'000'000);
            const auto room = static_cast<std::uint64_t>(std::max<std::int64_t>(span - length, 1));
            const auto from = first + static_cast<std::int64_t>(random() % room);
            read(from, length, windows);
            begin = Clock::now();
            (void)checked(session.memoryEvents(from, from + 100'000'000));
            raws.push_back(secondsSince(begin) * 1e3);
        }
    }
    figures.openMs = median(opens), figures.wholeMs = median(wholes);
    figures.windowMs = median(windows), figures.eventsMs = median(raws);
    return figures;
}

}  // namespace

int main(int argc, char** argv) {
    std::FILE* csv = argc > 1 ? std::fopen(argv[1], "w") : nullptr;
    if (argc > 1 && csv == nullptr) {
        std::fprintf(stderr, "cannot write '%s'\n", argv[1]);
        return 1;
    }
    std::string folder = (std::filesystem::temp_directory_path() / "bench-session-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) return 1;
    if (csv != nullptr)
        std::fprintf(csv,
                     "events,events_per_second,bytes_per_event,open_ms,whole_ms,window_ms,"
                     "events_ms\n");
    std::printf("%10s %14s %12s %9s %12s %12s %14s\n", "events", "events/s", "bytes/event",
                "open, ms", "whole, ms", "window, ms", "0.1 s raw, ms");
    for (const std::int64_t count : {100'000, 1'000'000, 10'000'000}) {
        const std::string path = folder + "/" + std::to_string(count) + ".hws";
        const Figures f = measure(path, count);
        std::printf("%10lld %14.0f %12.2f %9.2f %12.2f %12.2f %14.2f\n",
                    static_cast<long long>(count), f.perSecond, f.bytesPerEvent, f.openMs,
                    f.wholeMs, f.windowMs, f.eventsMs);
        std::fflush(stdout);
        if (csv != nullptr)
            std::fprintf(csv, "%lld,%.0f,%.3f,%.3f,%.3f,%.3f,%.3f\n", static_cast<long long>(count),
                         f.perSecond, f.bytesPerEvent, f.openMs, f.wholeMs, f.windowMs, f.eventsMs);
        std::filesystem::remove(path);
    }
    std::filesystem::remove_all(folder);
    if (csv != nullptr) std::fclose(csv);
    return 0;
}
