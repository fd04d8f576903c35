#include "interpose/entry/coverage.h"

#include <atomic>
#include <iterator>

#include "coverage.gen.h"
#include "interpose/entry/process.h"
#include "interpose/transport/remote_call.h"

namespace smt::interpose {

namespace {

constexpr uint32_t kEntryPoints = std::size(kCoverage);
constinit std::atomic<uint64_t> calls[kEntryPoints]{};

// The server counts names, so it hears of every function once.
CUresult tell_server(uint32_t index) {
    RemoteCall call(protocol::Op::kUnsupported, sizeof(uint64_t));
    if (!call.open()) return call.status();  // an older error of the thread, which comes first
    call.in(index);
    call.post();
    return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

CUresult unsupported(uint32_t index) {
    if (index >= kEntryPoints) return CUDA_ERROR_NOT_SUPPORTED;
    bool first = calls[index].fetch_add(1, std::memory_order_relaxed) == 0;
    return first && state() == State::kRemote ? tell_server(index) : CUDA_ERROR_NOT_SUPPORTED;
}

void report_unsupported_runtime(uint32_t index) {
    if (state() == State::kRemote) tell_server(kEntryPoints + index);
}

uint64_t unsupported_calls(uint32_t index) {
    return index < kEntryPoints ? calls[index].load(std::memory_order_relaxed) : 0;
}

}  // namespace smt::interpose
