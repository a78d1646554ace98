// SPDX-License-Identifier: MIT
#include "profiler/recorder/server.h"
#include "core/base/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace hw::profiler {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kTick = 5;  // milliseconds between two looks at what agents have written

/// What comes through the socket ends it, but for an interruption.
bool hungUpOn(int socket) {
    char byte = 0;
    const ssize_t got = ::recv(socket, &byte, 1, 0);
    return got >= 0 || (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK);
}

core::Error cannotListen(const std::string& why) {
    return {core::ErrorCode::Internal, "cannot listen for the agent: " + why,
            "check that the folder for temporary files is writable"};
}

bool sendWithFile(int socket, std::vector<std::byte> bytes, int file) {
    iovec part{bytes.data(), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* with = CMSG_FIRSTHDR(&message);
    with->cmsg_level = SOL_SOCKET;
    with->cmsg_type = SCM_RIGHTS;
    with->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(with), &file, sizeof(file));
    return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

void sendNative(int socket, const std::string& library) {
    std::vector<std::byte> path(wire::kPathBytes);
    if (library.size() < path.size()) std::memcpy(path.data(), library.data(), library.size());
    const std::vector<std::byte> frame = wire::encodeFrame(wire::Type::Native, path);
    ::send(socket, frame.data(), frame.size(), MSG_NOSIGNAL);  // who has gone needs no answer
}

/// Where there is no session, that of temporary files.
std::string folderOf(const std::string& session) {
    std::error_code ignored;
    return (session.empty() ? core::temporaryFolder()
                            : std::filesystem::absolute(session, ignored).parent_path())
        .string();
}

std::optional<ucred> peerOf(int socket) {
    ucred peer{};
    socklen_t length = sizeof(peer);
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return std::nullopt;
    return peer;
}

}  // namespace

core::Result<std::unique_ptr<Server>> Server::open(std::string sessionPath,
                                                   wire::ConfigRecord config,
                                                   std::optional<uid_t> user,
                                                   const std::string& folder) {
    std::unique_ptr<Server> server(
        new Server(std::move(sessionPath), config, user.value_or(geteuid())));
    if (core::Status status =
            server->listen(folder.empty() ? core::temporaryFolder().string() : folder);
        !status)
        return status.error();
    return server;
}

Server::Server(std::string sessionPath, wire::ConfigRecord config, uid_t user)
    : config_(config),
      user_(user),
      sessionFolder_(folderOf(sessionPath)),
      session_(std::make_shared<SharedSession>(std::move(sessionPath))) {}

core::Status Server::listen(std::string folder) {
    sockaddr_un address{};
    // A socket's path is at most 107 bytes long.
    if (folder.size() > 70) folder = "/tmp";
    scratch_.emplace(folder);
    folder_ = scratch_->path().string();
    if (folder_.empty()) return cannotListen(std::strerror(errno));
    socketPath_ = folder_ + "/socket";
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socketPath_.c_str(), sizeof(address.sun_path) - 1);
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener_ < 0 ||
        ::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
        ::listen(listener_, 16) != 0)
        return cannotListen(std::strerror(errno));
    // The folder comes last: until then no other user can replace the socket.
    if (user_ != geteuid() && (::lchown(socketPath_.c_str(), user_, static_cast<gid_t>(-1)) != 0 ||
                               ::lchown(folder_.c_str(), user_, static_cast<gid_t>(-1)) != 0))
        return cannotListen(std::strerror(errno));
    return {};
}

Server::~Server() {
    for (auto& connection : connections_)
        if (connection->socket >= 0) ::close(connection->socket);
    if (listener_ >= 0) ::close(listener_);
}

wire::ConfigRecord Server::configFor(pid_t pid) const {
    wire::ConfigRecord config = config_;
    if (program_.value_or(pid) != pid && config.nativeCapture[0] != '\0') {
        config.nativeCapture[0] = '\0';
        config.flags |= wire::kConfigNative;
    }
    return config;
}

void Server::accept() {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    const auto peer = peerOf(socket);
    const bool admitted = peer && (peer->uid == geteuid() || peer->uid == user_);
    admitted_ += admitted ? 1 : 0;
    auto connection = std::make_unique<Connection>();
    connection->backlog = std::make_unique<Backlog>(sessionFolder_);
    const wire::ConfigRecord config = configFor(peer ? peer->pid : 0);
    if (!admitted ||
        !sendWithFile(socket, wire::encodeFrame(wire::Type::Config, wire::encode(config)),
                      connection->backlog->ringFile())) {
        ::close(socket);
        return;
    }
    ::fcntl(socket, F_SETFL, O_NONBLOCK);
    connection->socket = socket;
    connection->pid = peer->pid;
    connection->asksForNative = (config.flags & wire::kConfigNative) != 0;
    connection->assembler = std::make_unique<Assembler>(session_);
    connection->backlog->start();
    connections_.push_back(std::move(connection));
}

bool Server::poll(int milliseconds) {
    const auto deadline = Clock::now() + std::chrono::milliseconds(milliseconds);
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
        if (pollOnce(static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, kTick))))
            return true;
        if (left.count() <= 0) return false;
    }
}

bool Server::pollOnce(int milliseconds) {
    answer();
    std::vector<pollfd> waiting{{listener_, POLLIN, 0}};
    bool more = false;
    for (const auto& connection : connections_) {  // -1 is passed over
        waiting.push_back({connection->left ? -1 : connection->socket, POLLIN, 0});
        more |= connection->socket >= 0 && !connection->backlog->isEmpty();
    }
    const int ready = ::poll(waiting.data(), waiting.size(), more ? 0 : milliseconds);
    bool received = ready > 0;
    for (std::size_t i = 1; i < waiting.size(); ++i) {
        Connection& connection = *connections_[i - 1];
        if (connection.socket < 0) continue;
        if (waiting[i].revents != 0 && hungUpOn(connection.socket)) {
            connection.left = true;
            connection.backlog->end();
        }
        received |= receive(connection);
        if ((connection.left && connection.backlog->isEmpty()) || connection.backlog->nonsense() ||
            !connection.reader.error().empty())
            close(connection);
    }
    if (waiting[0].revents != 0) accept();
    return received;
}

/// Takes in a part of what is there.
bool Server::receive(Connection& connection) {
    const bool received = connection.backlog->take(connection.reader);
    if (received) takeFrames(connection);
    if (connection.backlog->nonsense()) notes_.push_back("the agent's records broke off");
    return received;
}

void Server::takeFrames(Connection& connection) {
    while (auto frame = connection.reader.next()) {
        if (connection.refused) {
            ++dropped_;
            continue;
        }
        const std::int64_t steps = connection.assembler->steps();
        if (const core::Status status = connection.assembler->handle(*frame); !status) {
            if (written_) written_ = status;
            notes_.push_back(status.error().what);
            connection.refused = true;
        }
        if (connection.assembler->steps() > steps) latest_ = &connection;
        if (frame->type == wire::Type::Process && !connection.refused) introduce(connection);
    }
    if (!connection.reader.error().empty() && !connection.refused) {
        notes_.push_back("the agent's records broke off: " + connection.reader.error());
        connection.refused = true;
    }
}

/// A process has introduced itself. One that has gone without a step yields its place: it has only
/// started those that train.
void Server::introduce(Connection& connection) {
    std::erase_if(owners_, [](const Connection* owner) {
        return owner->socket < 0 && owner->assembler->steps() == 0;
    });
    if (connection.asksForNative && findNative_ && admits(connection))
        connection.native = std::async(std::launch::async, findNative_, connection.pid);
    else if (connection.asksForNative)
        sendNative(connection.socket, "");
    if (!admits(connection)) {
        notes_.push_back("a second Python process with torch was not recorded");
        connection.refused = true;
        return;
    }
    if (std::find(owners_.begin(), owners_.end(), &connection) != owners_.end()) return;
    distributed_ |= owners_.empty() && connection.assembler->rank() >= 0;
    if (connection.assembler->rank() < 0)
        connection.assembler->setRank(static_cast<std::int64_t>(owners_.size()));
    owners_.push_back(&connection);
}

/// Processes whose native capture has been found, or built, go on.
void Server::answer() {
    for (auto& connection : connections_) {
        if (!connection->native.valid() ||
            connection->native.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
            continue;
        const std::string path = connection->native.get();
        if (connection->socket >= 0) sendNative(connection->socket, path);
    }
}

bool Server::admits(const Connection& connection) const {
    if (owners_.size() < expected_) return true;
    const std::int64_t rank = connection.assembler->rank();
    // A rank of the same training, which is not recorded yet.
    return distributed_ && rank >= 0 &&
           std::none_of(owners_.begin(), owners_.end(),
                        [&](const Connection* owner) { return owner->assembler->rank() == rank; });
}

void Server::close(Connection& connection) {
    if (connection.socket < 0) return;
    connection.backlog->end();
    while (!connection.backlog->nonsense() && receive(connection)) {
    }
    ::close(connection.socket);
    connection.socket = -1;
    const core::Status status = connection.assembler->finish();
    if (!status && written_) written_ = status;
}

bool Server::connected() const {
    for (const auto& connection : connections_)
        if (connection->socket >= 0) return true;
    return false;
}

void Server::hangUp() {
    for (auto& connection : connections_) {
        if (connection->socket < 0) continue;
        if (session_->isOpen()) connection->backlog->end();
        ::shutdown(connection->socket, SHUT_WR);
    }
}

core::Status Server::noteExit(pid_t pid, int status) {
    return session_->isOpen() ? session_->session().setExitStatus(pid, status) : core::Status();
}

core::Status Server::finish() {
    for (auto& connection : connections_) close(*connection);
    if (session_->isOpen() && written_) written_ = session_->session().requireThere();
    session_.reset();  // with it, the file is closed
    return written_;
}

bool Server::done() const {
    return owners_.size() >= expected_ &&
           std::all_of(owners_.begin(), owners_.end(),
                       [](const Connection* owner) { return owner->assembler->done(); });
}

bool Server::saw(wire::Milestone milestone) const {
    for (const auto& connection : connections_)
        if (connection->assembler->saw(milestone)) return true;
    return false;
}

const wire::RefusalRecord* Server::refusal() const {
    for (const auto& connection : connections_)
        if (const auto& refusal = connection->assembler->refusal()) return &*refusal;
    return nullptr;
}

const Assembler* Server::recorded() const {
    if (latest_ != nullptr) return latest_->assembler.get();
    return owners_.empty() ? nullptr : owners_.front()->assembler.get();
}

std::vector<const Assembler*> Server::admittedProcesses() const {
    std::vector<const Assembler*> all;
    for (const Connection* owner : owners_) all.push_back(owner->assembler.get());
    return all;
}

std::vector<std::string> Server::faults() const {
    std::vector<std::string> all;
    for (const Connection* owner : owners_)
        all.insert(all.end(), owner->assembler->faults().begin(), owner->assembler->faults().end());
    return all;
}

std::vector<pid_t> Server::recordedProcesses() const {
    std::vector<pid_t> all;
    for (const Connection* owner : owners_) all.push_back(owner->pid);
    return all;
}

std::int64_t Server::steps() const {
    std::int64_t sum = 0;
    for (const Connection* owner : owners_) sum += owner->assembler->steps();
    return sum;
}

}  // namespace hw::profiler
