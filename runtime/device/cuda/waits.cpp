#include "runtime/device/cuda/waits.h"

#include "runtime/device/cores.h"

namespace smt::runtime::device {

namespace {

// Never destroyed: sessions' threads may outlive main().
DriverApi& unguarded = *new DriverApi;
bool (*cores_are_scarce)() = nullptr;

// A wait that began while cores were to spare stays the driver's to its end. So does the end of one that was
// made of questions: what kernels have printed comes out in the driver's waits, and not when it is asked.
template <class Handle>
CUresult await(Handle handle, CUresult (*query)(Handle), CUresult (*synchronize)(Handle)) {
    while (query && cores_are_scarce()) {
        const CUresult status = query(handle);
        if (status == CUDA_SUCCESS) break;
        if (status != CUDA_ERROR_NOT_READY) return status;
        nap();
    }
    return synchronize(handle);
}

}  // namespace

void guard_waits(DriverApi& driver, bool (*scarce)()) {
    unguarded = driver;
    cores_are_scarce = scarce;
    driver.cuStreamSynchronize = [](CUstream stream) {
        return await(stream, unguarded.cuStreamQuery, unguarded.cuStreamSynchronize);
    };
    driver.cuEventSynchronize = [](CUevent event) {
        return await(event, unguarded.cuEventQuery, unguarded.cuEventSynchronize);
    };
}

}  // namespace smt::runtime::device
