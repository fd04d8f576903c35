// What the work of a stream counts as: GPU time that its tenant has received (gpu_time.h), GPU time of each
// kernel (kernel_times.h), and work of a service (activity.h).
//
// Not thread-safe: guarded by its stream's lock.
#pragma once

#include <memory>

#include "runtime/dispatch/gpu_time.h"
#include "runtime/dispatch/kernel_times.h"
#include "runtime/dispatch/tenants.h"
#include "runtime/dispatch/unmanaged.h"
#include "runtime/dispatch/work.h"

namespace smt::runtime::dispatch {

class Dispatcher;

class Account {
public:
    Account(Dispatcher& dispatcher, Tenant& tenant);
    ~Account() { set_at_work(false); }
    Account(const Account&) = delete;
    Account& operator=(const Account&) = delete;

    bool watches_ends() const { return times_ != nullptr; }  // of all launches
    // The blocks of the launch all run at once. Asks the driver, so only where watches_ends().
    bool one_wave(const UnmanagedLaunch& launch);
    void launched();  // by the program
    // So many blocks of the work are over. `whole`: it was not stopped within. `ends`: no block is left.
    void over(const Work& work, uint64_t blocks, bool whole, bool ends);
    void over(const UnmanagedSide::Flight& flight);
    // Accounts for that. `at_work`: the GPU has work of the stream.
    void settle(bool at_work);
    // Fills in what the tenant has received. `next`: the launch that runs; null: none that is known.
    void describe(const Work* next, schedule::Kernel* kernel);
    void write_times(uint64_t stream);  // that have changed, to the journal
    void forget_code();

    // Of a service: the stream has work, as a policy sees it.
    bool of_service() const { return tenant_.target.any(); }
    bool at_work() const { return at_work_; }
    void set_at_work(bool at_work);

private:
    void end_launch();

    Dispatcher& dispatcher_;
    Tenant& tenant_;
    GpuTime gpu_time_;
    const std::unique_ptr<KernelTimes> times_;  // null: not asked for
    bool at_work_ = false;                      // as the service's activity has it
};

}  // namespace smt::runtime::dispatch
