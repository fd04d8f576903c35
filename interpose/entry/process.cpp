#include "interpose/entry/process.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interpose/capture/message.h"
#include "interpose/capture/programs.h"
#include "interpose/entry/real_driver.h"
#include "interpose/transport/connection.h"
#include "interpose/transport/lane.h"
#include "interpose/transport/lost_server.h"
#include "interpose/transport/remote_call.h"
#include "interpose/transport/waiting.h"
#include "runtime/protocol/handshake.h"
#include "runtime/protocol/runtime_folder.h"
#include "runtime/settings/read.h"

namespace smt::interpose {

constinit std::atomic<State> process_state{State::kFresh};

namespace {

constexpr CUresult kServerLost = CUDA_ERROR_DEVICE_UNAVAILABLE;
constexpr char kOnlyKey[] = "device";  // the server's name where the client has no driver to ask for a UUID

// Guards the two steps away from kFresh and kLocal. Held while the server starts: another thread
// that needs the session has to wait for it anyway.
constinit pthread_mutex_t state_lock = PTHREAD_MUTEX_INITIALIZER;
constinit bool fork_guarded = false;
constinit std::atomic<protocol::SessionHeader*> session_header{nullptr};
constinit std::atomic<int> session_socket{-1};
constinit std::atomic<uint64_t> session_inode{0};  // of the socket, which no other file has
constinit std::atomic<int32_t> no_session_error{CUDA_SUCCESS};
constinit std::atomic<CUdevice> device_of_session{0};
constinit std::atomic<uint64_t> last_look{0};
constinit std::atomic<bool> said_it{false};

bool native_is_wanted() { return settings::is(settings::Id::kFallback, "native"); }

bool can_go_native() { return native_is_wanted() && real_driver(); }

// Once in a process. The other lines that libsmt.so writes to stderr without being asked are tell_fault()'s
// and lost_server.h's.
void say(const char* why) {
    if (said_it.exchange(true)) return;
    const char* format =
        can_go_native() ? "smt: no server (%s); running on the GPU directly, as %s=native asks\n"
        : native_is_wanted()
            ? "smt: no server (%s), and no driver here to run without one, as %s=native asks\n"
            : "smt: no server (%s); see `smt server status`, or set %s=native to run on the GPU directly\n";
    char line[800];
    int bytes = snprintf(line, sizeof line, format, why, settings::variable_of(settings::Id::kFallback));
    if (bytes >= static_cast<int>(sizeof line)) bytes = sizeof line - 1;
    if (write(STDERR_FILENO, line, static_cast<size_t>(bytes)) < 0) return;
}

void in_forked_child() {
    state_lock = PTHREAD_MUTEX_INITIALIZER;
    capture::forget_programs_in_child();
    capture::forget_messages_in_child();
    State was = state();
    if (was == State::kFresh || was == State::kNative) return;
    process_state.store(State::kForked, std::memory_order_relaxed);
    forget_lanes();
    session_header.store(nullptr, std::memory_order_relaxed);
    int socket_fd = control_socket();
    session_socket.store(-1, std::memory_order_relaxed);
    if (socket_fd >= 0) close(socket_fd);
}

// The GPU's UUID names its server, and makes it the only GPU that the server sees.
struct ServerName {
    char key[64];
    char visible[64];
    const char* visible_or_null;
};

bool name_server(CUdevice device, ServerName& name) {
    const DriverApi* driver = real_driver();
    if (!driver) {
        strcpy(name.key, wants_simulated_device() ? protocol::kSimulatedKey : kOnlyKey);
        name.visible_or_null = nullptr;
        return true;
    }
    CUuuid uuid;
    auto ask = driver->cuDeviceGetUuid_v2 ? driver->cuDeviceGetUuid_v2 : driver->cuDeviceGetUuid;
    if (!ask || ask(&uuid, device) != CUDA_SUCCESS) return false;
    char* visible = name.visible + snprintf(name.visible, sizeof name.visible, "GPU-");
    for (int i = 0; i < 16; ++i) {
        unsigned byte = static_cast<unsigned char>(uuid.bytes[i]);
        snprintf(name.key + 2 * i, 3, "%02x", byte);
        if (i == 4 || i == 6 || i == 8 || i == 10) *visible++ = '-';
        visible += snprintf(visible, 3, "%02x", byte);
    }
    name.visible_or_null = name.visible;
    return true;
}

// With state_lock held and the state kLocal.
CUresult connect_locked(CUdevice device) {
    ServerName name;
    if (!name_server(device, name)) return CUDA_ERROR_INVALID_DEVICE;
    SessionOpened opened;
    SessionFailure failure{};
    if (open_session(name.key, name.visible_or_null, opened, failure)) {
        device_of_session.store(device, std::memory_order_relaxed);
        struct stat file{};
        if (fstat(opened.socket, &file) == 0) session_inode.store(file.st_ino, std::memory_order_relaxed);
        session_socket.store(opened.socket, std::memory_order_relaxed);
        remember_server(name.key, opened.server_pid);
        session_header.store(reinterpret_cast<protocol::SessionHeader*>(opened.arena),
                             std::memory_order_release);
        process_state.store(State::kRemote, std::memory_order_release);
        capture::show_waiting();
        return CUDA_SUCCESS;
    }
    say(failure.text);
    if (can_go_native()) {
        process_state.store(State::kNative, std::memory_order_release);
        return CUDA_SUCCESS;
    }
    no_session_error.store(CUDA_ERROR_SYSTEM_NOT_READY, std::memory_order_relaxed);
    process_state.store(State::kLost, std::memory_order_release);
    return CUDA_ERROR_SYSTEM_NOT_READY;
}

CUresult initialise_locked() {
    if (ready() || native()) return sticky_error();
    if (state() == State::kForked) return CUDA_ERROR_NOT_INITIALIZED;
    if (!fork_guarded) fork_guarded = pthread_atfork(nullptr, nullptr, in_forked_child) == 0;
    if (real_driver()) {
        CUresult status = initialise_real_driver();
        if (status != CUDA_SUCCESS) return status;
        process_state.store(State::kLocal, std::memory_order_release);
        if (can_go_native()) connect_locked(0);  // now or never: no handle, no table of ours was given out
        return CUDA_SUCCESS;
    }
    process_state.store(State::kLocal, std::memory_order_release);
    CUresult status = connect_locked(0);
    if (status != CUDA_SUCCESS) {  // cuInit failed, so it may be tried again
        no_session_error.store(CUDA_SUCCESS, std::memory_order_relaxed);
        process_state.store(State::kFresh, std::memory_order_release);
    }
    return status;
}

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

CUresult initialise() {
    pthread_mutex_lock(&state_lock);
    CUresult status = initialise_locked();
    pthread_mutex_unlock(&state_lock);
    return status;
}

void settle_fallback() {
    if (state() == State::kFresh && can_go_native()) initialise();
}

CUresult connect(CUdevice device) {
    if (connected()) return sticky_error();
    pthread_mutex_lock(&state_lock);
    CUresult status = CUDA_SUCCESS;
    if (state() == State::kLocal) {
        status = connect_locked(device);
    } else if (connected()) {
        status = sticky_error();
    } else if (!native()) {
        status = not_ready();
    }
    pthread_mutex_unlock(&state_lock);
    return status;
}

CUresult sticky_error() {
    if (protocol::SessionHeader* header = session()) {
        return static_cast<CUresult>(header->fatal.load(std::memory_order_acquire));
    }
    return static_cast<CUresult>(no_session_error.load(std::memory_order_relaxed));
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

void fetch_output() {
    while (true) {
        RemoteCall call(protocol::Op::kFetchOutput, 0);
        if (!call.open()) {
            // The thread's next call has a right to this error, not we.
            int32_t none = 0;
            if (thread_lane) thread_lane->header->async_error.compare_exchange_strong(none, call.status());
            return;
        }
        CUresult status = call.wait();
        if (status != CUDA_SUCCESS && status != CUDA_ERROR_NOT_READY) return;
        uint64_t bytes = 0;
        const char* text = call.reply().array<char>(bytes);
        if (text && bytes) fwrite(text, 1, bytes, stdout);
        if (status == CUDA_SUCCESS || bytes == 0) return;
    }
}

}  // namespace smt::interpose
