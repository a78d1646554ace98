// SPDX-License-Identifier: MIT
#include "profiler/recorder/server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace hw::profiler {
namespace {

core::Error cannotListen(const std::string& why) {
    return {core::ErrorCode::Internal, "cannot listen for the agent: " + why,
            "check that the folder for temporary files is writable"};
}

bool sendAll(int socket, const std::vector<std::byte>& bytes) {
    return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
}

bool isUser(int socket, uid_t user) {
    ucred peer{};
    socklen_t length = sizeof(peer);
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
           (peer.uid == geteuid() || peer.uid == user);
}

}  // namespace

core::Result<std::unique_ptr<Server>> Server::open(std::string sessionPath,
                                                   wire::ConfigRecord config,
                                                   std::optional<uid_t> user) {
    std::unique_ptr<Server> server(
        new Server(std::move(sessionPath), config, user.value_or(geteuid())));
    if (core::Status status = server->listen(); !status) return status.error();
    return server;
}

Server::Server(std::string sessionPath, wire::ConfigRecord config, uid_t user)
    : sessionPath_(std::move(sessionPath)), config_(config), user_(user) {}

core::Status Server::listen() {
    std::error_code error;
    std::string folder = std::filesystem::temp_directory_path(error).string();
    sockaddr_un address{};
    // A socket's path is at most 107 bytes long.
    if (error || folder.size() > 70) folder = "/tmp";
    folder += "/highwater-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) return cannotListen(std::strerror(errno));
    folder_ = folder;
    socketPath_ = folder_ + "/socket";
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socketPath_.c_str(), sizeof(address.sun_path) - 1);
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener_ < 0 ||
        ::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
        ::listen(listener_, 16) != 0)
        return cannotListen(std::strerror(errno));
    if (user_ != geteuid() && (::chown(folder_.c_str(), user_, static_cast<gid_t>(-1)) != 0 ||
                               ::chown(socketPath_.c_str(), user_, static_cast<gid_t>(-1)) != 0))
        return cannotListen(std::strerror(errno));
    return {};
}

Server::~Server() {
    for (auto& connection : connections_)
        if (connection->socket >= 0) ::close(connection->socket);
    if (listener_ >= 0) ::close(listener_);
    std::error_code ignored;
    if (!socketPath_.empty()) std::filesystem::remove(socketPath_, ignored);
    if (!folder_.empty()) std::filesystem::remove(errorPath(), ignored);
    if (!folder_.empty()) std::filesystem::remove(folder_, ignored);
}

void Server::accept() {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    const bool admitted = isUser(socket, user_);
    everConnected_ |= admitted;
    if (!admitted ||
        !sendAll(socket, wire::encodeFrame(wire::Type::Config, wire::encode(config_)))) {
        ::close(socket);
        return;
    }
    ::fcntl(socket, F_SETFL, O_NONBLOCK);
    auto connection = std::make_unique<Connection>();
    connection->socket = socket;
    connection->assembler = std::make_unique<Assembler>(sessionPath_);
    connections_.push_back(std::move(connection));
}

bool Server::poll(int milliseconds) {
    std::vector<pollfd> waiting{{listener_, POLLIN, 0}};
    for (const auto& connection : connections_)
        waiting.push_back({connection->socket, POLLIN, 0});  // -1 is passed over
    const int ready = ::poll(waiting.data(), waiting.size(), milliseconds);
    if (ready <= 0) return false;
    for (std::size_t i = 1; i < waiting.size(); ++i)
        if (waiting[i].revents != 0 && !receive(*connections_[i - 1])) close(*connections_[i - 1]);
    if (waiting[0].revents != 0) accept();
    return true;
}

/// False when the other side has hung up.
bool Server::receive(Connection& connection) {
    std::array<std::byte, 256 * 1024> buffer;
    for (int rounds = 0; rounds < 16; ++rounds) {
        const ssize_t got = ::recv(connection.socket, buffer.data(), buffer.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
        if (got == 0) return false;
        connection.reader.feed({buffer.data(), static_cast<std::size_t>(got)});
        takeFrames(connection);
        if (connection.refused && !connection.reader.error().empty()) return false;
    }
    return true;
}

void Server::takeFrames(Connection& connection) {
    while (auto frame = connection.reader.next()) {
        if (connection.refused) {
            ++dropped_;
            continue;
        }
        if (frame->type == wire::Type::Process) {
            if (owner_ != nullptr && owner_ != &connection) {
                notes_.push_back("a second Python process with torch was not recorded");
                connection.refused = true;
                continue;
            }
            owner_ = &connection;
        }
        if (const core::Status status = connection.assembler->handle(*frame); !status) {
            if (written_) written_ = status;
            notes_.push_back(status.error().what);
            connection.refused = true;
        }
    }
    if (!connection.reader.error().empty() && !connection.refused) {
        notes_.push_back("the agent's records broke off: " + connection.reader.error());
        connection.refused = true;
    }
}

void Server::close(Connection& connection) {
    if (connection.socket < 0) return;
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
    for (auto& connection : connections_)
        if (connection->socket >= 0) ::shutdown(connection->socket, SHUT_WR);
}

core::Status Server::finish() {
    for (auto& connection : connections_) close(*connection);
    return written_;
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
    return owner_ == nullptr ? nullptr : owner_->assembler.get();
}

std::int64_t Server::steps() const {
    return owner_ == nullptr ? 0 : owner_->assembler->steps();
}

}  // namespace hw::profiler
