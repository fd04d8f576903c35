// The control socket and the arena of a session.
//
// open_session() finds the server of a GPU, starts it if there is none, shakes hands, and maps the arena and
// the tenant's device range at the server's addresses.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "interpose/process/session.h"
#include "runtime/protocol/layout.h"

namespace smt::interpose {

inline constexpr uint32_t kStartSeconds = 20;  // limit for a server's answer
// Limit for a server that is alive and does not listen yet: on a loaded GPU its context alone takes tens of
// seconds.
inline constexpr uint32_t kSlowStartSeconds = 120;

// The user-readable reason why there is no session; empty when there is one.
struct SessionFailure {
    char text[512];
};

struct SessionOpened {
    int socket = -1;
    char* arena = nullptr;
    char* device_range = nullptr;
    int server_pid = 0;
    bool is_system = false;  // the system's server
};

// `key` names the GPU's server. `visible`: CUDA_VISIBLE_DEVICES for a server that is started here, or
// nullptr.
bool open_session(const char* key, const char* visible, SessionOpened& opened, SessionFailure& failure);

// Requests a lane from the session's server. The caller holds the lock.
CUresult request_lane(Session& session, int32_t thread, uint32_t& index, uint64_t& offset);

}  // namespace smt::interpose
