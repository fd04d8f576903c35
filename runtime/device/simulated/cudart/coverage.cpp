#include "runtime/device/simulated/cudart/coverage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <iterator>

#include "cudart_coverage.gen.h"
#include "runtime/device/simulated/cudart/runtime.h"
#include "runtime/protocol/runtime_table.h"
#include "runtime/settings/read.h"

namespace smt::cudart {

namespace {

constexpr uint32_t kFunctions = std::size(kRuntimeCoverage);
constinit std::atomic<bool> told[kFunctions]{};

void tell_server(uint32_t index) {
    const void* table = nullptr;
    if (begin_early() != cudaSuccess) return;
    if (driver().cuGetExportTable(&table, &protocol::kRuntimeTableId) != CUDA_SUCCESS) return;
    static_cast<const protocol::RuntimeTable*>(table)->report_unsupported(index);
}

void tell_user(uint32_t index) {
    if (settings::flag_of(settings::Id::kReportUnsupported))
        fprintf(stderr, "smt: %s is not supported\n", kRuntimeCoverage[index].symbol);
}

}  // namespace

cudaError_t unsupported(uint32_t index) {
    if (index < kFunctions) {
        if (!told[index].exchange(true, std::memory_order_relaxed)) tell_user(index);
        tell_server(index);
    }
    return cudaErrorNotSupported;
}

}  // namespace smt::cudart
