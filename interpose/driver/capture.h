// Stream capture on the client's side: the number of active captures in the session. While there are none,
// the common case, every query is answered without a message.
//
// Captures are counted by the stream on which they began. The server begins them relaxed; the application's
// capture mode is kept per thread and not enforced.
#pragma once

#include <cuda.h>

namespace smt::interpose {

bool any_capture_active();

// Whether the stream is capturing. Queries the server while any capture is active.
CUresult capture_status(CUstream stream, CUstreamCaptureStatus* status);

// Forgets the session's captures; called when the context is reset.
void forget_captures();

}  // namespace smt::interpose
