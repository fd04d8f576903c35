// Highest priority first: FLEP (Wu and others), 5.2.1 and figure 6, with the spatial preemption of 4.1.
//
// The kernel of the highest priority has the GPU. Among kernels of one priority it is the one with the
// shortest remaining time T_r. But the running kernel K_r gives way to a shorter one K_s only if
//
//     T_r(K_r) > T_r(K_s) + O(K_r)          (lines 22 to 34; O: the cost of stopping K_r)
//
// Spatial preemption: a kernel that needs fewer SMs than there are (blocks over CTAs that fit on one) gets
// only so many, plus `extra_sms`. The next kernel in the order gets the rest and keeps running there if it
// did. As in figure 4 (c), the SMs with the lowest numbers are given up.
//
//     2 SMs of 2 CTAs, K1 runs, K2 is more urgent.   K2 has 4 blocks: K2 everywhere, K1 waits.
//                                                    K2 has 2: K2 {2, 0}, K1 {0, 2}           (figure 2)
//
// docs/policies.md (hpf) has what is not in the paper, and why. Sharing without preemption: fits_beside() and
// goes_well(), where the urgent kernel is the guest of the other one. Measured: without the latter one
// request in ten waits for up to 10 ms beside md5_hash. The short-job bypass: short_job_bypass.h. Crowds of
// short kernels run as they are: the last one waits no longer than all of them take.
//
// The number of SMs that a kernel needs is computed when it gets its first ones, so that tables do not change
// at every block. A kernel alone gets all SMs. FLEP has at most two kernels on the GPU; here the rest may be
// given out several times. A launch that has taken its last block needs nothing more and counts as finished.
//
// A kernel with a door cannot be given SMs. It has the GPU, or waits. If only such kernels are left, the
// first one has all SMs.
//
// T_r is by estimate.h. Of equal times the running kernel goes on. Unmanaged work is neither stopped nor
// waited for. Low priorities may starve. Within a priority a kernel that has waited too long gets a turn
// (knobs.h): a sequence of short kernels could delay a long one without end.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/schedule/estimate.h"
#include "runtime/schedule/policies/policies.h"
#include "runtime/schedule/policies/short_job_bypass.h"
#include "runtime/schedule/policies/short_kernels.h"

namespace smt::runtime::schedule {

namespace {

struct Candidate {
    const Kernel* kernel;
    double left_ns;  // T_r
    int most;        // CTAs on an SM
};

class Hpf final : public Policy {
public:
    explicit Hpf(const HpfKnobs& knobs)
        : Policy({knobs.spatial ? "hpf" : "hpf-whole", Stops::kAny}, knobs.aging),
          knobs_(knobs),
          short_job_bypass_(knobs.short_job) {}

    void want(const Snapshot& snapshot, TimePoint now, Wanted& wanted) override {
        if (crowd_of_short(snapshot, now)) return leave_to_hardware(snapshot, wanted);
        std::vector<Candidate> queue = candidates(snapshot, wanted);
        for (auto equals = queue.begin(); equals != queue.end();) {
            const auto end = std::find_if(equals, queue.end(), [&](const Candidate& each) {
                return each.kernel->priority != equals->kernel->priority;
            });
            to_front(equals, end, now, wanted);
            equals = end;
        }
        if (!fits_beside(queue, snapshot.device))
            std::erase_if(queue, [](const Candidate& each) { return each.kernel->last_taken; });
        if (queue.empty()) return;
        if (fits_beside(queue, snapshot.device) && goes_well(queue, now, wanted)) return share(queue, wanted);
        const bool whole =
            !knobs_.spatial || doors_wait(queue) || soon_over(queue, snapshot.device, now, wanted);
        place(queue, snapshot.device, whole, wanted);
    }

private:
    // Kernels of one priority that are all so short that to order them costs more than it brings.
    bool crowd_of_short(const Snapshot& snapshot, TimePoint now) const {
        if (snapshot.kernels.size() < knobs_.crowd) return false;
        return std::ranges::all_of(snapshot.kernels, [&](const Kernel& each) {
            return each.managed && each.priority == snapshot.kernels.front().priority &&
                   seems_short(each, knobs_.short_kernel, now);
        });
    }

    using Widths = std::map<LaunchName, int>;  // SMs that a kernel needs

    // By priority, then by T_r.
    std::vector<Candidate> candidates(const Snapshot& snapshot, Wanted& wanted) {
        const Resources limits = limits_of(snapshot.device);
        std::vector<Candidate> queue;
        for (const Kernel& kernel : snapshot.kernels) {
            // The guest is tracked to its end.
            if (kernel.stoppable() && (!kernel.last_taken || kernel.name() == guest_)) {
                const int most = most_ctas(kernel, limits);
                queue.push_back({&kernel, remaining_ns(kernel, snapshot.device, most), most});
            } else {
                wanted.resume(kernel, "runs as it is");
            }
        }
        std::ranges::stable_sort(queue, [](const Candidate& a, const Candidate& b) {
            if (a.kernel->priority != b.kernel->priority) return a.kernel->priority > b.kernel->priority;
            return a.left_ns < b.left_ns;
        });
        return queue;
    }

    // Whether all blocks of the first kernel find room beside the second, while all others wait.
    bool fits_beside(const std::vector<Candidate>& queue, const Device& device) const {
        if (!knobs_.spatial || queue.size() < 2) return false;
        const Kernel &urgent = *queue[0].kernel, &other = *queue[1].kernel;
        if (urgent.priority == other.priority || urgent.blocks == 0 || other.usual_ctas == 0 ||
            urgent.own_sms)
            return false;
        for (size_t i = 2; i < queue.size(); ++i) {
            if (queue[i].kernel->state != Kernel::State::kWaiting) return false;
        }
        // The driver configures the shared memory of a multiprocessor for all CTAs of a kernel, and changes
        // it only when the multiprocessor is empty.
        Resources free = limits_of(device);
        const Resources each = cta_of(other, free), mine = cta_of(urgent, free);
        free.shared_bytes =
            std::min(free.shared_bytes, each.shared_bytes * static_cast<uint32_t>(queue[1].most));
        const int theirs = std::min(other.usual_ctas, fitting(free, each));
        take(free, each, theirs);
        return urgent.blocks <=
               static_cast<uint64_t>(fitting(free, mine)) * static_cast<uint64_t>(device.sms());
    }

    // The first two kernels share all SMs; the others wait.
    void share(const std::vector<Candidate>& queue, Wanted& wanted) {
        const Kernel &urgent = *queue[0].kernel, &other = *queue[1].kernel;
        runs_[urgent.priority] = urgent.name();
        runs_[other.priority] = other.name();
        wanted.run(urgent, [&] { return fmt::format("finds room beside {}", other.tenant); });
        wanted.run(other, [&] { return fmt::format("has the GPU, and leaves room for {}", urgent.tenant); });
        for (size_t i = 2; i < queue.size(); ++i)
            wanted.wait(*queue[i].kernel, [&] { return why_not(*queue[i].kernel, urgent); });
    }

    bool goes_well(const std::vector<Candidate>& queue, TimePoint now, Wanted& wanted) {
        const Kernel &urgent = *queue[0].kernel, &other = *queue[1].kernel;
        const std::pair both(urgent.id, other.id);
        if (crowded_.contains(both)) return false;
        // Time in which it does not run does not count.
        if (guest_ != urgent.name() || urgent.state != Kernel::State::kRunning) {
            guest_ = urgent.name();
            host_ = other.id;
            guest_until_ = now + nanoseconds(queue[0].left_ns + preemption_ns(other));
        }
        // It had another host for part of its time.
        if (host_ != other.id) return true;
        if (now < guest_until_) {
            wanted.ask_again(guest_until_ - now);
            return true;
        }
        crowded_.note(both);
        return false;
    }

    using Candidates = std::vector<Candidate>::iterator;

    // Moves the kernel that goes first among kernels of one priority to the front.
    void to_front(Candidates begin, Candidates end, TimePoint now, Wanted& wanted) {
        const int priority = begin->kernel->priority;
        std::vector<const Kernel*> kernels;
        Candidates runs = end;
        for (auto each = begin; each != end; ++each) {
            kernels.push_back(each->kernel);
            if (each->kernel->name() == runs_[priority]) runs = each;
        }
        const Kernel* impatient = aging(priority).boosted(kernels, now);
        aging(priority).ask_again(wanted, kernels, now);
        Candidates first = begin;
        if (impatient)
            first = std::find_if(begin, end, [&](const Candidate& each) { return each.kernel == impatient; });
        else if (runs != end && runs->left_ns <= begin->left_ns + preemption_ns(*runs->kernel))
            first = runs;
        std::rotate(begin, first, first + 1);
    }

    // Whether all others have doors, so that SMs which the first kernel leaves would be idle.
    static bool doors_wait(const std::vector<Candidate>& queue) {
        return queue.size() > 1 && std::all_of(queue.begin() + 1, queue.end(),
                                               [](const Candidate& each) { return each.kernel->has_door; });
    }

    // Whether the second kernel waits for the first instead of using the remaining SMs.
    bool soon_over(const std::vector<Candidate>& queue, const Device& device, TimePoint now, Wanted& wanted) {
        if (queue.size() < 2) return false;
        const Kernel &urgent = *queue[0].kernel, &other = *queue[1].kernel;
        const int sms = device.sms();
        if (urgent.priority == other.priority || needed(queue[0], sms, widths_, false) == sms) return false;
        return short_job_bypass_.is_waited_for(urgent, queue[0].left_ns, other, now, wanted);
    }

    // `whole`: no kernel runs beside the first.
    void place(const std::vector<Candidate>& queue, const Device& device, bool whole, Wanted& wanted) {
        const int sms = device.sms();
        const Widths before = std::exchange(widths_, {});
        const Kernel* last = nullptr;
        int next = 0;
        for (const Candidate& each : queue) {
            const Kernel& kernel = *each.kernel;
            LaunchName& runs = runs_[kernel.priority];
            if (!last || last->priority != kernel.priority) runs = {};
            last = &kernel;
            if (next == sms || (next > 0 && kernel.has_door)) {
                wanted.wait(kernel, [&] { return why_not(kernel, *queue.front().kernel); });
                continue;
            }
            if (runs == LaunchName{}) runs = kernel.name();
            const int need = whole ? sms : needed(each, sms, before, queue.size() == 1);
            const int count = std::min(need, sms - next);
            if (queue.size() > 1 && !whole) widths_[kernel.name()] = need;
            if (next > 0) short_job_bypass_.gave_places();
            Quota table;
            if (count < sms) {
                table.assign(static_cast<size_t>(sms), 0);
                const int ctas =
                    next > 0 && kernel.usual_ctas ? std::min(each.most, kernel.usual_ctas) : each.most;
                std::fill_n(table.begin() + next, count, static_cast<uint8_t>(ctas));
            }
            wanted.run(kernel, table, 0, [&] {
                return count == sms ? fmt::format("has the GPU (priority {})", kernel.priority)
                                    : fmt::format("has SMs {} to {} (priority {})", next, next + count - 1,
                                                  kernel.priority);
            });
            next += count;
        }
    }

    int needed(const Candidate& candidate, int sms, const Widths& before, bool alone) const {
        const Kernel& kernel = *candidate.kernel;
        if (const auto found = before.find(kernel.name()); found != before.end()) return found->second;
        if (alone || kernel.has_door || !kernel.blocks || kernel.last_taken || kernel.own_sms) return sms;
        const auto each = static_cast<uint64_t>(candidate.most);
        const uint64_t just = (blocks_left(kernel) + each - 1) / each;
        return static_cast<int>(std::clamp<uint64_t>(just + static_cast<uint64_t>(knobs_.extra_sms), 1,
                                                     static_cast<uint64_t>(sms)));
    }

    static std::string why_not(const Kernel& kernel, const Kernel& first) {
        if (kernel.priority < first.priority)
            return fmt::format("stopped for {} (priority {} over {})", first.tenant, first.priority,
                               kernel.priority);
        return fmt::format("{} goes first: of the same priority, and less is left of it", first.tenant);
    }

    HpfKnobs knobs_;
    std::map<int, LaunchName> runs_;  // K_r, by priority
    LaunchName guest_{};              // the kernel that found room
    uint64_t host_ = 0;               // the stream beside it
    TimePoint guest_until_{};
    Recent<std::pair<uint64_t, uint64_t>> crowded_;  // streams that did not go well together
    ShortJobBypass short_job_bypass_;
    Widths widths_;  // of the kernels that have SMs
};

}  // namespace

std::unique_ptr<Policy> make_hpf(const HpfKnobs& knobs) { return std::make_unique<Hpf>(knobs); }

}  // namespace smt::runtime::schedule
