#include "runtime/dispatch/kernel_times.h"

namespace smt::runtime::dispatch {

void KernelTimes::over(const Which& which, bool one_wave, double expected_ns, bool ends) {
    over_.push_back({which, one_wave, expected_ns, ends});
}

void KernelTimes::settle(bool at_work, TimePoint now) {
    const bool ended = !over_.empty();
    if (ended && at_work_) divide(schedule::ns_of(now - since_));
    if (ended || !at_work_) since_ = now;
    over_.clear();
    at_work_ = at_work;
}

void KernelTimes::divide(double took_ns) {
    double known = 0;
    size_t count = 0;
    for (const Item& each : over_) known += each.expected_ns, count += each.expected_ns > 0;
    const double usual = count ? known / static_cast<double>(count) : 1;
    const double all = known + usual * static_cast<double>(over_.size() - count);
    for (const Item& each : over_) {
        const auto ns =
            static_cast<uint64_t>(took_ns * (each.expected_ns > 0 ? each.expected_ns : usual) / all);
        Known& sum = sums_[each.which];
        sum.ns += ns;
        sum.one_wave_ns += each.one_wave ? ns : 0;
        sum.launches += each.ends;
        sum.changed = true;
    }
}

int KernelTimes::fits(const DriverApi& driver, CUfunction function, uint32_t threads, uint32_t shared_bytes) {
    const auto [known, fresh] = fits_.try_emplace({function, threads, shared_bytes}, 0);
    if (fresh)
        driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&known->second, function,
                                                           static_cast<int>(threads), shared_bytes);
    return known->second;
}

}  // namespace smt::runtime::dispatch
