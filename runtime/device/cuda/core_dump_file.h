// The file into which the driver dumps the GPU's state when a kernel faults (runtime/image/core_dump.h reads
// it).
//
// Dumps are enabled before the context is made. Measured on an H100 with driver 580: enabled dumps do not
// slow down launches, waits and kernels. A dump has 0.3 to 15 MB and takes 10 ms to 1 s. Calls return the
// fault's error once the dump is complete. One behaviour changes: after a faulting store the wait for the
// kernel, and later calls, return success until the dump is complete. (Without dumps the wait returns the
// error.) Waits for other faults return success too, but only after the file exists, so that begun() is true.
#pragma once

#include <string>
#include <variant>

#include "driver_api.gen.h"
#include "runtime/image/core_dump.h"

namespace smt::runtime::device {

class CoreDumpFile {
public:
    // To be called after cuInit and before the context is made. False: the driver has no core dumps, or one
    // of CUDA's environment variables controls them.
    bool enable(const DriverApi& driver, const std::string& path);
    bool enabled() const { return !path_.empty(); }
    bool begun() const;  // any thread; makes a system call
    // To be called after a call has returned the fault's error.
    std::variant<image::FaultSite, image::Problem> read() const;

private:
    std::string path_;  // empty: dumps are off
};

}  // namespace smt::runtime::device
