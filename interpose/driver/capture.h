// Stream capture, as far as the client knows of it: how many captures are under way in the process.
// While there are none, and that is nearly always, every question is answered here.
//
// Captures are counted by the streams they were begun on. The server begins them relaxed; the
// application's capture mode is kept per thread and only remembered.
#pragma once

#include <cuda.h>

namespace smt::interpose {

bool any_capture_active();

// Whether work for the stream is being captured. Asks the server while any capture is active.
CUresult capture_status(CUstream stream, CUstreamCaptureStatus* status);

// The session's captures are gone: context reset.
void forget_captures();

}  // namespace smt::interpose
