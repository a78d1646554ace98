// SPDX-License-Identifier: MIT
// Starts other programs.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace hw::core {

/// A program to start, and what becomes its standard streams; -1: ours.
struct Spawn {
    std::vector<std::string> command;      // its program is looked for in PATH
    std::vector<std::string> environment;  // NAME=value; empty: ours
    int input = -1, output = -1, errors = -1;
    /// The user's own: it gets the signals as rememberSignals() has seen them.
    bool keepsSignals = false;
    std::string folder = {};  // in which it runs; empty: ours
};

/// Notes which signals this program was started with as ignored or blocked, and waits for children
/// even where it was to ignore their ends. To be called before anything else changes a signal.
void rememberSignals();

struct Spawned {
    pid_t pid = -1;
    int error = 0;  // of errno: why it could not be started
};

/// Returns once the program runs in the process, or could not be started. It may be called while
/// other threads run.
Spawned spawn(const Spawn& program);

/// The wait status of a child, once it has ended; -1 where there is no such child.
int waitFor(pid_t child);

/// Whether a wait status is that of a program that ended by itself with status 0.
bool succeeded(int waitStatus);

}  // namespace hw::core
