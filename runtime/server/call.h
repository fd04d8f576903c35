// The record that a lane executes, as its handler sees it. A handler decodes `in`, calls `driver`,
// encodes `out` and returns the CUresult. The lane sends the result, or keeps it as the lane's async error.
//
// Contract: a handler runs on the lane's own thread with the shared context current. `in` is a private
// copy of the record, so one check of a value is enough. Nothing in it is trusted. A handler returns
// CUDA_ERROR_INVALID_VALUE if in.good() is false after decoding, before it calls the driver.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <mutex>

#include "driver_api.gen.h"
#include "runtime/protocol/codec.h"
#include "runtime/protocol/record.h"
#include "runtime/server/objects/handles.h"
#include "runtime/server/streams.h"

namespace smt::runtime::server {

class KernelUse;
class Lane;
class Session;
struct Image;

Handles& handles_of(Session& session);

struct Call {
    Lane& lane;
    Session& session;
    const DriverApi& driver;
    protocol::Reader in;
    protocol::Writer out;
    bool wants_reply;
    uint64_t measured = 0;  // the launch's number if the server measures it (measuring.h), else 0
    // The session's objects that the call uses. The handler adds them and begins the uses before it
    // resolves streams.
    Uses uses{handles_of(session), driver};
    std::shared_ptr<Image> image{};  // set by module(): stays loaded until the call ends
    std::unique_lock<std::mutex> image_lock{};
    std::shared_ptr<KernelUse> kernel{};  // set by function(): likewise

    // The stream of a reference. If the stream captures, the call holds the captures' family from then on.
    CUresult find_stream(uint32_t reference, StreamPointer* stream);
    // The driver's stream of a reference, ready for work: the tenant's legacy-stream order is in place
    // and the stream counts as used. INVALID_HANDLE if the session has no such stream.
    CUresult stream(uint32_t reference, CUstream* stream);
    // The same for a launch that the dispatcher takes over: managed launches in front of it may be pending.
    CUresult launch_stream(uint32_t reference, StreamPointer* stream);
    // The same without ordering and without noting a use (queries, attributes).
    CUresult plain_stream(uint32_t reference, CUstream* stream);
    CUresult event(uint32_t index, CUevent* event);
    CUresult function(uint32_t id, CUfunction* function);
    CUresult module(uint32_t id, CUmodule* module);  // also a library's module
    // Registers a handle that the driver returned as the session's own, and replaces it by its id.
    template <typename T>
    void adopt(HandleKind kind, T& handle) {
        handle = (T)handles_of(session).adopt(kind, (uint64_t)handle);
    }
    // The same for a child of one of the session's objects. `parent` is the driver's handle.
    template <typename T, typename Parent>
    void lend(HandleKind kind, T& handle, HandleKind parent_kind, Parent parent) {
        handle = (T)handles_of(session).lend(kind, (uint64_t)handle, parent_kind, (uint64_t)parent);
    }
    template <typename T>
    void lend(HandleKind kind, T& handle) {
        lend(kind, handle, HandleKind::kCount, uint64_t{0});
    }
    // Replaces a driver's handle by the id that the session has for it. INVALID_VALUE: it has none.
    template <typename T>
    CUresult known(HandleKind kind, T& handle) {
        handle = (T)handles_of(session).find(kind, (uint64_t)handle);
        return handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    CUcontext context() const;  // the shared one
};

using Handler = CUresult (*)(Call&);

// Handlers by opcode: generated (handlers.gen.cpp) or hand-written (one file per area).
Handler generated_handler(uint16_t op);    // nullptr: none
Handler written_handler(protocol::Op op);  // nullptr: none. handlers/
// Handlers of the session itself (handlers/core_handlers.cpp), looked up before written_handler():
// kOpenStaging, kEvent*, kStream{Create,Destroy,Synchronize,Query,WaitEvent}, kContext*, kFetchOutput,
// kHostFunction, kUnsupported. The lane itself executes kPad, kWaitLane and kCloseLane.
Handler core_handler(protocol::Op op);  // nullptr: none

}  // namespace smt::runtime::server
