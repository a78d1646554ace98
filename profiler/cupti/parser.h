// SPDX-License-Identifier: MIT
// Reads CUPTI's activity buffers, of CUPTI 12 and 13 alike: later versions of a record only append
// fields, so each record is read as far as it goes.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "profiler/wire/activity.h"

namespace hw::profiler::cupti {

/// cuptiActivityGetNextRecord of the CUPTI that filled the buffer: only it knows its sizes.
using NextRecord = CUptiResult (*)(std::uint8_t* buffer, std::size_t validBytes,
                                   CUpti_Activity** record);

/// The same for records as this build's headers describe them, where no CUPTI is at hand.
CUptiResult nextRecord(std::uint8_t* buffer, std::size_t validBytes, CUpti_Activity** record);

/// Takes what a buffer holds.
class Sink {
public:
    virtual ~Sink() = default;
    /// Before the first record that uses the name.
    virtual void name(std::uint32_t id, std::string_view text) = 0;
    virtual void activity(const wire::Activity& activity) = 0;
    virtual void device(std::uint32_t ordinal, std::uint64_t bytes, std::string_view name) = 0;
};

struct Parsed {
    std::size_t records = 0;       // handed to the sink
    std::size_t kernels = 0;       // among them
    std::size_t others = 0;        // of kinds that were not asked for
    std::size_t shortRecords = 0;  // cut off, or of a version that lacks what is needed
    std::size_t untimed = 0;       // the device had no room for their times
    std::size_t unreadable = 0;    // bytes behind a record that CUPTI itself does not know
    Parsed& operator+=(const Parsed& other);
};

class Parser {
public:
    explicit Parser(NextRecord next) : next_(next) {}
    /// `buffer` is aligned to 8 bytes, of which the first `validBytes` are filled.
    Parsed parse(std::uint8_t* buffer, std::size_t validBytes, Sink& sink);

private:
    std::uint32_t idOf(const char* text, Sink& sink);
    void record(const CUpti_Activity* record, std::size_t bytes, Sink& sink, Parsed& parsed);

    void device(const CUpti_Activity* record, std::size_t bytes, Sink& sink, Parsed& parsed);
    template <class Read>
    void deliver(Read read, Sink& sink, Parsed& parsed);

    NextRecord next_;
    std::unordered_map<std::string, std::uint32_t> names_;
    std::unordered_map<int, std::size_t> sizes_;  // of records by kind, as the walker tells them
};

}  // namespace hw::profiler::cupti
