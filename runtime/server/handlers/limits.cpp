// See limits.h.
#include "runtime/server/handlers/limits.h"

namespace smt::runtime::server::handlers {

namespace {

// One change of the shared context's limits at a time. What the driver answered before the first
// change is every tenant's default.
std::mutex shared_mutex;
std::array<std::optional<size_t>, CU_LIMIT_MAX> defaults;

// Of a number that is no limit the driver says INVALID_VALUE, of one that the device lacks UNSUPPORTED_LIMIT.
bool known(CUlimit limit) { return limit >= 0 && limit < CU_LIMIT_MAX; }

CUresult default_of(const DriverApi& driver, CUlimit limit, size_t* value) {
    if (!defaults[limit]) {
        size_t answer = 0;
        if (CUresult status = driver.cuCtxGetLimit(&answer, limit)) return status;
        defaults[limit] = answer;
    }
    *value = *defaults[limit];
    return CUDA_SUCCESS;
}

}  // namespace

CUresult Limits::set(CUlimit limit, size_t value) {
    if (!known(limit)) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(shared_mutex);
    size_t now = 0;
    if (CUresult status = default_of(driver_, limit, &now)) return status;
    if (CUresult status = driver_.cuCtxGetLimit(&now, limit)) return status;
    if (value > now) {
        if (CUresult status = driver_.cuCtxSetLimit(limit, value)) return status;
        if (CUresult status = driver_.cuCtxGetLimit(&value, limit)) return status;  // rounded
    }
    std::lock_guard own_lock(mutex_);
    wanted_[limit] = value;
    return CUDA_SUCCESS;
}

CUresult Limits::get(CUlimit limit, size_t* value) {
    if (!known(limit)) return CUDA_ERROR_INVALID_VALUE;
    {
        std::lock_guard own_lock(mutex_);
        if (wanted_[limit]) {
            *value = *wanted_[limit];
            return CUDA_SUCCESS;
        }
    }
    std::lock_guard lock(shared_mutex);
    return default_of(driver_, limit, value);
}

void Limits::clear() {
    std::lock_guard lock(mutex_);
    wanted_.fill(std::nullopt);
}

}  // namespace smt::runtime::server::handlers
