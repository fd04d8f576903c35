#include "interpose/process/state.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interpose/process/clock.h"
#include "interpose/process/lost_server.h"
#include "runtime/protocol/handshake.h"

namespace smt::interpose {

constinit std::atomic<State> process_state{State::kFresh};

namespace {

constexpr CUresult kServerLost = CUDA_ERROR_DEVICE_UNAVAILABLE;

constinit std::atomic<protocol::SessionHeader*> session_header{nullptr};
constinit std::atomic<int> session_socket{-1};
constinit std::atomic<uint64_t> session_inode{0};  // of the socket, which no other file has
constinit std::atomic<int32_t> error_without_session{CUDA_SUCCESS};
constinit std::atomic<CUdevice> device_of_session{0};
constinit std::atomic<uint64_t> last_look{0};

void lose_server(const char* farewell) {
    int32_t none = CUDA_SUCCESS;
    protocol::SessionHeader* const header = session();
    // After a fault the server leaves: its programs know why.
    if (header && !header->fatal.compare_exchange_strong(none, kServerLost))
        tell_fault();
    else
        say_lost(farewell);
    process_state.store(State::kLost, std::memory_order_release);
}

}  // namespace

protocol::SessionHeader* session() { return session_header.load(std::memory_order_acquire); }
char* arena_base() { return reinterpret_cast<char*>(session()); }
int control_socket() {
    const int file = session_socket.load(std::memory_order_relaxed);
    struct stat found{};
    const bool ours = file >= 0 && fstat(file, &found) == 0 && S_ISSOCK(found.st_mode) &&
                      found.st_ino == session_inode.load(std::memory_order_relaxed);
    return ours ? file : -1;
}
CUdevice session_device() { return device_of_session.load(std::memory_order_relaxed); }

void enter_session(protocol::SessionHeader* header, int socket, CUdevice device) {
    device_of_session.store(device, std::memory_order_relaxed);
    struct stat file{};
    if (fstat(socket, &file) == 0) session_inode.store(file.st_ino, std::memory_order_relaxed);
    session_socket.store(socket, std::memory_order_relaxed);
    session_header.store(header, std::memory_order_release);
    process_state.store(State::kRemote, std::memory_order_release);
}

void set_error_without_session(CUresult error) {
    error_without_session.store(error, std::memory_order_relaxed);
}

void drop_session_in_child() {
    session_header.store(nullptr, std::memory_order_relaxed);
    const int socket_fd = control_socket();
    session_socket.store(-1, std::memory_order_relaxed);
    if (socket_fd >= 0) close(socket_fd);
}

CUresult sticky_error() {
    if (protocol::SessionHeader* header = session()) {
        return static_cast<CUresult>(header->fatal.load(std::memory_order_acquire));
    }
    return static_cast<CUresult>(error_without_session.load(std::memory_order_relaxed));
}

void tell_fault() {
    static constinit std::atomic<bool> told{false};
    const protocol::SessionHeader* const header = session();
    if (!header || header->fatal.load(std::memory_order_acquire) == CUDA_SUCCESS || header->fault[0] == 0 ||
        told.exchange(true))
        return;
    char line[protocol::kFaultBytes + 200];
    int bytes = snprintf(line, sizeof line,
                         "smt: this program's GPU context is lost: %.*s. Every call returns this error from "
                         "now on; start the program again\n",
                         static_cast<int>(sizeof header->fault), header->fault);
    if (bytes >= static_cast<int>(sizeof line)) bytes = sizeof line - 1;
    if (write(STDERR_FILENO, line, static_cast<size_t>(bytes)) < 0) return;
}

bool server_lives() {
    if (state() != State::kRemote) return false;
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

bool server_lives_sometimes() {
    uint64_t now = now_nanoseconds();
    uint64_t before = last_look.load(std::memory_order_relaxed);
    if (now - before < uint64_t{kLivenessMs} * 1'000'000) return state() == State::kRemote;
    last_look.store(now, std::memory_order_relaxed);
    return server_lives();
}

}  // namespace smt::interpose
