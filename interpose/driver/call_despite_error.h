// Calls that give something back must reach the server even when an earlier record of the thread
// failed, whose error any other call would return instead of being made: the application takes what
// it frees for freed whatever is returned.
#pragma once

#include "interpose/transport/remote_call.h"

namespace smt::interpose {

// Waits for the answer and returns it. `write(call)` puts the payload in. `earlier`: an earlier error
// of the thread, if there was one; it stays what it was when it is one already.
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
