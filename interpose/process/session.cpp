#include "interpose/process/session.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interpose/process/clock.h"
#include "interpose/process/lost_server.h"
#include "runtime/protocol/handshake.h"

namespace smt::interpose {

constinit Session sessions[kMostSessions]{};
constinit std::atomic<uint32_t> session_count{0};
constinit thread_local Session* thread_session = &sessions[0];

namespace {

constexpr CUresult kServerLost = CUDA_ERROR_DEVICE_UNAVAILABLE;

}  // namespace

void Session::lose_server(const char* farewell) {
    int32_t none = CUDA_SUCCESS;
    protocol::SessionHeader* const shared = header();
    // After a fault the server leaves: its programs know why.
    if (shared && !shared->fatal.compare_exchange_strong(none, kServerLost))
        tell_fault();
    else
        say_lost(*this, farewell);
    open_.store(false, std::memory_order_release);
}

int Session::control_socket() const {
    const int file = socket_.load(std::memory_order_relaxed);
    struct stat found{};
    const bool ours = file >= 0 && fstat(file, &found) == 0 && S_ISSOCK(found.st_mode) &&
                      found.st_ino == inode_.load(std::memory_order_relaxed);
    return ours ? file : -1;
}

void Session::enter(protocol::SessionHeader* header, int socket, CUdevice device) {
    device_.store(device, std::memory_order_relaxed);
    struct stat file{};
    if (fstat(socket, &file) == 0) inode_.store(file.st_ino, std::memory_order_relaxed);
    socket_.store(socket, std::memory_order_relaxed);
    header_.store(header, std::memory_order_release);
    open_.store(true, std::memory_order_release);
}

void Session::drop_in_child() {
    header_.store(nullptr, std::memory_order_relaxed);
    open_.store(false, std::memory_order_relaxed);
    const int socket_fd = control_socket();
    socket_.store(-1, std::memory_order_relaxed);
    if (socket_fd >= 0) close(socket_fd);
}

CUresult Session::sticky_error() const {
    if (const protocol::SessionHeader* shared = header())
        return static_cast<CUresult>(shared->fatal.load(std::memory_order_acquire));
    return static_cast<CUresult>(error_.load(std::memory_order_relaxed));
}

void Session::tell_fault() {
    const protocol::SessionHeader* const shared = header();
    if (!shared || shared->fatal.load(std::memory_order_acquire) == CUDA_SUCCESS || shared->fault[0] == 0 ||
        told_.exchange(true))
        return;
    char line[protocol::kFaultBytes + 200];
    int bytes = snprintf(line, sizeof line,
                         "smt: this program's GPU context is lost: %.*s. Every call returns this error from "
                         "now on; start the program again\n",
                         static_cast<int>(sizeof shared->fault), shared->fault);
    if (bytes >= static_cast<int>(sizeof line)) bytes = sizeof line - 1;
    if (write(STDERR_FILENO, line, static_cast<size_t>(bytes)) < 0) return;
}

bool Session::server_lives() {
    if (!open()) return false;
    const int file = control_socket();
    if (file < 0)
        return lose_server("this program has closed the descriptor of its connection to the server"), false;
    protocol::Farewell packet;
    ssize_t got = recv(file, &packet, sizeof packet, MSG_PEEK | MSG_DONTWAIT);
    const bool farewell =
        got == static_cast<ssize_t>(sizeof packet) && packet.kind == protocol::ControlKind::kFarewell;
    if ((got > 0 && !farewell) || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)))
        return true;
    packet.message[sizeof packet.message - 1] = 0;
    lose_server(farewell ? packet.message : nullptr);
    return false;
}

bool Session::server_lives_sometimes() {
    uint64_t now = now_nanoseconds();
    uint64_t before = last_look_.load(std::memory_order_relaxed);
    if (now - before < uint64_t{kLivenessMs} * 1'000'000) return open();
    last_look_.store(now, std::memory_order_relaxed);
    return server_lives();
}

Session* place_of_session(CUdevice device) {
    const uint32_t count = session_count.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < count; ++i)
        if (sessions[i].device() == device) return &sessions[i];
    return nullptr;
}

}  // namespace smt::interpose
