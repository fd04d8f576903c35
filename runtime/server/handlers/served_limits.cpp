// Limits of the context: each tenant has its own values in limits.h.
#include "runtime/server/code/code_table.h"
#include "runtime/server/session.h"
#include "served.gen.h"

namespace smt::runtime::server::served {

CUresult cuCtxSetLimit(Call& call, CUlimit limit, size_t value) {
    device::Device& device = call.session.device();
    int threads = 0;
    call.driver.cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
                                     device.device());
    const auto resident =
        static_cast<uint64_t>(threads) * static_cast<uint64_t>(device.properties().multiprocessors);
    return call.session.code().limits().set(limit, value, call.session.memory(), resident);
}

CUresult cuCtxGetLimit(Call& call, size_t* value, CUlimit limit) {
    return value ? call.session.code().limits().get(limit, value) : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace smt::runtime::server::served
