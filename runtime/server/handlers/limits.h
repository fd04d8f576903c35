// cuCtxSetLimit for each tenant: it is told what it set, and the shared context has the largest of
// what all tenants wanted. A limit is never lowered again: kernels of others may rely on it.
#pragma once

#include <cuda.h>

#include <array>
#include <mutex>
#include <optional>

#include "driver_api.gen.h"

namespace smt::runtime::server::handlers {

class Limits {
public:
    explicit Limits(const DriverApi& driver) : driver_(driver) {}

    CUresult set(CUlimit limit, size_t value);
    CUresult get(CUlimit limit, size_t* value);
    void clear();  // back to the defaults

private:
    const DriverApi& driver_;
    std::mutex mutex_;
    std::array<std::optional<size_t>, CU_LIMIT_MAX> wanted_;
};

}  // namespace smt::runtime::server::handlers
