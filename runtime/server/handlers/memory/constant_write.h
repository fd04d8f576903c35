// A call that may write a __constant__ variable (memory/watched_constants.h): the address that the program
// has is exchanged for the driver's, and what it writes is copied to where a takeover finds it.
//
//   const ConstantWrite constant(call, &address);        // after the check that the session may touch it
//   ... enqueue the operation with `address`
//   return constant.follow(stream, status);
#pragma once

#include <optional>

#include "runtime/server/call.h"
#include "runtime/server/handlers/memory/copy_plan.h"
#include "runtime/server/memory/watched_constants.h"

namespace smt::runtime::server::handlers {

class ConstantWrite {
public:
    ConstantWrite(Call& call, CUdeviceptr* address);
    ConstantWrite(Call& call, PlannedEnd* end);
    bool any() const { return constant_.has_value(); }
    // Behind the operation, which is with the driver, and whose status is returned. In a capture nothing is
    // copied: the program then cannot be carried over any more.
    CUresult follow(Stream& stream, CUresult status) const;

private:
    Call& call_;
    std::optional<WatchedConstants::Constant> constant_;
};

}  // namespace smt::runtime::server::handlers
