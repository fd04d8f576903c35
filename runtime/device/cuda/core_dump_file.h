// The file into which the driver dumps the GPU's state when a kernel faults (runtime/image/core_dump.h reads it).
//
// Dumps are enabled before the context is made. Measured on an H100 with driver 580: with dumps enabled launches, waits and kernels
// take as long as without; a dump is 0.3 to 15 MB and takes 10 ms to 1 s, and the fault's error reaches calls when it is complete.
// One thing changes: a wait for a kernel whose *stores* fault returns success, and so does what follows it, until the dump is
// complete. (Without dumps the wait returns the error.) Waits for other faults return success too, but not before the file is there,
// so that begun() tells.
#pragma once

#include <string>
#include <variant>

#include "driver_api.gen.h"
#include "runtime/image/core_dump.h"

namespace smt::runtime::device {

class CoreDumpFile {
public:
    // After cuInit, before the context. False: this driver has no core dumps, or an environment variable of CUDA's decides about them.
    bool enable(const DriverApi& driver, const std::string& path);
    bool enabled() const { return !path_.empty(); }
    bool begun() const;   // any thread; a system call
    // When a call has returned the fault's error.
    std::variant<image::FaultSite, image::Problem> read() const;

private:
    std::string path_;   // empty: dumps are off
};

}  // namespace smt::runtime::device
