// GPU time of each kernel on one stream, for `smt log --kernels`: an estimate, by what the host sees.
//
// A launch takes from its begin, or from the end of the launch in front of it if that is later, to its end.
// Ends are seen when a thread looks. Launches that are seen to be over at the same look divide the time as
// their kernels take alone, or equally where that is not known. Times of streams that work at the same time
// overlap.
//
// Only where gpu_time in SMT_JOURNAL asks for it: each launch has a marker behind it then, also of tenants
// that nothing can stop, and the dispatcher's thread looks all the time.
//
// Not thread-safe: guarded by its stream's lock.
#pragma once

#include <cuda.h>

#include <compare>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/schedule/snapshot.h"

namespace smt::runtime::dispatch {

class KernelTimes {
public:
    using TimePoint = schedule::TimePoint;
    // A kernel and how it was run, by their names in the journal.
    struct Which {
        uint32_t name = 0, treatment = 0;
        auto operator<=>(const Which&) const = default;
    };
    struct Sum {
        uint64_t ns = 0;
        uint64_t one_wave_ns = 0;  // of that: of launches whose blocks all run at once
        uint64_t launches = 0;     // that are over
    };

    // Work that is over since the last settle(). `expected_ns`: alone; 0: not known. `ends`: nothing is left
    // of its launch.
    void over(const Which& which, bool one_wave, double expected_ns, bool ends);
    void settle(bool at_work, TimePoint now);
    // Calls `write` for the sums that have changed since the last call.
    template <class Write>
    void report(const Write& write) {
        for (auto& [which, sum] : sums_)
            if (sum.changed) sum.changed = false, write(which, static_cast<const Sum&>(sum));
    }

    // CTAs of a kernel that fit on a multiprocessor; remembered until forget_code().
    int fits(const DriverApi& driver, CUfunction function, uint32_t threads, uint32_t shared_bytes);
    void forget_code() { fits_.clear(); }

private:
    struct Item {
        Which which;
        bool one_wave;
        double expected_ns;
        bool ends;
    };
    struct Known : Sum {
        bool changed = false;
    };
    void divide(double took_ns);

    std::map<Which, Known> sums_;
    std::map<std::tuple<CUfunction, uint32_t, uint32_t>, int> fits_;
    std::vector<Item> over_;
    bool at_work_ = false;
    TimePoint since_{};  // when work began, or was last over
};

}  // namespace smt::runtime::dispatch
