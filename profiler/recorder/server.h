// SPDX-License-Identifier: MIT
// The recorder's end of the socket: a private Unix socket and the agents that connect to it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/result.h"
#include "profiler/recorder/assembler.h"
#include "profiler/recorder/backlog.h"
#include "profiler/wire/frame_reader.h"
#include "profiler/wire/records.h"

namespace hw::profiler {

/// Listens in a new folder that only this user may enter (and, for root, the user whose process is
/// recorded), and admits only processes of these two.
/// The first process that brings a framework is recorded into the session, with the other ranks of
/// its training, or with all processes that were asked for; others are noted.
class Server {
public:
    /// Answers a process that asks for the native capture: the library, "" where there is none.
    /// Called on a thread of its own, since building it takes long.
    using FindNative = std::function<std::string(pid_t)>;

    /// Errors: Internal when no socket can be made.
    /// `user`: whose process is recorded, where that is not ours. `folder`: where the socket is
    /// made; empty: where temporary files go.
    static core::Result<std::unique_ptr<Server>> open(std::string sessionPath,
                                                      wire::ConfigRecord config,
                                                      std::optional<uid_t> user = {},
                                                      const std::string& folder = {});
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    void findNativeWith(FindNative find) { findNative_ = std::move(find); }
    /// The library in the configuration is for this process; another may have another framework.
    void startedProgram(pid_t pid) { program_ = pid; }
    /// So many processes are to be recorded, whether or not they are ranks of one training.
    void expect(std::size_t processes) { expected_ = processes; }
    const std::string& socketPath() const { return socketPath_; }
    /// A path in the private folder for what a process cannot say through the socket.
    std::string errorPath() const { return folder_ + "/error"; }
    /// Waits for records for at most `milliseconds` and takes them in. False: nothing came.
    bool poll(int milliseconds);
    bool connected() const;  // an agent is on the line
    bool everConnected() const { return admitted_ > 0; }
    std::size_t admitted() const { return admitted_; }
    /// Asks the agents to leave; the connections end when they have and all that they had written
    /// by now is taken in. Only what a live run does until then is taken in, too.
    void hangUp();
    /// Ends all connections and writes what is complete. Errors: the session could not be written.
    core::Status finish();
    /// Before finish(): notes how a recorded process has ended, see SessionWriter::setExitStatus().
    core::Status noteExit(pid_t pid, int status);

    /// The agents have captured all that they were asked for.
    bool done() const;
    bool saw(wire::Milestone milestone) const;
    /// Nothing more can be recorded: finish() will say why.
    bool failed() const { return !written_; }
    /// CUPTI could not be used in the recorded process.
    const wire::RefusalRecord* refusal() const;
    const Assembler* recorded() const;  // null: no process with a framework; the one last heard of
    std::vector<const Assembler*> admittedProcesses() const;  // in the order in which they came
    std::vector<std::string> faults() const;
    std::vector<pid_t> recordedProcesses() const;
    std::int64_t steps() const;  // of all processes
    const std::vector<std::string>& notes() const { return notes_; }
    std::int64_t dropped() const { return dropped_; }

private:
    struct Connection {
        int socket = -1;
        std::unique_ptr<Backlog> backlog;
        pid_t pid = 0;
        wire::FrameReader reader;
        std::unique_ptr<Assembler> assembler;
        bool asksForNative = false;
        std::future<std::string> native;  // the answer that the process waits for
        bool refused = false;             // records are read and thrown away
        bool left = false;                // the agent; what it has written is still taken in
    };

    Server(std::string sessionPath, wire::ConfigRecord config, uid_t user);
    core::Status listen(std::string folder);
    void accept();
    bool pollOnce(int milliseconds);
    bool receive(Connection& connection);
    void takeFrames(Connection& connection);
    void close(Connection& connection);
    bool admits(const Connection& connection) const;
    wire::ConfigRecord configFor(pid_t pid) const;
    void introduce(Connection& connection);
    void answer();

    wire::ConfigRecord config_;
    uid_t user_;                                  // besides ourselves
    std::optional<core::ScratchFolder> scratch_;  // of the socket
    std::string folder_, socketPath_, sessionFolder_;
    int listener_ = -1;
    std::size_t admitted_ = 0, expected_ = 1;
    bool distributed_ = false;  // the first process is a rank
    FindNative findNative_;
    std::optional<pid_t> program_;
    std::shared_ptr<SharedSession> session_;
    std::vector<std::unique_ptr<Connection>> connections_;
    std::vector<Connection*> owners_;     // whose steps are recorded
    const Connection* latest_ = nullptr;  // of them: whose step came last
    core::Status written_;
    std::int64_t dropped_ = 0;
    std::vector<std::string> notes_;
};

}  // namespace hw::profiler
