// Order across lanes. Records of one thread run in order; records of two threads do not. A call that uses a
// stream or event last used by another thread therefore first waits (in the server) until that thread's lane
// has reached that use. These functions are called BEFORE the RemoteCall that uses the object is constructed.
// They post kWaitLane records only when one is needed.
//   order_after(stream): the stream's last use; for a blocking stream also the legacy stream's;
//                        for the legacy stream the last use of every lane
//   order_after_all():   every lane (context synchronise, free, reset, unload)
// note_use() is called AFTER post()/wait() with the same object.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace smt::interpose {

struct Event;

CUresult order_after(CUstream stream);
CUresult order_after(Event& event);
CUresult order_after_all();
void note_use(CUstream stream);
void note_use(Event& event);

// kLegacyStream, kPerThreadStream or the id of a created stream. false: not a stream of this_session().
// `stream` is canonical: CU_STREAM_LEGACY or CU_STREAM_PER_THREAD, never null.
bool stream_ref(CUstream stream, uint32_t& ref);

}  // namespace smt::interpose
