// A session's linker states, with the log buffers that the driver writes to for as long as a state
// lives. The states themselves are handles of the session (HandleKind::kLink).
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "driver_api.gen.h"
#include "runtime/server/handlers/jit_options.h"

namespace smt::runtime::server::handlers {

using JitOptionsPointer = std::shared_ptr<JitOptions>;

class Links {
public:
    explicit Links(const DriverApi& driver) : driver_(driver) {}

    CUresult create(JitOptionsPointer options, CUlinkState* state);
    JitOptionsPointer find(CUlinkState state) const;  // null: none
    CUresult destroy(CUlinkState state);
    void clear();  // the states are destroyed already

private:
    const DriverApi& driver_;
    mutable std::mutex mutex_;
    std::unordered_map<CUlinkState, JitOptionsPointer> states_;
};

}  // namespace smt::runtime::server::handlers
