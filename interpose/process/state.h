// The state of this process as a virtual driver, and its session. transport/connect.h has the steps between
// the states.
//
//   kFresh  --cuInit--> kLocal --first call that needs the server--> kRemote --server died--> kLost
//                              \--no server--> kLost, with a clear error
//   with SMT_FALLBACK=native, where the first call decides:
//   kFresh  --cuInit--> kRemote, or kNative when there is no server
//   any but kFresh --fork--> kForked, in the child
//
// kLocal: cuInit succeeded; the real driver answers device queries. Without a real driver cuInit connects at
// once.
//
// kNative: every entry point forwards to the real driver. The state is reached only before any handle or
// table of ours is given out, so the first call decides, for GPU 0 of the visible ones.
//
// kForked: the child of a process that used CUDA. Nothing in it may touch what the parent owns.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "runtime/protocol/layout.h"

namespace smt::interpose {

enum class State : uint32_t { kFresh, kLocal, kRemote, kLost, kNative, kForked };

extern std::atomic<State> process_state;

inline State state() { return process_state.load(std::memory_order_relaxed); }
inline bool native() { return state() == State::kNative; }
inline bool ready() {
    State now = state();
    return now == State::kLocal || now == State::kRemote || now == State::kLost;
}
inline bool connected() {
    State now = state();
    return now == State::kRemote || now == State::kLost;
}
// The result of a call while the process is neither ready() nor native().
inline CUresult not_ready() { return CUDA_ERROR_NOT_INITIALIZED; }

// The device of the session, or of the first context.
CUdevice session_device();

// The session's arena; nullptr before connect().
protocol::SessionHeader* session();
char* arena_base();
// -1 where the program has closed the socket: the number may be another file's by now.
int control_socket();
inline std::atomic<uint64_t>& completion_word(uint32_t index) {
    return reinterpret_cast<std::atomic<uint64_t>*>(arena_base() + protocol::kWordsOffset)[index];
}

// The error that every call returns after the server is lost or a fault poisoned the shared context; else
// SUCCESS.
CUresult sticky_error();
// If a fault lost the context, prints the server's report of it on stderr, once.
void tell_fault();
// Checks the control socket. false: the server is gone and sticky_error() is set from then on. One line on
// stderr gives the reason, once in the process.
bool server_lives();
// The same, at most once every kLivenessMs; for loops that poll a completion word.
inline constexpr uint32_t kLivenessMs = 50;
bool server_lives_sometimes();

// The next three are for transport/connect.cpp, which holds its lock meanwhile.
// The session is open: the state is kRemote from now on.
void enter_session(protocol::SessionHeader* header, int socket, CUdevice device);
// What sticky_error() returns while there is no session.
void set_error_without_session(CUresult error);
// In the child of a fork: there is no session, and its socket is closed.
void drop_session_in_child();

}  // namespace smt::interpose
