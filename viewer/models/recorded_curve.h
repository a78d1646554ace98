// SPDX-License-Identifier: GPL-3.0-or-later
// The curve and the lanes of an imported trace that holds no step.
#pragma once

#include "core/session/annotations.h"
#include "core/session/device_work.h"
#include "core/session/recorded_memory.h"
#include "viewer/models/lanes.h"
#include "viewer/models/step_curve.h"

namespace hw::viewer {

/// One moment an allocator event; it ends with the last of them. Without events: one moment of no
/// bytes as long as the ops and the device's work.
StepCurve recordedCurve(const core::RecordedMemory& memory, const Bands& bands);

/// The outermost ops, cut where the curve ends; where threads overlap, the earlier op is shown.
Lanes recordedLanes(const core::RecordedMemory& memory, const StepCurve& curve);

/// Adds the outermost annotations of the device that is shown, cut where the curve ends.
void addAnnotations(Lanes& lanes, const std::vector<core::Annotation>& annotations,
                    const core::RecordedMemory& memory, const StepCurve& curve);

/// Adds the busiest streams of a device, cut where the curve ends.
void addStreams(Lanes& lanes, core::DeviceWork work, const StepCurve& curve);

}  // namespace hw::viewer
