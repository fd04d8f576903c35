#include "interpose/driver/coverage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <iterator>

#include "coverage.gen.h"
#include "interpose/process/session.h"
#include "interpose/transport/remote_call.h"
#include "runtime/settings/read.h"

namespace smt::interpose {

namespace {

constexpr uint32_t kEntryPoints = std::size(kCoverage);
constinit std::atomic<bool> told[kEntryPoints]{};

void tell_user(uint32_t index) {
    if (told[index].exchange(true, std::memory_order_relaxed)) return;
    if (settings::flag_of(settings::Id::kReportUnsupported))
        fprintf(stderr, "smt: %s is not supported\n", kCoverage[index].symbol);
}

CUresult tell_server(uint32_t index) {
    RemoteCall call(protocol::Op::kUnsupported, sizeof(uint64_t));
    if (!call.open()) return call.status();
    call.in(index);
    call.post_quietly();
    return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

CUresult unsupported(uint32_t index) {
    if (index >= kEntryPoints) return CUDA_ERROR_NOT_SUPPORTED;
    tell_user(index);
    return this_session().open() ? tell_server(index) : CUDA_ERROR_NOT_SUPPORTED;
}

void report_unsupported_runtime(uint32_t index) {
    if (this_session().open()) tell_server(kEntryPoints + index);
}

}  // namespace smt::interpose
