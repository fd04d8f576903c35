// Physical device memory by handle. All but file_of() with world()'s lock.
#pragma once

#include "runtime/device/hosted/hosted.h"

namespace smt::runtime::device::hosted {

inline constexpr uint64_t kGranularity = 2ull << 20;

struct Physical {
    int own_file = -1;  // -1: it is a part of the common one
    uint64_t offset = 0;
    uint64_t bytes = 0;
    uint64_t references = 1;  // handles and mappings
};

Physical* find_physical(CUmemGenericAllocationHandle handle);  // null: there is none
void drop_physical(CUmemGenericAllocationHandle handle);       // one reference
int file_of(const Physical& physical);

}  // namespace smt::runtime::device::hosted
