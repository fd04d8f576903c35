// Check of a client's launch attributes: those that contain handles or addresses are refused.
#pragma once

#include <cuda.h>

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

}  // namespace smt::runtime::server::handlers
