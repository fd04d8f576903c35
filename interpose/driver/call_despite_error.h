// Calls that free something: an earlier call's error is apart from their own, as the application regards what
// it frees as freed whatever is returned.
#pragma once

#include "interpose/transport/lane.h"
#include "interpose/transport/remote_call.h"

namespace smt::interpose {

// Waits for the server's result and returns it. `write(call)` writes the payload. `earlier` receives the
// thread's late error, if there is one; a value that is an error already is kept.
template <typename Write>
CUresult call_despite_error(protocol::Op op, uint64_t payload_bound, CUresult& earlier, Write write) {
    RemoteCall call(op, payload_bound);
    if (!call.open()) return call.status();
    write(call);
    CUresult status = call.wait();
    if (earlier == CUDA_SUCCESS) earlier = late_error();
    return status;
}

template <typename Request>
CUresult call_despite_error(protocol::Op op, const Request& request, CUresult& earlier) {
    return call_despite_error(op, sizeof request, earlier, [&](RemoteCall& call) { call.in(request); });
}
inline CUresult call_despite_error(protocol::Op op, CUresult& earlier) {
    return call_despite_error(op, 0, earlier, [](RemoteCall&) {});
}

}  // namespace smt::interpose
