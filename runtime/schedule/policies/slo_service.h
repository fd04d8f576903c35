// A service under slo: its promise, and at which level best-effort tenants work beside its request under way.
// Not thread-safe.
#pragma once

#include <optional>
#include <string>

#include "runtime/schedule/policies/promise.h"

namespace smt::runtime::schedule {

// Levels: so many quarters of the multiprocessors; all, with little launched ahead; all, as under fifo.
inline constexpr int kQuarters = 4, kLimited = kQuarters, kFree = kLimited + 1;

class SloService {
public:
    SloService(const Service& service, const SloKnobs& knobs) : promise(service, knobs), knobs_(knobs) {}

    const Service& service() const { return promise.service(); }
    const Requests& requests() const { return promise.requests(); }
    uint32_t session() const { return service().session; }
    void restart();  // the same session, after a time under another policy
    bool active(TimePoint now) const;

    // A request has begun beside `company`, for which so high a level is learnt.
    void begin(int learnt);
    // Of the request under way: best-effort tenants have work, some of it is not stopped, and the longest
    // stop takes so long. Ends its level when it has lost what it may lose.
    void look(TimePoint now, bool has_work, bool runs, Duration stop);
    Duration look_after(TimePoint now) const;  // until the next look; precondition: active()
    bool would_sample() const;                 // the next request has best-effort tenants stopped

    // Of a request that is over.
    bool was_by_itself(const Request& request);
    double part_at_level(const Request& request) const;
    bool counts() const { return beside && !sample && (!lower || late); }

    Promise promise;
    int usual = 0;             // level of its requests
    int level = 0;             // of the request under way: `usual`, or 0
    bool at_work = false;      // at the last call
    bool beside = false;       // best-effort tenants had work beside it
    bool lower = false;        // another service had them at a lower level
    bool late = false;         // it is, while it is under way
    bool unknown = true;       // what the last one takes by itself
    bool sample = false;       // it is one for the time by itself
    std::string company = {};  // best-effort tenants beside the last request, as a text
    TimePoint began{};         // the last request

private:
    bool can_end() const { return level > 0 && beside; }
    std::optional<Duration> rest(TimePoint now) const;

    const SloKnobs knobs_;
    int since_sample_ = 0;             // requests
    int begun_at_ = 0;                 // its level when it began
    std::optional<TimePoint> spent_;   // when it had lost what it may lose
    std::optional<TimePoint> lately_;  // when there was a request; nothing: not yet
    TimePoint ran_{};                  // when best-effort tenants last were not stopped in it
    int not_stopped_ = 0;              // requests in which that was late
    Duration stop_{};                  // of best-effort kernels beside it, the longest
};

}  // namespace smt::runtime::schedule
