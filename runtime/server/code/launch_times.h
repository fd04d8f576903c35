// Start and end of launches on the GPU, for the journal (SMT_JOURNAL=times): one event before and one after
// a launch, and an anchor event with a known time on the server's clock. Any thread.
//
// Later launches and clear() collect the completed ones, so an entry gets its times after the launch, at the
// latest when the session ends. Event times are floats of milliseconds, so the anchor is renewed often enough
// to keep them precise.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/journal/journal.h"

namespace smt::runtime::server {

class LaunchTimes {
public:
    explicit LaunchTimes(const DriverApi& driver) : driver_(driver) {}
    ~LaunchTimes() { clear(); }
    LaunchTimes(const LaunchTimes&) = delete;
    LaunchTimes& operator=(const LaunchTimes&) = delete;

    static bool wanted();  // SMT_JOURNAL=times

    // To be called before and after a launch. before() returns null if times are not available. after() takes
    // ownership of the event.
    CUevent before(CUstream stream);
    void after(CUevent start, CUstream stream, journal::Writer& journal, uint64_t sequence);
    void clear();  // waits for all pending launches

private:
    struct Anchor {
        const DriverApi& driver;
        CUevent event;
        uint64_t time_ns;
        ~Anchor() { driver.cuEventDestroy_v2(event); }
    };
    struct Pending {
        CUevent start;
        CUevent end;
        std::shared_ptr<Anchor> anchor;
        journal::Writer* journal;
        uint64_t sequence;
    };

    bool renew_anchor();
    CUevent take_event();
    void settle(const Pending& pending);
    void collect(bool wait);

    const DriverApi& driver_;
    std::mutex mutex_;
    CUstream stream_ = nullptr;  // the anchor's
    std::shared_ptr<Anchor> anchor_;
    std::vector<CUevent> idle_;
    std::deque<Pending> pending_;
};

}  // namespace smt::runtime::server
