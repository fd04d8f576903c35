// A client's launch attributes: those that contain handles or addresses are refused. What they say of
// clusters.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace smt::runtime::server::handlers {

inline constexpr uint32_t kMaxLaunchAttributes = 64;

inline CUresult check_launch_attributes(const CUlaunchAttribute* attributes, uint32_t count) {
    if (count > kMaxLaunchAttributes) return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < count; ++i) {
        const CUlaunchAttributeValue& value = attributes[i].value;
        switch (attributes[i].id) {
            case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
                if (value.programmaticEvent.event) return CUDA_ERROR_NOT_SUPPORTED;
                break;
            case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
                if (value.launchCompletionEvent.event) return CUDA_ERROR_NOT_SUPPORTED;
                break;
            case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
                if (value.deviceUpdatableKernelNode.deviceUpdatable) return CUDA_ERROR_NOT_SUPPORTED;
                break;
            default:
                break;
        }
    }
    return CUDA_SUCCESS;
}

// Blocks of a cluster of the launch; 1: it has none. `own`: of the kernel in all its launches. 0: clusters of
// two sizes, or of a size that the driver will refuse.
inline uint32_t cluster_blocks(const CUlaunchAttribute* attributes, size_t count, uint32_t own) {
    constexpr uint64_t kMost = 1024;
    uint64_t blocks = own;
    for (size_t i = 0; i < count; ++i) {
        if (attributes[i].id == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION) return 0;
        if (attributes[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
        const auto& size = attributes[i].value.clusterDim;
        const uint64_t row = std::min<uint64_t>(uint64_t{size.x} * size.y, kMost + 1);
        blocks = row * size.z;
    }
    return blocks <= kMost ? static_cast<uint32_t>(blocks) : 0;
}

}  // namespace smt::runtime::server::handlers
