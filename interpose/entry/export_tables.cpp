// cuGetExportTable: undocumented function tables that cudart and the libraries request from the driver. The
// real driver's tables are handed out unchanged, except for the functions that need a context in the process
// or take our handles (context-local storage, the context checks; see docs/design.md). Without a real driver
// there are no tables and NVIDIA's cudart cannot start: its check of the driver is the vendor's to answer.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <cstdint>

#include "driver.gen.h"
#include "interpose/driver/context.h"
#include "interpose/driver/coverage.h"
#include "interpose/driver/local_storage.h"
#include "interpose/process/real_driver.h"
#include "interpose/process/state.h"
#include "interpose/transport/connect.h"
#include "runtime/protocol/runtime_table.h"

namespace smt::interpose {

namespace {

// A table is identified by the first four bytes of its identifier.
constexpr unsigned char kLocalStorage[4] = {0xc6, 0x93, 0x33, 0x6e};
constexpr unsigned char kContextChecks[4] = {0x26, 0x3e, 0x88, 0x60};
constexpr unsigned char kToolsStorage[4] = {0x42, 0xd8, 0x5a, 0x81};
constexpr unsigned char kContextFacts[4] = {0x21, 0x31, 0x8c, 0x60};
constexpr unsigned char kRuntimeHooks[4] = {0xa0, 0x94, 0x79, 0x8c};
constexpr unsigned char kModuleFacts[4] = {0x6e, 0x16, 0x3f, 0xbe};
constexpr unsigned char kDeviceFeatures[4] = {0xcd, 0x3e, 0xa2, 0xc6};
constexpr size_t kMostSlots = 128;
constexpr protocol::RuntimeTable kRuntimeTable = {sizeof(protocol::RuntimeTable), report_unsupported_runtime};

constinit pthread_mutex_t tables_lock = PTHREAD_MUTEX_INITIALIZER;

// A copy of a real table with some slots replaced. Its first word is its size in bytes.
struct Copied {
    const void* slots[kMostSlots];
};
constinit Copied checks{};
constinit Copied tools_storage{};
constinit Copied context_facts{};
constinit Copied module_facts{};
constinit Copied runtime_hooks{};
constinit Copied device_features{};

// The runtime's check concerns the process's own contexts, of which there are none: it succeeds, and the
// runtime's registration is ignored.
int check_context(void*, unsigned* result, const void**) {
    if (result) *result = 0;
    return 0;
}
int introduce(void*, void*, void*) { return 0; }

bool is(const CUuuid* id, const unsigned char (&prefix)[4]) {
    return memcmp(id->bytes, prefix, sizeof prefix) == 0;
}

// cuBLAS, cuDNN and PyTorch query the current context here, and below its number and that of the stream they
// use next.
CUresult current_for_tools(CUcontext* context) {
    if (!ready()) return not_ready();
    if (context) *context = current_context();
    return CUDA_SUCCESS;
}

// The table of the runtime's callback hooks has the same two functions.
CUresult context_number(CUcontext context, uint64_t* number) {
    if (!ready()) return not_ready();
    unsigned long long id = 0;
    CUresult status = driver::cuCtxGetId(context, &id);
    if (status == CUDA_SUCCESS && number) *number = id;
    return status;
}

CUresult stream_number(CUcontext, CUstream stream, uint64_t* number) {
    if (!ready()) return not_ready();
    unsigned long long id = 0;
    CUresult status = driver::cuStreamGetId(stream ? stream : CU_STREAM_LEGACY, &id);
    if (status == CUDA_SUCCESS && number) *number = id;
    return status;
}

// cuBLAS keeps a workspace for each stream: it queries the stream behind a handle and then that stream's
// number. The stream behind one of our handles is the handle itself.
CUresult stream_behind(CUcontext, CUstream stream, CUstream* behind, int per_thread) {
    if (!ready()) return not_ready();
    if (!behind) return CUDA_ERROR_INVALID_VALUE;
    *behind = stream ? stream : per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
    return CUDA_SUCCESS;
}

CUresult number_behind(CUcontext context, CUstream behind, uint64_t* number) {
    return stream_number(context, behind, number);
}

// The runtime reports its calls to tools through this function. A listening tool, for example cuBLAS, would
// take our handles for the driver's own, so no call is reported.
int tell_none(int, void*) { return 0; }

// cuFFT finds the kernel of a module that it just loaded by visiting all kernels with a callback.
int visit_functions(CUcontext, CUmodule module, void (*visit)(void* state, CUfunction), void* state) {
    unsigned count = 0;
    if (!ready() || !visit || driver::cuModuleGetFunctionCount(&count, module) != CUDA_SUCCESS) return 0;
    CUfunction* functions = static_cast<CUfunction*>(calloc(count + 1, sizeof(CUfunction)));
    bool found = functions && driver::cuModuleEnumerateFunctions(functions, count, module) == CUDA_SUCCESS;
    for (unsigned i = 0; found && i < count; ++i) visit(state, functions[i]);
    free(functions);
    return found;
}

// cuSPARSELt queries a device feature. The driver reads the result from the process's own context and raises
// SIGSEGV because there is none. 0 (no feature) makes cuSPARSELt run without it, as with older drivers.
int has_feature(int /*device*/, int /*feature*/, void*) { return 0; }

struct Replaced {
    size_t slot;
    const void* function;
};

template <size_t kCount>
const void* serve(Copied& copied, const void* table, const Replaced (&replaced)[kCount]) {
    pthread_mutex_lock(&tables_lock);
    if (!copied.slots[0]) {
        const void* const* real = static_cast<const void* const*>(table);
        size_t slots = reinterpret_cast<uintptr_t>(real[0]) / sizeof(void*);
        if (slots > kMostSlots) slots = kMostSlots;
        for (size_t i = 0; i < slots; ++i) copied.slots[i] = real[i];
        for (const Replaced& each : replaced) copied.slots[each.slot] = each.function;
    }
    pthread_mutex_unlock(&tables_lock);
    return copied.slots;
}

template <typename Function>
const void* address(Function* function) {
    return reinterpret_cast<const void*>(function);
}

}  // namespace

namespace driver {

CUresult cuGetExportTable(const void** table, const CUuuid* id) {
    if (!table || !id) return CUDA_ERROR_INVALID_VALUE;
    if (memcmp(id, &protocol::kRuntimeTableId, sizeof *id) == 0) {
        *table = &kRuntimeTable;
        return CUDA_SUCCESS;
    }
    settle_fallback();
    const DriverApi* real = real_driver();
    if (!real || !real->cuGetExportTable) return CUDA_ERROR_NOT_FOUND;
    CUresult status = real->cuGetExportTable(table, id);
    if (status != CUDA_SUCCESS || native()) return status;
    if (is(id, kLocalStorage)) *table = local_storage_table();
    if (is(id, kContextChecks))
        *table = serve(checks, *table, {{2, address(check_context)}, {3, address(introduce)}});
    if (is(id, kToolsStorage)) *table = serve(tools_storage, *table, {{2, address(current_for_tools)}});
    if (is(id, kDeviceFeatures)) *table = serve(device_features, *table, {{1, address(has_feature)}});
    if (is(id, kModuleFacts)) *table = serve(module_facts, *table, {{7, address(visit_functions)}});
    if (is(id, kContextFacts)) {
        *table = serve(context_facts, *table,
                       {{3, address(stream_number)},
                        {4, address(context_number)},
                        {39, address(number_behind)},
                        {51, address(stream_behind)}});
    }
    if (is(id, kRuntimeHooks)) {
        *table = serve(runtime_hooks, *table,
                       {{1, address(tell_none)}, {3, address(stream_number)}, {4, address(context_number)}});
    }
    return CUDA_SUCCESS;
}

}  // namespace driver

}  // namespace smt::interpose
