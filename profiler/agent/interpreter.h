// SPDX-License-Identifier: MIT
#pragma once

namespace hw::profiler::agent {

/// Whether this process is Python.
bool findPython();
bool pythonInitialized();

/// The end of the interpreter waits for a stay() of the agent's thread from now on. A thread that
/// enters an interpreter as it ends (PyGILState_Ensure) writes into memory that the interpreter has
/// freed. Called with the interpreter's lock.
void watchEnd();
/// Has that called as Python begins. Every Python imports _io then, on its main thread: in the
/// table of built-in modules ours takes the place of what makes that module.
void watchBegin();

/// Runs Python's text on this thread. Waits for the interpreter's lock. False: it raised, or the
/// program ends.
bool stay(const char* script);

/// The interpreter is about to end: waits until the agent's thread has left it, and keeps it out
/// from now on. Called without the interpreter's lock.
void leaveInterpreter();
bool interpreterEnds();
/// In a forked process, which has one thread.
void forgetStays();

}  // namespace hw::profiler::agent
