#include "interpose/transport/output.h"

#include <stdio.h>

#include "interpose/transport/remote_call.h"

namespace smt::interpose {

void fetch_output() {
    while (true) {
        RemoteCall call(protocol::Op::kFetchOutput, 0);
        if (!call.open()) return;
        CUresult status = call.wait();
        if (status != CUDA_SUCCESS && status != CUDA_ERROR_NOT_READY) return;
        uint64_t bytes = 0;
        const char* text = call.reply().array<char>(bytes);
        if (text && bytes) fwrite(text, 1, bytes, stdout);
        if (status == CUDA_SUCCESS || bytes == 0) return;
    }
}

}  // namespace smt::interpose
