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

}  // namespace

CUresult unsupported(uint32_t index) {
    if (index >= kEntryPoints) return CUDA_ERROR_NOT_SUPPORTED;
    // The server counts names, so it hears of every entry point once.
    if (calls[index].fetch_add(1, std::memory_order_relaxed) == 0 && state() == State::kRemote) {
        RemoteCall call(protocol::Op::kUnsupported, sizeof(uint64_t));
        if (!call.open()) return call.status();  // an older error of the thread, which comes first
        call.in(index);
        call.post();
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

uint64_t unsupported_calls(uint32_t index) {
    return index < kEntryPoints ? calls[index].load(std::memory_order_relaxed) : 0;
}

}  // namespace smt::interpose
