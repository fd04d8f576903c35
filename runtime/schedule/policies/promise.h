// What a service was promised (Target), and how its requests stand to it.
//
// A request is late if it takes longer than it may: `p99`, or `slowdown` times the 99th percentile that its
// kind has by itself (own_time.h). Requests that came out as one count as several by their launches
// (requests.h).
//
// While a request is under way it is known how far it is, by its launches that are over. So it is known by
// how much it is behind a slow request by itself, and how much more it may lose and still be in time:
//
//     pace   = own time * launches that are over / launches of its kind
//     behind = time so far - pace
//     rest   = (what it may take - own time) - behind
//
//     own time 5 ms, allowed 5.5 ms, 40 of 100 launches are over after 2.3 ms: pace 2 ms, behind 0.3 ms,
//     0.2 ms are left to lose
//
// Between two launches it is taken to keep its pace, up to the next one's end.
//
// Pure: the same calls give the same answers. Not thread-safe.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "runtime/schedule/policies/knobs.h"
#include "runtime/schedule/policies/own_time.h"
#include "runtime/schedule/requests.h"

namespace smt::runtime::schedule {

class Promise {
public:
    Promise(const Service& service, const SloKnobs& knobs);

    const Service& service() const { return service_; }
    void renew(const Service& service) { service_ = service; }  // the same session, now
    // The same session, after a time of which nothing is known: what was learnt stays.
    void restart();

    // At each look. Requests that are over now, oldest first.
    std::vector<Request> note(TimePoint now) { return requests_.note(service_, now); }
    const Requests& requests() const { return requests_; }

    // Of a request that is over. `by_itself`: nothing worked beside it.
    struct Judgement {
        double part = 0;  // of what it might take; above 1 it was late
        Duration time{};  // of one request, if several came out as one
    };
    // Nothing: what its kind takes by itself is not known yet, or the request does not count.
    std::optional<Judgement> learn(const Request& request, bool by_itself);

    bool is_late(TimePoint now) const;  // the request under way
    // How much more the request under way may lose. Nothing: not known.
    std::optional<Duration> rest(TimePoint now) const;
    Duration margin(TimePoint now) const;  // of the request under way: what it may lose in all; 0: not known

    // Of the last requests, for a status: at least one was judged.
    bool any() const { return !parts_.empty(); }
    Duration seen_p99() const;
    double headroom() const;

private:
    std::optional<Judgement> judge(const Request& request) const;
    double requests_in(const Request& request) const;
    uint64_t usual_launches() const;
    Request expected(TimePoint now) const;
    std::optional<Duration> allowed(const Request& request) const;
    template <class Value>
    void keep(std::deque<Value>& values, Value value) const {
        values.push_back(value);
        if (values.size() > knobs_.shown) values.pop_front();
    }

    const SloKnobs knobs_;
    Service service_;
    Requests requests_;
    OwnTime own_;
    int seen_ = 0;                   // requests
    std::deque<uint64_t> launches_;  // of the last requests
    std::deque<Duration> times_;     // likewise
    std::deque<double> parts_;       // likewise
};

}  // namespace smt::runtime::schedule
