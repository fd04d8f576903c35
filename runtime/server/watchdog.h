// Ends tenants whose kernels do not end: those with a limit (SMT_KERNEL_LIMIT, kernel in SMT_LIMITS), when a
// launch has run for longer without progress (kernel_watch.h).
//
//   1. The tenant's programs get CUDA_ERROR_LAUNCH_TIMEOUT from all calls. Its launches that wait are
//      dropped, and those that can be stopped get no further block.
//   2. If its blocks in hand end, that is all: no other tenant has noticed anything.
//   3. If they do not, the device ends the tenant's work if it can. Else the other sessions go to the
//      standby, and this process ends with the kernel. Without a standby all sessions end.
//
// On a GPU some calls wait for all work, and keep other calls out of the driver meanwhile, those of this
// class, too (device/cuda/context_wide.h). So they are held back while a launch with a limit makes no
// progress.
//
// For the main thread, without the server's lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/server/kernel_watch.h"

namespace smt::runtime::server {

class Server;

class Watchdog {
public:
    explicit Watchdog(Server& server) : server_(server) {}
    void look();  // several times a second

private:
    using Clock = std::chrono::steady_clock;
    struct Case {
        uint32_t session = 0;
        std::string kernel;         // "kernel spin of tenant a (x, pid 1) has run for 2.2 s without progress"
        Clock::time_point until{};  // then its work is ended by force, or all sessions are
        bool forced = false;
        bool awaits_standby = false;
    };
    void look_at_kernels();
    void begin(const KernelWatch::Overdue& overdue);
    void go_on();
    void force();

    Server& server_;
    KernelWatch watch_;
    std::optional<Case> case_;  // one at a time
    bool holds_ = false;        // Device::hold_wide_calls()
};

}  // namespace smt::runtime::server
