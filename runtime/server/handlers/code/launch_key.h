// The key of a launch: equal for launches of one kernel with equal grids, blocks, shared memory and scalar
// arguments. Scalars often say how long a launch takes. Pointers do not, and buffers change places from one
// launch to the next, so they are no part of it. Eight aligned bytes of an argument count as a pointer if
// they are an address of the tenant's, as in describe_launch(). Bytes between arguments are no part of it,
// those between the members of a struct are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "runtime/protocol/record.h"

namespace smt::runtime::server::handlers {

// Never 0. `parameters`: in the kernel's parameter layout. `bytes`: of it. Parameters beyond are left out.
template <class IsPointer>
uint64_t launch_key(const protocol::Launch& launch, std::span<const protocol::ParameterInfo> layout,
                    const char* parameters, uint32_t bytes, const IsPointer& is_pointer) {
    uint64_t key = 0x9e3779b97f4a7c15;
    const auto add = [&key](uint64_t word) {
        key = (key ^ word) * 0xff51afd7ed558ccd;
        key ^= key >> 32;
    };
    for (int i = 0; i < 3; ++i) add(uint64_t{launch.grid[i]} << 32 | launch.block[i]);
    add(launch.shared_bytes);
    for (const protocol::ParameterInfo& each : layout) {
        if (each.offset > bytes || each.bytes > bytes - each.offset) continue;
        for (uint32_t at = each.offset; at < each.offset + each.bytes;) {
            const uint32_t left = each.offset + each.bytes - at;
            const uint32_t size = std::min<uint32_t>(left, 8 - at % 8);
            uint64_t word = 0;
            std::memcpy(&word, parameters + at, size);
            if (size < 8 || !is_pointer(word)) add(word ^ uint64_t{at} << 48);
            at += size;
        }
    }
    return std::max<uint64_t>(key, 1);
}

}  // namespace smt::runtime::server::handlers
