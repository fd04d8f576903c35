// When launches ran on the GPU, for the journal (SMT_JOURNAL=times): an event on each side of a
// launch, and an anchor event whose time on our own clock is known.
//
// Finished launches are looked for at later launches, and all that is left at clear(), so an entry
// has its times some time after the launch, at the latest when the session ends. Times of events
// are floats of milliseconds: the anchor is renewed often enough to keep them sharp.
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

namespace smt::runtime::server::handlers {

class LaunchTimes {
public:
    explicit LaunchTimes(const DriverApi& driver) : driver_(driver) {}
    ~LaunchTimes() { clear(); }
    LaunchTimes(const LaunchTimes&) = delete;
    LaunchTimes& operator=(const LaunchTimes&) = delete;

    static bool wanted();  // SMT_JOURNAL=times

    // Around a launch; before() gives null when there can be no times. after() takes the event over.
    CUevent before(CUstream stream);
    void after(CUevent start, CUstream stream, journal::Writer& journal, uint64_t sequence);
    void clear();  // waits for all that is pending

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

}  // namespace smt::runtime::server::handlers
