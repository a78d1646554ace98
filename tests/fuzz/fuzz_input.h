// SPDX-License-Identifier: MIT
// What the fuzzers share: the input as a file in memory, and a check of what comes out.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "core/base/result.h"
#include "core/import/text_source.h"
#include "core/memory/evaluate.h"
#include "core/session/recorded_memory.h"
#include "core/session/session_writer.h"

namespace hw::fuzz {

/// The input as a file, which the next input replaces.
inline std::string fileOf(const std::uint8_t* data, std::size_t size) {
    static const std::string path = "/dev/shm/highwater-fuzz-" + std::to_string(getpid());
    static const int removed = std::atexit([] { std::remove(path.c_str()); });
    static_cast<void>(removed);
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
    return path;
}

inline void requireClear(const core::Error& error) {
    if (error.what.empty() || error.what.find('\n') != std::string::npos) std::abort();
}

/// What the commands do with a session that was read.
inline void use(const core::Session& session) {
    static_cast<void>(core::loadRecordedMemory(session));
    const auto step = session.lastStep();
    if (!step) return requireClear(step.error());
    const auto graph = core::loadGraph(session, *step);
    if (!graph) return requireClear(graph.error());
    static_cast<void>(core::evaluate(*graph, core::baselineSchedule(*graph)));
}

/// Runs an importer on the input.
template <class Importer>
int import(const std::uint8_t* data, std::size_t size, Importer importer) {
    auto source = core::TextSource::open(fileOf(data, size));
    if (!source) return 0;
    core::SessionWriter session = core::SessionWriter::inMemory();
    const auto done = importer(*source, session);
    if (done)
        use(session);
    else
        requireClear(done.error());
    return 0;
}

}  // namespace hw::fuzz
