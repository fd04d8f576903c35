// Calls that free something must reach the server even if an earlier record of the thread failed. Any other
// call would return that error without being made, but the application regards what it frees as freed
// whatever is returned.
#pragma once

#include "interpose/transport/remote_call.h"

namespace smt::interpose {

// Waits for the server's result and returns it. `write(call)` writes the payload. `earlier` receives the
// thread's earlier error, if there is one; a value that is an error already is kept.
template <typename Write>
CUresult call_despite_error(protocol::Op op, uint64_t payload_bound, CUresult& earlier, Write write) {
    CUresult status = CUDA_SUCCESS;
    for (int attempt = 0; attempt < 2; ++attempt) {
        RemoteCall call(op, payload_bound);
        if (call.open()) {
            write(call);
            return call.wait();
        }
        status = call.status();
        if (earlier == CUDA_SUCCESS) earlier = status;
    }
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
