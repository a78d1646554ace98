// SPDX-License-Identifier: MIT
// The recorder's end of the socket: a private Unix socket and the agents that connect to it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "profiler/recorder/assembler.h"
#include "profiler/wire/frame_reader.h"
#include "profiler/wire/records.h"

namespace hw::profiler {

/// Listens in a new folder that only this user may enter (and, for root, the user whose process is
/// recorded), and admits only processes of these two.
/// The first process that brings a framework is recorded into the session; others are noted.
class Server {
public:
    /// Errors: Internal when no socket can be made.
    /// `user`: whose process is recorded, where that is not ours.
    static core::Result<std::unique_ptr<Server>> open(std::string sessionPath,
                                                      wire::ConfigRecord config,
                                                      std::optional<uid_t> user = {});
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    const std::string& socketPath() const { return socketPath_; }
    /// A path in the private folder for what a process cannot say through the socket.
    std::string errorPath() const { return folder_ + "/error"; }
    /// Waits for records for at most `milliseconds` and takes them in. False: nothing came.
    bool poll(int milliseconds);
    bool connected() const;  // an agent is on the line
    bool everConnected() const { return everConnected_; }
    /// Asks the agents to leave; the connections end when they have.
    void hangUp();
    /// Ends all connections and writes what is complete. Errors: the session could not be written.
    core::Status finish();

    /// The agent has captured all that it was asked for.
    bool done() const { return owner_ != nullptr && owner_->assembler->done(); }
    bool saw(wire::Milestone milestone) const;
    /// CUPTI could not be used in the recorded process.
    const wire::RefusalRecord* refusal() const;
    const Assembler* recorded() const;  // null: no process with a framework
    std::int64_t steps() const;
    const std::vector<std::string>& notes() const { return notes_; }
    std::int64_t dropped() const { return dropped_; }

private:
    struct Connection {
        int socket = -1;
        wire::FrameReader reader;
        std::unique_ptr<Assembler> assembler;
        bool refused = false;  // records are read and thrown away
    };

    Server(std::string sessionPath, wire::ConfigRecord config, uid_t user);
    core::Status listen();
    void accept();
    bool receive(Connection& connection);
    void takeFrames(Connection& connection);
    void close(Connection& connection);

    std::string sessionPath_;
    wire::ConfigRecord config_;
    uid_t user_;  // besides ourselves
    std::string folder_, socketPath_;
    int listener_ = -1;
    bool everConnected_ = false;
    std::vector<std::unique_ptr<Connection>> connections_;
    Connection* owner_ = nullptr;
    core::Status written_;
    std::int64_t dropped_ = 0;
    std::vector<std::string> notes_;
};

}  // namespace hw::profiler
