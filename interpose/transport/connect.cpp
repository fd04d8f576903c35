#include "interpose/transport/connect.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

#include "interpose/capture/message.h"
#include "interpose/capture/programs.h"
#include "interpose/process/lost_server.h"
#include "interpose/process/real_driver.h"
#include "interpose/process/session.h"
#include "interpose/process/state.h"
#include "interpose/process/visible_gpus.h"
#include "interpose/transport/connection.h"
#include "interpose/transport/identity.h"
#include "interpose/transport/lane.h"
#include "runtime/protocol/gpu_uuid.h"
#include "runtime/protocol/server_key.h"
#include "runtime/protocol/simulated_gpus.h"
#include "runtime/settings/read.h"

namespace smt::interpose {

namespace {

constexpr char kOnlyKey[] = "device";  // the server's name where the client has no driver to ask for a UUID

// Guards the two steps away from kFresh and kLocal. Held while the server starts: another thread
// that needs the session has to wait for it anyway.
constinit pthread_mutex_t state_lock = PTHREAD_MUTEX_INITIALIZER;
constinit bool fork_guarded = false;
constinit std::atomic<bool> said_it{false};

bool native_is_wanted() { return settings::is(settings::Id::kFallback, "native"); }

bool can_go_native() { return native_is_wanted() && real_driver(); }

void in_forked_child() {
    state_lock = PTHREAD_MUTEX_INITIALIZER;
    capture::forget_programs_in_child();
    capture::forget_messages_in_child();
    State was = state();
    if (was == State::kFresh || was == State::kNative) return;
    process_state.store(State::kForked, std::memory_order_relaxed);
    forget_lanes();
    for (Session& session : sessions) session.drop_in_child();
    session_count.store(0, std::memory_order_relaxed);
}

// The GPU's UUID names its shared server, and makes it the only GPU that the server sees.
struct ServerName {
    char key[protocol::kKeyBytes];
    char visible[protocol::kVisibleBytes];
    const char* visible_or_null;
};

bool name_server(CUdevice device, ServerName& name) {
    const DriverApi* driver = real_driver();
    name.visible_or_null = driver ? name.visible : nullptr;
    if (!driver) {
        strcpy(name.key, kOnlyKey);
        if (!wants_simulated_device()) return true;
        const int gpu = simulated_gpu(device);
        if (gpu >= 0) protocol::name_simulated_key(gpu, name.key, sizeof name.key);
        return gpu >= 0;
    }
    CUuuid uuid;
    char key[protocol::kUuidKeyBytes];
    auto ask = driver->cuDeviceGetUuid_v2 ? driver->cuDeviceGetUuid_v2 : driver->cuDeviceGetUuid;
    if (!ask || ask(&uuid, device) != CUDA_SUCCESS) return false;
    protocol::write_uuid(uuid.bytes, key, name.visible);
    strcpy(name.key, key);
    return true;
}

// With state_lock held. The next session is the device's.
CUresult connect_locked(CUdevice device) {
    ServerName name;
    const uint32_t number = session_count.load(std::memory_order_relaxed);
    if (number == kMostSessions || !name_server(device, name)) return CUDA_ERROR_INVALID_DEVICE;
    Session& session = sessions[number];
    SessionOpened opened;
    SessionFailure failure{};
    CUresult status = CUDA_SUCCESS;
    if (choose_server(name.key, failure) && open_session(name.key, name.visible_or_null, opened, failure)) {
        remember_server(session, name.key, opened.server_pid, opened.is_system);
        session.enter(reinterpret_cast<protocol::SessionHeader*>(opened.arena), opened.socket, device);
    } else {
        say_no_server(failure.text);
        if (number == 0 && can_go_native()) {
            process_state.store(State::kNative, std::memory_order_release);
            return CUDA_SUCCESS;
        }
        status = CUDA_ERROR_SYSTEM_NOT_READY;
        session.fail(status, device);
    }
    session_count.store(number + 1, std::memory_order_release);
    process_state.store(State::kRemote, std::memory_order_release);
    if (number == 0) capture::show_waiting();
    return status;
}

CUresult initialise_locked() {
    if (ready() || native()) return connected() ? sessions[0].sticky_error() : CUDA_SUCCESS;
    if (state() == State::kForked) return CUDA_ERROR_NOT_INITIALIZED;
    if (!fork_guarded) fork_guarded = pthread_atfork(nullptr, nullptr, in_forked_child) == 0;
    if (real_driver()) {
        CUresult status = initialise_real_driver();
        if (status != CUDA_SUCCESS) return status;
        process_state.store(State::kLocal, std::memory_order_release);
        if (can_go_native()) connect_locked(0);  // now or never: no handle, no table of ours was given out
        return CUDA_SUCCESS;
    }
    look_at_simulated_gpus();
    if (wants_simulated_device() && simulated_gpus() == 0) return CUDA_ERROR_NO_DEVICE;
    process_state.store(State::kLocal, std::memory_order_release);
    if (simulated_gpus() > 1) return CUDA_SUCCESS;  // which of them, the first context says
    CUresult status = connect_locked(0);
    if (status != CUDA_SUCCESS) {  // cuInit failed, so it may be tried again
        session_count.store(0, std::memory_order_release);
        process_state.store(State::kFresh, std::memory_order_release);
    }
    return status;
}

}  // namespace

// The other lines that libsmt.so writes to stderr without being asked are Session::tell_fault()'s and
// lost_server.h's.
void say_no_server(const char* why) {
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

CUresult initialise() {
    pthread_mutex_lock(&state_lock);
    CUresult status = initialise_locked();
    pthread_mutex_unlock(&state_lock);
    return status;
}

void settle_fallback() {
    if (state() == State::kFresh && can_go_native()) initialise();
}

CUresult connect(CUdevice device, Session** session) {
    Session* found = place_of_session(device);
    CUresult status = CUDA_SUCCESS;
    if (!found) {
        pthread_mutex_lock(&state_lock);
        found = place_of_session(device);
        if (!found && ready()) {
            status = connect_locked(device);
            found = place_of_session(device);
        } else if (!found && !native()) {
            status = not_ready();
        }
        pthread_mutex_unlock(&state_lock);
    }
    if (session) *session = found;
    return found ? found->sticky_error() : status;
}

CUresult connect() { return connected() ? this_session().sticky_error() : connect(0); }

}  // namespace smt::interpose
