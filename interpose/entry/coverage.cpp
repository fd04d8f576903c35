#include "interpose/entry/coverage.h"

#include <iterator>

#include "coverage.gen.h"
#include "interpose/entry/process.h"
#include "interpose/transport/remote_call.h"

namespace smt::interpose {

namespace {

constexpr uint32_t kEntryPoints = std::size(kCoverage);

CUresult tell_server(uint32_t index) {
    RemoteCall call(protocol::Op::kUnsupported, sizeof(uint64_t));
    if (!call.open()) return call.status();  // an older error of the thread, which comes first
    call.in(index);
    call.post();
    return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

CUresult unsupported(uint32_t index) {
    return index < kEntryPoints && state() == State::kRemote ? tell_server(index) : CUDA_ERROR_NOT_SUPPORTED;
}

void report_unsupported_runtime(uint32_t index) {
    if (state() == State::kRemote) tell_server(kEntryPoints + index);
}

}  // namespace smt::interpose
