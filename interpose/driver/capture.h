// Stream capture on the client's side: the number of active captures in the session. While there are none,
// the common case, every query is answered without a message.
//
// Captures are counted by the stream on which they began. The server begins them relaxed, so what a capture
// forbids is refused here, before the call: what CUDA documents for the modes of captures and of threads
// (cuThreadExchangeStreamCaptureMode), for the legacy stream beside a capture of a blocking stream, and for a
// wait for the whole context. What is refused breaks the captures that forbid it.
#pragma once

#include <cuda.h>

#include <atomic>

namespace smt::interpose {

bool any_capture_active();

// The process's captures that are under way, of all modes. While there are none, nothing is refused.
extern constinit std::atomic<uint32_t> captures_under_way;

// Of a call that uses `stream`, if that is the legacy stream.
CUresult check_legacy_use(CUstream stream);
// Of a call that may be unsafe during a capture, as CUDA calls it.
CUresult check_unsafe_call();
// Of a wait for all work of this_session().
CUresult check_wait_for_all();

// The stream's capture ends with it.
void forget_capture(CUstream stream);

// Whether the stream is capturing. Queries the server while any capture is active.
CUresult capture_status(CUstream stream, CUstreamCaptureStatus* status);

// Forgets the session's captures; called when the context is reset.
void forget_captures();

}  // namespace smt::interpose
