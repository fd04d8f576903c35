// cuGetProcAddress: a driver function by name and CUDA version. The result is always one of our own stubs, or
// nothing: an unknown function never reaches the application from the real driver.
//
// Behaviour follows the driver (observed with 580.159): version 2 succeeds with a null pointer and gives the
// reason in the status; unknown flags are INVALID_VALUE and nothing is written. Version 1 has no status, so a
// missing function is NOT_FOUND.
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <iterator>

#include "driver.gen.h"
#include "interpose/process/real_driver.h"
#include "interpose/process/state.h"
#include "interpose/transport/connect.h"
#include "resolve.gen.h"

namespace smt::interpose {

namespace {

constexpr cuuint64_t kKnownFlags =
    CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

const Resolvable* first_of(const char* name) {
    const Resolvable* begin = std::begin(kResolvable);
    size_t count = std::size(kResolvable);
    while (count != 0) {
        size_t half = count / 2;
        if (strcmp(begin[half].name, name) < 0) {
            begin += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return begin != std::end(kResolvable) && strcmp(begin->name, name) == 0 ? begin : nullptr;
}

// The row with the highest version that is no higher than `version`; a per-thread-default-stream row takes
// precedence if wanted. nullptr: the name exists, but no version of it is old enough.
const Resolvable* best_of(const Resolvable* first, int version, bool per_thread) {
    const Resolvable* plain = nullptr;
    const Resolvable* twin = nullptr;
    for (const Resolvable* at = first; at != std::end(kResolvable) && strcmp(at->name, first->name) == 0;
         ++at) {
        if (at->version > version) continue;
        const Resolvable*& best = at->per_thread ? twin : plain;
        if (!best || at->version > best->version) best = at;
    }
    return per_thread && twin ? twin : plain;
}

// The real driver decides which functions exist: it may be older than our table.
CUresult real_answer(const char* symbol, int version, cuuint64_t flags, void** function,
                     CUdriverProcAddressQueryResult* found) {
    const DriverApi* driver = real_driver();
    *function = nullptr;
    *found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (!driver) return CUDA_SUCCESS;
    if (driver->cuGetProcAddress_v2)
        return driver->cuGetProcAddress_v2(symbol, function, version, flags, found);
    if (!driver->cuGetProcAddress) return CUDA_SUCCESS;
    CUresult status = driver->cuGetProcAddress(symbol, function, version, flags);
    if (status == CUDA_SUCCESS && *function) *found = CU_GET_PROC_ADDRESS_SUCCESS;
    return status;
}

CUresult resolve(const char* symbol, void** function, int version, cuuint64_t flags,
                 CUdriverProcAddressQueryResult* found) {
    // cudart looks up the empty name once, as a test that the function answers.
    if (*symbol == 0) return real_answer(symbol, version, flags, function, found);
    if (real_driver()) {
        CUresult status = real_answer(symbol, version, flags, function, found);
        if (status != CUDA_SUCCESS || !*function) return *function = nullptr, status;
    }
    *function = nullptr;
    *found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    const Resolvable* first = first_of(symbol);
    if (!first) return CUDA_SUCCESS;
    *found = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    const Resolvable* best = best_of(first, version, per_thread);
    if (!best) return CUDA_SUCCESS;
    *function = reinterpret_cast<void*>(best->fn);
    *found = CU_GET_PROC_ADDRESS_SUCCESS;
    return CUDA_SUCCESS;
}

// A CUDA runtime of version 11 uses version 1 of this function, and loads kernels by a private table that
// cannot be replaced (export_tables.cpp): the driver's own functions find no context in this process.
void tell_of_old_runtime() {
    static constinit std::atomic<bool> told{false};
    settle_fallback();
    if (!real_driver() || native() || told.exchange(true)) return;
    static constexpr char kText[] =
        "smt: the CUDA runtime in this program is of CUDA 11. It loads kernels by a private function of the "
        "driver, which smt cannot serve, so they fail with CUDA_ERROR_INVALID_CONTEXT; build the program "
        "with CUDA 12 or newer, or run it without smt\n";
    if (write(STDERR_FILENO, kText, sizeof kText - 1) < 0) return;
}

}  // namespace

namespace driver {

CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
    CUresult status = driver::cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
    if (symbol && strcmp(symbol, "cuGetExportTable") == 0) tell_of_old_runtime();
    return status == CUDA_SUCCESS && !*function ? CUDA_ERROR_NOT_FOUND : status;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* found) {
    if (!symbol || !function || (flags & ~kKnownFlags)) return CUDA_ERROR_INVALID_VALUE;
    CUdriverProcAddressQueryResult answer;
    CUresult status = resolve(symbol, function, version, flags, &answer);
    if (found) *found = answer;
    return status;
}

}  // namespace driver

}  // namespace smt::interpose
