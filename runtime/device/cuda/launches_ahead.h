// The launches that a context-wide call (context_wide.h) would wait for inside the driver, with all other
// calls behind it. While a tenant with a limit for its kernels is present one of them may never end, so such
// a call waits here for those that were there before it. For later ones it does not wait: launches may never
// cease.
//
// Any thread. A launch and note() behind it are made with the gate held shared, ahead() is asked with the
// gate held exclusively.
#pragma once

#include <mutex>
#include <unordered_map>
#include <vector>

#include "driver_api.gen.h"

namespace smt::runtime::device {

class LaunchesAhead {
public:
    explicit LaunchesAhead(const DriverApi& real) : real_(real) {}

    void note(CUstream stream);  // a launch was enqueued on it
    // Whether one is under way of those that were noted when this was first asked since it was last false.
    bool ahead();

private:
    bool take(CUevent* event);
    bool is_over(CUevent event) const { return real_.cuEventQuery(event) != CUDA_ERROR_NOT_READY; }

    const DriverApi& real_;
    std::mutex mutex_;                            // guards the members below
    std::unordered_map<CUstream, CUevent> last_;  // behind the last launch of each stream
    std::vector<CUevent> awaited_;                // behind those that were there when it was asked
    std::vector<CUevent> free_;
};

}  // namespace smt::runtime::device
