// The launches that a context-wide call (context_wide.h) would wait for inside the driver, with all other
// calls behind it. While a tenant with a limit for its kernels is present one of them may never end, so such
// a call waits here for those that were there before it. For later ones it does not wait: launches may never
// cease.
//
// Any thread. A launch and note() behind it are made with the gate held shared, ahead() is asked with the
// gate held exclusively.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "driver_api.gen.h"

namespace smt::runtime::device {

class LaunchesAhead {
public:
    explicit LaunchesAhead(const DriverApi& real) : real_(real) {}

    using Turn = uint64_t;  // of a call that waits; 0: it has not asked yet

    void note(CUstream stream);  // a launch was enqueued on it
    // Whether one is under way of those that were there when the call first asked.
    bool ahead(Turn* turn);
    void forget();  // nothing is noted any more

private:
    struct Awaited {
        CUevent behind;  // the last launch that was noted of a stream
        Turn turn;       // the first that waits for it
    };
    bool take(CUevent* event);
    bool is_over(CUevent event) const { return real_.cuEventQuery(event) != CUDA_ERROR_NOT_READY; }

    const DriverApi& real_;
    std::mutex mutex_;                            // guards the members below
    std::unordered_map<CUstream, CUevent> last_;  // behind the last launch of each stream
    std::vector<Awaited> awaited_;
    std::vector<CUevent> free_;
    Turn turns_ = 0;
};

}  // namespace smt::runtime::device
