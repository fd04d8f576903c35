// The control socket and the arena: one session for a process.
//
// open_session() finds the server of a GPU, starts it if there is none, shakes hands, and maps the
// arena and the tenant's device range where the server wants them.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "runtime/protocol/layout.h"

namespace smt::interpose {

inline constexpr uint32_t kStartSeconds = 20;  // for a server to answer
// For one that is alive and has not opened its door: on a loaded GPU its context alone takes tens of seconds.
inline constexpr uint32_t kSlowStartSeconds = 120;

// Why there is no session, in words for a person; empty when there is one.
struct SessionFailure {
    char text[512];
};

struct SessionOpened {
    int socket = -1;
    char* arena = nullptr;
    char* device_range = nullptr;
    int server_pid = 0;
};

// `key`: names the GPU's server. `visible`: CUDA_VISIBLE_DEVICES for a server we start, or nullptr.
bool open_session(const char* key, const char* visible, SessionOpened& opened, SessionFailure& failure);

// Asks the session's server for a lane. Locked by the caller.
CUresult request_lane(int32_t thread, uint32_t& index, uint64_t& offset);

}  // namespace smt::interpose
