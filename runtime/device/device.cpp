#include "runtime/device/device.h"

namespace smt::runtime::device {

CUstream Device::errands() const {
    std::call_once(errands_made_, [this] {
        int least = 0, greatest = 0;
        if (driver_.cuCtxGetStreamPriorityRange(&least, &greatest) == CUDA_SUCCESS)
            driver_.cuStreamCreateWithPriority(&errands_, CU_STREAM_NON_BLOCKING, greatest);
    });
    return errands_;
}

}  // namespace smt::runtime::device
