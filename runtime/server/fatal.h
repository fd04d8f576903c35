// The errors that end the shared context: after one of them every call of every tenant fails.
#pragma once

#include <cuda.h>

namespace smt::runtime::server {

constexpr bool is_fatal(CUresult status) {
    switch (status) {
        case CUDA_ERROR_ECC_UNCORRECTABLE:
        case CUDA_ERROR_NVLINK_UNCORRECTABLE:
        case CUDA_ERROR_CONTAINED:
        case CUDA_ERROR_ILLEGAL_ADDRESS:
        case CUDA_ERROR_LAUNCH_TIMEOUT:
        case CUDA_ERROR_CONTEXT_IS_DESTROYED:
        case CUDA_ERROR_ASSERT:
        case CUDA_ERROR_HARDWARE_STACK_ERROR:
        case CUDA_ERROR_ILLEGAL_INSTRUCTION:
        case CUDA_ERROR_MISALIGNED_ADDRESS:
        case CUDA_ERROR_INVALID_ADDRESS_SPACE:
        case CUDA_ERROR_INVALID_PC:
        case CUDA_ERROR_LAUNCH_FAILED:
        case CUDA_ERROR_EXTERNAL_DEVICE:
            return true;
        default:
            return false;
    }
}

// Of a driver's call behind that of a launch, in one record: the launch has begun, so it must not be executed
// again as one that had no effect (Lane::execute_again). The fault may be its own. The next call tells it.
constexpr CUresult behind_launch(CUresult status) { return is_fatal(status) ? CUDA_SUCCESS : status; }

}  // namespace smt::runtime::server
