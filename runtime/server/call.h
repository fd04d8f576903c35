// One record being executed: what a handler sees. A handler decodes `in`, asks `driver`, encodes
// `out` and returns the CUresult; the lane sends it, or keeps it as the lane's async error.
//
// Rules of the place: runs on the lane's own thread with the shared context current. `in` is a
// private copy of the record, so check once and use; nothing in it is trusted. A handler returns
// CUDA_ERROR_INVALID_VALUE when in.good() is false after decoding, before it touches the driver.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <mutex>

#include "driver_api.gen.h"
#include "runtime/protocol/codec.h"
#include "runtime/protocol/record.h"
#include "runtime/server/handles.h"
#include "runtime/server/streams.h"

namespace smt::runtime::server {

class Session;
class Lane;

namespace handlers {
struct Image;
class KernelUse;
}

Handles& handles_of(Session& session);

struct Call {
    Lane& lane;
    Session& session;
    const DriverApi& driver;
    protocol::Reader in;
    protocol::Writer out;
    bool wants_reply;
    uint64_t measured = 0;   // the number of the launch, where the server measures it (measuring.h)
    // The session's objects that the call uses: named, then begun, before it asks for streams.
    Uses uses{handles_of(session), driver};
    std::shared_ptr<handlers::Image> image{};      // of module(): loaded until the call is over
    std::unique_lock<std::mutex> image_lock{};
    std::shared_ptr<handlers::KernelUse> kernel{};   // of function(): the same

    // The stream behind a reference. Where it captures, the call has the captures to itself from then on.
    CUresult find_stream(uint32_t reference, StreamPointer* stream);
    // The driver's stream for a reference, ready for work: the tenant's legacy-stream ordering is
    // in place and the stream counts as used. INVALID_HANDLE if the session has no such stream.
    CUresult stream(uint32_t reference, CUstream* stream);
    // The same for a launch that the stream's dispatcher takes: what is in front of it need not be over.
    CUresult launch_stream(uint32_t reference, StreamPointer* stream);
    // The same without ordering and without counting as work (queries, attributes).
    CUresult plain_stream(uint32_t reference, CUstream* stream);
    CUresult event(uint32_t index, CUevent* event);
    CUresult function(uint32_t id, CUfunction* function);
    CUresult module(uint32_t id, CUmodule* module);      // a library's module too
    // What the driver gave becomes the session's, and the handle its id.
    template <typename T>
    void adopt(HandleKind kind, T& handle) {
        handle = (T)handles_of(session).adopt(kind, (uint64_t)handle);
    }
    // The same for what belongs to an object of the session, which is given as the driver knows it.
    template <typename T, typename Parent>
    void lend(HandleKind kind, T& handle, HandleKind parent_kind, Parent parent) {
        handle = (T)handles_of(session).lend(kind, (uint64_t)handle, parent_kind, (uint64_t)parent);
    }
    template <typename T>
    void lend(HandleKind kind, T& handle) {
        lend(kind, handle, HandleKind::kCount, uint64_t{0});
    }
    // The id of what the session has already. INVALID_VALUE: it has no such object, or no longer.
    template <typename T>
    CUresult known(HandleKind kind, T& handle) {
        handle = (T)handles_of(session).find(kind, (uint64_t)handle);
        return handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    CUcontext context() const;                           // the shared one
};

using Handler = CUresult (*)(Call&);

// Handlers by opcode: generated ones (handlers.gen.cpp) and hand-written ones (one file an area).
Handler generated_handler(uint16_t op);   // nullptr: none
Handler written_handler(protocol::Op op); // nullptr: none. handlers/
// Those that are about the session itself, asked first (core_handlers.cpp): kOpenStaging, kEvent*,
// kStream{Create,Destroy,Synchronize,Query,WaitEvent}, kContext*, kFetchOutput, kHostFunction,
// kUnsupported. kPad, kWaitLane and kCloseLane are the lane's.
Handler core_handler(protocol::Op op);    // nullptr: none

}  // namespace smt::runtime::server
