// SPDX-License-Identifier: MIT
// The entries of whatever libcupti the process has, or can load; none is ever linked.
#pragma once

#include <cupti.h>

#include <optional>
#include <string>

#include "profiler/cupti/refusal.h"

namespace hw::profiler::cupti {

/// Functions of CUPTI 12 and 13; those that may be null are marked.
struct Library {
    decltype(&::cuptiSubscribe) subscribe;
    decltype(&::cuptiSubscribe_v2) subscribeNamed;  // null before 12.6
    decltype(&::cuptiUnsubscribe) unsubscribe;
    decltype(&::cuptiEnableCallback) enableCallback;
    decltype(&::cuptiGetTimestamp) timestamp;
    decltype(&::cuptiSetThreadIdType) setThreadIdType;
    decltype(&::cuptiActivityRegisterCallbacks) registerCallbacks;
    decltype(&::cuptiActivityEnable) enable;
    decltype(&::cuptiActivityEnableAndDump) enableAndDump;  // may be null
    decltype(&::cuptiActivityDisable) disable;
    decltype(&::cuptiActivityEnableRuntimeApi) enableRuntime;  // may be null
    decltype(&::cuptiActivityEnableDriverApi) enableDriver;    // may be null
    decltype(&::cuptiActivityGetAttribute) attribute;
    decltype(&::cuptiActivityFlushAll) flushAll;
    decltype(&::cuptiActivityGetNextRecord) nextRecord;
    decltype(&::cuptiActivityGetNumDroppedRecords) dropped;
    decltype(&::cuptiActivityPushExternalCorrelationId) push;
    decltype(&::cuptiActivityPopExternalCorrelationId) pop;
    decltype(&::cuptiGetDeviceId) deviceOf;
};

/// The one that is loaded already (torch's, for its own profiler), or the first that can be:
/// HIGHWATER_CUPTI where it is set, by name, beside the CUDA runtime, in the toolkit. Loading a
/// second one beside a first would split what they see. Null: `why` says so.
const Library* loadLibrary(Refusal& why);

/// Whether the driver's library is on this machine.
bool hasDriver();

}  // namespace hw::profiler::cupti
