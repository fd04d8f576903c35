// The state of this process as a virtual driver.
//
//   kFresh  --cuInit--> kLocal --first call that needs the server--> kRemote --server died--> kLost
//                              \--no server--> kLost, with a clear error
//   with SMT_FALLBACK=native, where the first call decides:
//   kFresh  --cuInit--> kRemote, or kNative when there is no server
//   any but kFresh --fork--> kForked, in the child
//
// kLocal:  cuInit succeeded; device queries are answered by the real driver. Without a real driver
//          cuInit connects at once.
// kNative: every entry point forwards to the real driver. Reached only before any handle or table of
//          ours was given out, which is why the first call decides, for GPU 0 of those visible.
// kForked: the child of a process that used CUDA; nothing here may touch what the parent owns.
//
// How a stub begins:
//   written, real:  if (!ready()) { if (native()) return real_driver()->NAME(...);
//                                   return not_ready(); }
//   remote, async:  if (!connected()) { CUresult status = connect();
//                                       if (native()) return real_driver()->NAME(...);
//                                       if (status != CUDA_SUCCESS) return status; }
// A written function that needs the server before there is a context calls connect() the same way.
// Callable before cuInit, without any of this: cuInit, cuDriverGetVersion, cuGetErrorName,
// cuGetErrorString, cuGetProcAddress (_v2), cuGetExportTable.
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
// What a call returns when the process is neither ready() nor native().
inline CUresult not_ready() { return CUDA_ERROR_NOT_INITIALIZED; }

// cuInit. Thread-safe; the work is done once.
CUresult initialise();
// Where SMT_FALLBACK=native asks for it, decides between the server and the GPU itself. For what is
// called before cuInit and cannot be taken back.
void settle_fallback();
// Opens the session, once, for the GPU `device` (a driver ordinal; the first call decides). After
// it: kRemote and SUCCESS; kNative and SUCCESS; or the error every later call will return as well.
CUresult connect(CUdevice device = 0);
// The device of the session, or of the first context.
CUdevice session_device();

// The session's arena; nullptr before connect().
protocol::SessionHeader* session();
char* arena_base();
// -1 where the program has closed it: the number may be another file's by now.
int control_socket();
inline std::atomic<uint64_t>& completion_word(uint32_t index) {
    return reinterpret_cast<std::atomic<uint64_t>*>(arena_base() + protocol::kWordsOffset)[index];
}

// The error that every call returns once the server is lost or a fault poisoned the shared context;
// SUCCESS while all is well.
CUresult sticky_error();
// Says once on stderr what the server knows of the fault that lost the context, if it was that.
void tell_fault();
// Looks at the control socket. False: the server is gone, and sticky_error() says so from now on. A line on stderr says what
// happened, once in the process.
bool server_lives();
// The same, but at most once every kLivenessMs; for loops that poll a completion word.
inline constexpr uint32_t kLivenessMs = 50;
bool server_lives_sometimes();

// At the end of every call that synchronised: brings device printf to our stdout, if there is any.
void fetch_output();
inline void after_sync() {
    if (session() && session()->printf_pending.load(std::memory_order_acquire)) [[unlikely]]
        fetch_output();
}

}  // namespace smt::interpose
