// Helpers of the generated handlers (handlers.gen.cpp), included there only.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "runtime/protocol/api/sizes.h"
#include "runtime/protocol/layout.h"
#include "runtime/server/call.h"
#include "runtime/server/memory/array_size.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/memory/tenant_ranges.h"
#include "runtime/server/session.h"

namespace smt::runtime::server {

using protocol::pool_value_bytes;
using protocol::rows;
using protocol::times;

// Arrays in a reply share its area; the last 16 KiB are left for the scalars beside them.
inline constexpr uint64_t kArrayReplyBytes = protocol::kReplyBytes - (16u << 10);

// Returns the memory that tenants freed and the server keeps for them. true: ask the driver again.
inline bool free_idle_memory() {
    TenantRanges::trim_all();
    return true;
}

inline bool may_touch(Call& call, CUdeviceptr address, uint64_t bytes) {
    return call.session.memory().may_touch(address, bytes);
}

inline bool may_touch(Call& call, const CUDA_MEMSET_NODE_PARAMS& fill) {
    return may_touch(call, fill.dst, rows(fill.pitch, times(fill.width, fill.elementSize), fill.height));
}

// Reads the struct, sent without its pointers, then the attributes, which stay in the record.
inline CUlaunchConfig unpack_launch_config(protocol::Reader& in) {
    auto config = in.scalar<CUlaunchConfig>();
    uint64_t count = 0;
    const auto* attributes = in.array<CUlaunchAttribute>(count);
    config.attrs = const_cast<CUlaunchAttribute*>(attributes);
    config.numAttrs = static_cast<unsigned int>(count);
    config.hStream = nullptr;
    return config;
}

}  // namespace smt::runtime::server
