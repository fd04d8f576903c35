#include "driver.gen.h"
#include "interpose/process/real_driver.h"
#include "interpose/process/state.h"
#include "interpose/transport/connect.h"

namespace smt::interpose::driver {

CUresult cuInit(unsigned int flags) {
    if (native()) return real_driver()->cuInit(flags);
    return flags == 0 ? initialise() : CUDA_ERROR_INVALID_VALUE;
}

// Returns the real driver's number unchanged: cudart compares it with other sources.
CUresult cuDriverGetVersion(int* version) {
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    const DriverApi* driver = real_driver();
    if (driver && driver->cuDriverGetVersion) return driver->cuDriverGetVersion(version);
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

// No profiler can attach to this process's work, which runs in the server.
CUresult cuProfilerStart() { return CUDA_SUCCESS; }
CUresult cuProfilerStop() { return CUDA_SUCCESS; }

}  // namespace smt::interpose::driver
