// The state of this process as a virtual driver. transport/connect.h has the steps between the states.
//
//   kFresh  --cuInit--> kLocal --first call that needs a server--> kRemote
//   with SMT_FALLBACK=native, where the first call decides:
//   kFresh  --cuInit--> kRemote, or kNative when there is no server
//   any but kFresh --fork--> kForked, in the child
//
// kLocal: cuInit succeeded; the real driver answers device queries. Without a real driver cuInit connects at
// once.
//
// kRemote: a session was opened, or could not be. Which error its calls return then, or after its server
// died, the session says (session.h). There is no state for a lost server: Session::open() says it.
//
// kNative: every entry point forwards to the real driver. The state is reached only before any handle or
// table of ours is given out, so the first call decides, for GPU 0 of the visible ones.
//
// kForked: the child of a process that used CUDA. Nothing in it may touch what the parent owns.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

namespace smt::interpose {

enum class State : uint32_t { kFresh, kLocal, kRemote, kNative, kForked };

extern std::atomic<State> process_state;

inline State state() { return process_state.load(std::memory_order_relaxed); }
inline bool native() { return state() == State::kNative; }
inline bool ready() {
    State now = state();
    return now == State::kLocal || now == State::kRemote;
}
inline bool connected() { return state() == State::kRemote; }
// The result of a call while the process is neither ready() nor native().
inline CUresult not_ready() { return CUDA_ERROR_NOT_INITIALIZED; }

}  // namespace smt::interpose
