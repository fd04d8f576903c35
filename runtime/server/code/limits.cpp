// See limits.h.
#include "runtime/server/code/limits.h"

#include <algorithm>

#include "runtime/protocol/api/sizes.h"
#include "runtime/protocol/try.h"
#include "runtime/server/memory/tenant_memory.h"

namespace smt::runtime::server {

namespace {

// Serialises changes of the shared context's limits. The driver's value before the first change is the
// default of every tenant.
std::mutex shared_mutex;
std::array<std::optional<size_t>, CU_LIMIT_MAX> defaults;

// For a number that is no limit the driver returns INVALID_VALUE; for a limit that the device lacks,
// UNSUPPORTED_LIMIT.
bool known(CUlimit limit) { return limit >= 0 && limit < CU_LIMIT_MAX; }

CUresult default_of(const DriverApi& driver, CUlimit limit, size_t* value) {
    if (!defaults[limit]) {
        size_t answer = 0;
        SMT_TRY(driver.cuCtxGetLimit(&answer, limit));
        defaults[limit] = answer;
    }
    *value = *defaults[limit];
    return CUDA_SUCCESS;
}

// The device memory of a limit that is `more` above its default. Other limits are counts without memory.
uint64_t bytes_of(CUlimit limit, uint64_t more, uint64_t threads) {
    switch (limit) {
        case CU_LIMIT_STACK_SIZE:
            return protocol::times(more, threads);
        case CU_LIMIT_PRINTF_FIFO_SIZE:
        case CU_LIMIT_MALLOC_HEAP_SIZE:
            return more;
        default:
            return 0;
    }
}

}  // namespace

CUresult Limits::set(CUlimit limit, size_t value, TenantMemory& memory, uint64_t threads) {
    if (!known(limit)) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(shared_mutex);
    size_t before = 0, now = 0;
    SMT_TRY(default_of(driver_, limit, &before));
    SMT_TRY(driver_.cuCtxGetLimit(&now, limit));
    std::lock_guard own_lock(mutex_);
    const uint64_t held = charges_[limit].bytes();
    const uint64_t wanted = value > before ? bytes_of(limit, value - before, threads) : 0;
    SMT_TRY(memory.charge(wanted, &charges_[limit]));
    if (value > now) {
        CUresult status = driver_.cuCtxSetLimit(limit, value);
        if (status == CUDA_SUCCESS) status = driver_.cuCtxGetLimit(&value, limit);  // the driver rounds
        if (status != CUDA_SUCCESS) {
            memory.charge(std::min(held, wanted), &charges_[limit]);
            return status;
        }
    }
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

std::vector<std::pair<CUlimit, size_t>> Limits::wanted() const {
    std::lock_guard lock(mutex_);
    std::vector<std::pair<CUlimit, size_t>> all;
    for (size_t i = 0; i < wanted_.size(); ++i)
        if (wanted_[i]) all.emplace_back(static_cast<CUlimit>(i), *wanted_[i]);
    return all;
}

void Limits::clear() {
    std::lock_guard lock(mutex_);
    wanted_.fill(std::nullopt);
    for (Charge& charge : charges_) charge = {};
}

}  // namespace smt::runtime::server
