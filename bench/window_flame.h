// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace hw::bench {

/// Frames of the flame graph of a made-up program: its keys, its zoom and its search; prints them.
int flame();

}  // namespace hw::bench
