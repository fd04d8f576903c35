// What a context's end or a wait for it means for this_session(); and a wait for a stream.
#pragma once

#include <cuda.h>

namespace smt::interpose {

// Waits for all that the session has under way.
CUresult synchronize_session();
// Waits for the stream's work. Its own error only: a late error (lane.h) stays.
CUresult synchronize_stream(CUstream stream);
// Frees everything that the process holds on the device: at the end of the last context there, or in a reset.
CUresult free_everything(CUcontext context);
void destroy_streams_of(CUcontext context);

}  // namespace smt::interpose
