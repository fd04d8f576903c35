// Strict priority: of the tenants with work, those with the highest priority run. All others are stopped
// between two blocks (unmanaged work: between two kernels) and go on when that work is done. Within a
// priority the hardware decides.
//
// Work is done when none has come for the idle grace period (kIdleGrace). Programs launch, wait, and launch
// again, and a stop costs up to a block's time; so resuming others in such an idle time costs the urgent
// tenant more than the others gain. There is no grace period for a service if its last kLate requests all
// came later than that: the others would lose kIdleGrace at each. The time since another program ended does
// not count, since it does not predict a new one.
//
// A tenant of low priority may starve, as the name says.
//
// Unmanaged kernels that are under way are waited for. If their blocks are long, that takes long, even with
// the hardware's stream priorities. So while a more urgent tenant has worked recently (kLately), they are
// confined to three quarters of the device, and the urgent tenant's next kernel begins in the rest.
// `priority-whole` omits that.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "runtime/schedule/policies/policies.h"

namespace smt::runtime::schedule {

namespace {

constexpr auto kIdleGrace = std::chrono::microseconds(200);
constexpr int kLate = 2;  // one may be chance
// A session without work for this time counts as new, and gets the idle grace period again.
constexpr auto kForgotten = std::chrono::minutes(1);
// A service with requests further apart than this does not cost the others a part of the device in between.
constexpr auto kLately = std::chrono::seconds(1);
// Shorter blocks make room for a more urgent stream soon enough: stopping managed kernels takes about as
// long.
constexpr auto kLongBlock = std::chrono::microseconds(100);
constexpr int kKeptFree = 4;  // one part in so many

class Priority final : public Policy {
public:
    // `whole`: no kernel is confined.
    explicit Priority(bool whole)
        : Policy({whole ? "priority-whole" : "priority", Stops::kLessUrgent}), whole_(whole) {}
    bool leaves_alone() const override { return !confines_; }  // each stream has to be told
    bool lets_begin(std::string_view, int priority) const override {
        return priority >= most_urgent_ && priority <= least_running_;
    }
    std::vector<int> parts(const Device& device) const override {
        const int each = part(device);
        return each ? std::vector{each} : std::vector<int>{};
    }

    void want(const Snapshot& snapshot, TimePoint now, Wanted& wanted) override {
        note_work(snapshot, now);
        most_urgent_ = std::numeric_limits<int>::min();
        for (const Urgent& each : snapshot.urgent) most_urgent_ = std::max(most_urgent_, each.priority);
        least_running_ = std::numeric_limits<int>::max();
        if (snapshot.kernels.empty()) return;
        confines_ = false;
        if (part(snapshot.device)) {
            for (const Kernel& kernel : snapshot.kernels) confine(kernel, snapshot.device, now, wanted);
        }
        const Kernel& first = *std::ranges::max_element(
            snapshot.kernels, [](const Kernel& a, const Kernel& b) { return a.priority < b.priority; });
        for (const Kernel& kernel : snapshot.kernels) {
            if (kernel.priority < first.priority) {
                wanted.wait(kernel, [&] {
                    return fmt::format("{} for {} (priority {} over {})",
                                       kernel.stoppable() ? "stopped" : "held back", first.tenant,
                                       first.priority, kernel.priority);
                });
            } else if (wanted.waits(kernel)) {
                const Duration rest = rest_for(kernel.priority, now);
                if (rest > Duration::zero()) {
                    wanted.ask_again(rest);
                    continue;
                }
                wanted.resume(kernel, "goes on: no more urgent tenant has work");
                least_running_ = std::min(least_running_, kernel.priority);
            } else {
                least_running_ = std::min(least_running_, kernel.priority);
            }
        }
    }

private:
    int part(const Device& device) const {  // 0: no kernel is confined
        return whole_ || device.multiprocessors < kKeptFree
                   ? 0
                   : device.multiprocessors - device.multiprocessors / kKeptFree;
    }

    void confine(const Kernel& kernel, const Device& device, TimePoint now, Wanted& wanted) {
        Duration lasts{};
        for (auto each = work_.upper_bound(kernel.priority); each != work_.end(); ++each)
            lasts = std::max<Duration>(lasts, kLately - (now - each->second.lately));
        const bool confined = lasts > Duration::zero();
        if (confined) wanted.ask_again(lasts);
        confines_ |= confined;
        if (confined == (kernel.multiprocessors != 0)) return;
        wanted.confine(
            {kernel.id, confined ? part(device) : 0, kLongBlock,
             confined
                 ? fmt::format(
                       "long kernels keep to {} multiprocessors of {}: a more urgent tenant worked recently",
                       part(device), device.multiprocessors)
                 : "all SMs are free for all tenants: no more urgent tenant worked recently"});
    }

    // A priority without work now was busy until now, if it had work at the last call.
    void note_work(const Snapshot& snapshot, TimePoint now) {
        for (auto& [priority, work] : work_) {
            if (work.present) work.until = now;
            work.was_present = std::exchange(work.present, false);
        }
        for (const Kernel& kernel : snapshot.kernels) {
            Work& work = work_[kernel.priority];
            const bool first = work.seen.insert_or_assign(kernel.session, now).second;
            if (!first && now - work.until > kIdleGrace)
                work.late = std::min(work.late + 1, kLate);
            else if (now > work.until && !work.was_present)
                work.late = 0;
            work.present = work.was_present = true;
            work.until = now;
        }
        for (auto& [priority, work] : work_) {
            work.lately = std::max(work.lately, work.until);
            std::erase_if(work.seen, [&](const auto& each) { return now - each.second > kForgotten; });
        }
        for (const Urgent& each : snapshot.urgent) {
            TimePoint& lately = work_[each.priority].lately;
            lately = std::max(lately, each.since);
        }
    }

    Duration rest_for(int priority, TimePoint now) const {
        Duration rest{};
        for (auto each = work_.upper_bound(priority); each != work_.end(); ++each)
            if (each->second.late < kLate)
                rest = std::max<Duration>(rest, kIdleGrace - (now - each->second.until));
        return rest;
    }

    struct Work {
        bool present = false, was_present = false;  // now, and at the last call
        TimePoint until{};
        TimePoint lately{};  // likewise, or a tenant of this priority has come
        int late = 0;        // idle times over kIdleGrace since the last shorter one; not before first work
        std::map<uint32_t, TimePoint> seen;  // sessions that have had work, and when
    };
    const bool whole_;
    bool confines_ = false;     // some tenant keeps to a part of the device
    int most_urgent_ = 0;       // of the tenants that are present
    int least_running_ = 0;     // of the kernels that run
    std::map<int, Work> work_;  // by priority
};

}  // namespace

std::unique_ptr<Policy> make_priority() { return std::make_unique<Priority>(false); }
std::unique_ptr<Policy> make_priority_whole() { return std::make_unique<Priority>(true); }

}  // namespace smt::runtime::schedule
