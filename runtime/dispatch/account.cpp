#include "runtime/dispatch/account.h"

#include <algorithm>
#include <chrono>

#include "runtime/dispatch/dispatcher.h"

namespace smt::runtime::dispatch {

Account::Account(Dispatcher& dispatcher, Tenant& tenant)
    : dispatcher_(dispatcher),
      tenant_(tenant),
      gpu_time_(dispatcher.company(), tenant.received),
      times_(dispatcher.gpu_time() ? std::make_unique<KernelTimes>() : nullptr) {}

bool Account::one_wave(const UnmanagedLaunch& launch) {
    if (!times_ || !launch.function) return false;
    const int fits = times_->fits(dispatcher_.driver(), launch.function, launch.threads, launch.shared_bytes);
    return launch.blocks <=
           uint64_t{multiprocessors_of(tenant_, dispatcher_)} * static_cast<uint64_t>(std::max(fits, 0));
}

void Account::launched() {
    if (of_service()) tenant_.activity.launch();
}

void Account::end_launch() {
    if (of_service()) tenant_.activity.end_launch();
}

void Account::over(const Work& work, uint64_t blocks, bool whole, bool ends) {
    LaunchTime& alone = work.alone();
    gpu_time_.over(alone, blocks, whole, work.alike());
    if (ends) end_launch();
    if (!times_ || blocks == 0) return;
    times_->over({work.entry.name, static_cast<uint32_t>(work.entry.value)},
                 !work.graph && work.total <= uint64_t{work.fits} * multiprocessors_of(tenant_, dispatcher_),
                 alone.of(static_cast<double>(blocks)), ends);
}

void Account::over(const UnmanagedSide::Flight& flight) {
    gpu_time_.over_unmanaged(flight.key);
    end_launch();
    if (times_)
        times_->over({flight.name, flight.treatment}, flight.one_wave,
                     gpu_time_.expected_unmanaged(flight.key), true);
}

void Account::settle(bool at_work) {
    if (times_) times_->settle(at_work, dispatcher_.now());
    if (gpu_time_.needs_settling(at_work))
        gpu_time_.settle(at_work, dispatcher_.now(), tenant_.preemptible.load(std::memory_order_relaxed));
}

void Account::describe(const Work* next, schedule::Kernel* kernel) {
    const Received& received = tenant_.received;
    kernel->received = std::chrono::nanoseconds(received.ns.load(std::memory_order_relaxed));
    kernel->guessed = std::chrono::nanoseconds(received.guessed_ns.load(std::memory_order_relaxed));
    kernel->correction = received.correction.factor();
    kernel->corrections = received.correction.windows();
    kernel->receiving =
        gpu_time_.receiving(next ? &next->alone() : nullptr, next ? next->left() : 0, dispatcher_.now());
}

void Account::write_times(uint64_t stream) {
    if (!times_) return;
    times_->report([&](const KernelTimes::Which& which, const KernelTimes::Sum& sum) {
        dispatcher_.notes().gpu_time(tenant_, stream, which, sum);
    });
}

void Account::forget_code() {
    if (times_) times_->forget_code();
}

void Account::set_at_work(bool at_work) {
    if (at_work == at_work_) return;
    at_work_ = at_work;
    if (at_work)
        tenant_.activity.begins(dispatcher_.now());
    else
        tenant_.activity.ends(dispatcher_.now());
}

}  // namespace smt::runtime::dispatch
