// Slo: a service says how long its requests may take (Target), and best-effort tenants, those without a
// target, get all that leaves that true.
//
// They work at one of six levels. A service that answers one request at a time leaves most multiprocessors
// idle, so it is slowed down little by work on the others. By how much depends on both programs, and it is
// learnt from the service's requests (level_control.h), for each service and each set of best-effort tenants
// that have work.
//
//     level 0            stopped for each request, as under policy priority
//     levels 1 to 3      on a quarter, a half, or three quarters of the multiprocessors
//     level 4            on all, with little launched ahead (`ahead`)
//     level 5            on all, as under fifo
//
// Above level 0 a level holds between requests, too, until the service has had none for `sticky`. So moves to
// other multiprocessors are rare, and all that is with the driver is where it may be when a request begins. A
// service that pauses much leaves more at level 0 than a part of the multiprocessors would be: then that
// level is level 0.
//
// A request is late if it takes longer than its target: `p99`, or `slowdown` times the 99th percentile that
// its kind has by itself (own_time.h). That is learnt from requests with no best-effort work beside them, or
// with all of it stopped, as it is at the beginning, behind a request of a kind that is not known, and at one
// request of `between_samples`. One request of a
// hundred may be late. Requests that came out as one count as several by their launches (requests.h).
//
// Of several services each keeps best-effort tenants to its own level. The lowest level counts. Services do
// not restrict each other.
//
// A request that is late while it is under way has the rest of its time at level 0, if a stop is short
// (below level 5). Otherwise a level that is tried and far too high would make all requests that come
// meanwhile late.
//
// If requests are late even at level 0, the target cannot be kept; it stays there and says so.
//
// A best-effort tenant starves only where a service at level 0 has a request under way at all times. It works
// in all pauses of more than PauseKnobs::least, and beside requests wherever the target allows any.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <list>
#include <map>
#include <set>

#include "runtime/schedule/policies/own_time.h"
#include "runtime/schedule/policies/policies.h"

namespace smt::runtime::schedule {

namespace {

constexpr int kQuarters = 4;  // of the multiprocessors: so many as the number of the level
constexpr int kLimited = kQuarters, kFree = kLimited + 1;
constexpr int kStart = 2;
constexpr size_t kMostKnown = 64;  // companies; the oldest is forgotten
constexpr double kLate = 1.001;    // part of what is allowed
constexpr double kUsual = 0.2;     // quantile of launches that is one request, if some came out as several

// On so many multiprocessors; 0: none, at level 0.
int multiprocessors_at(int level, const Device& device) {
    if (level == 0) return 0;
    return std::max(1, device.multiprocessors * std::min(level, kQuarters) / kQuarters);
}

template <class Values>
auto quantile(const Values& values, double part) {
    std::vector sorted(values.begin(), values.end());
    const auto place = sorted.begin() + std::lround(part * static_cast<double>(sorted.size() - 1));
    std::nth_element(sorted.begin(), place, sorted.end());
    return *place;
}

class Slo final : public Policy {
public:
    explicit Slo(const SloKnobs& knobs) : knobs_(knobs) {}
    std::string_view name() const override { return "slo"; }
    Stops stops() const override { return Stops::kBestEffort; }
    std::vector<int> parts(const Device& device) const override {
        std::vector<int> all;
        for (int level = 1; level < kLimited; ++level) all.push_back(multiprocessors_at(level, device));
        all.erase(std::unique(all.begin(), all.end()), all.end());
        return all;
    }

    void want(const Snapshot& snapshot, TimePoint now, Wanted& wanted) override {
        note_services(snapshot);
        note_best_effort(snapshot, now);
        for (Party& party : parties_) note_requests(party, snapshot, now, wanted);
        const Stand stand = stand_now(snapshot.device, now);
        for (const Kernel& kernel : snapshot.kernels) {
            if (find(kernel.session))
                wanted.resume(kernel, "it has a target");
            else
                keep_to(stand, kernel, snapshot.device, wanted);
        }
        for (const Party& party : parties_) {
            if (const auto after = party.requests.changes_after(now)) wanted.ask_again(*after);
            if (party.requests.at_work(now) && party.beside) wanted.ask_again(knobs_.look);
            if (party.active(now, knobs_)) wanted.ask_again(party.lately + knobs_.sticky - now);
        }
    }

private:
    static double ns(Duration of) { return std::chrono::duration<double, std::nano>(of).count(); }

    // A service. Its own times are lost with its session; levels stay.
    struct Party {
        Service service;
        Requests requests;
        OwnTime own = {};
        int seen = 0;                        // requests
        int usual = 0;                       // level of its requests
        int level = 0;                       // of the request under way: 0, or `usual`
        bool beside = false;                 // best-effort tenants had work beside it
        bool lower = false;                  // another service had them at a lower level
        bool late = false;                   // it is, while it is under way
        bool unknown = true;                 // what the last one takes by itself
        TimePoint began{}, lately{};         // of the last request; when there was one
        TimePoint ran{};                     // when best-effort tenants last were not stopped in it
        int not_stopped = 0;                 // requests in which that was late
        Duration busy{}, span{};             // of the last requests, and of the time from each to the next
        TimePoint look_again{};              // whether it is
        bool sample = false;                 // it is one for the time by itself
        int since_sample = 0;                // requests
        std::string company = {};            // at its begin
        std::deque<uint64_t> launches = {};  // of the last requests
        std::deque<Duration> times = {};     // likewise
        std::deque<double> parts = {};       // of what was allowed

        bool active(TimePoint now, const SloKnobs& knobs) const {
            return requests.under_way() || (seen > 0 && now - lately < knobs.sticky);
        }
        // The level as it takes effect: where pauses are more than a part of the multiprocessors is, a stop
        // for each request costs best-effort tenants less, and the service, too.
        int effective(int level) const {
            const double idle = span > Duration::zero() ? 1 - ns(busy) / ns(span) : 0;
            return level < kLimited && level <= idle * kQuarters ? 0 : level;
        }
    };

    Party* find(uint32_t session) {
        const auto found = std::find_if(parties_.begin(), parties_.end(),
                                        [&](const Party& each) { return each.service.session == session; });
        return found == parties_.end() ? nullptr : &*found;
    }

    void note_services(const Snapshot& snapshot) {
        std::erase_if(parties_, [&](const Party& party) {
            return std::none_of(snapshot.services.begin(), snapshot.services.end(),
                                [&](const Service& each) { return each.session == party.service.session; });
        });
        for (const Service& each : snapshot.services) {
            Party* party = find(each.session);
            if (!party) {
                PauseKnobs pause = knobs_.pause;
                if (each.target.p99 > Duration::zero()) pause.longest = 4 * each.target.p99;
                party = &parties_.emplace_back(Party{.service = each, .requests = Requests(pause)});
            }
            party->service = each;
        }
    }

    void note_best_effort(const Snapshot& snapshot, TimePoint now) {
        for (const Kernel& kernel : snapshot.kernels)
            if (!find(kernel.session)) best_effort_[kernel.tenant] = now;
    }
    // The best-effort tenants that have work or had some a moment ago, as a text.
    std::string company_at(TimePoint now) {
        std::erase_if(best_effort_, [&](const auto& each) { return now - each.second > knobs_.gone; });
        std::string names;
        for (const auto& [name, seen] : best_effort_) names += "\n" + name;
        return names;
    }

    void note_requests(Party& party, const Snapshot& snapshot, TimePoint now, Wanted& wanted) {
        const auto is_mine = [&](const Kernel& kernel) { return kernel.session == party.service.session; };
        const bool works = std::any_of(snapshot.kernels.begin(), snapshot.kernels.end(), is_mine);
        const auto over = party.requests.note(works, party.service.launches, now);
        if (over) learn_from(party, *over, snapshot.device, wanted);
        if (party.requests.has_begun()) begin(party, now);
        if (!party.requests.under_way()) return;
        party.lately = now;
        if (std::any_of(snapshot.kernels.begin(), snapshot.kernels.end(), [&](const Kernel& kernel) {
                return !find(kernel.session) && kernel.state != Kernel::State::kWaiting;
            }))
            party.ran = now;
        party.beside |= std::any_of(snapshot.kernels.begin(), snapshot.kernels.end(),
                                    [&](const Kernel& kernel) { return !find(kernel.session); });
        if (party.level > 0 && party.level < kFree && party.beside && now >= party.look_again) {
            party.look_again = now + knobs_.look;
            party.late = is_late(party, now);
            if (party.late) party.level = 0;
        }
        party.lower |= std::any_of(parties_.begin(), parties_.end(), [&](const Party& other) {
            return other.active(now, knobs_) && other.level < party.level;
        });
    }

    void begin(Party& party, TimePoint now) {
        // A long pause says little of the next ones.
        if (party.seen > 0) party.span += std::min(now - party.began, knobs_.sticky);
        party.began = now;
        party.company = company_at(now);
        party.beside = party.lower = party.late = false;
        party.look_again = party.ran = {};
        party.usual = control(party).level();
        party.level = party.effective(party.usual);
        const bool due =
            party.unknown || (party.usual < kFree && ++party.since_sample >= knobs_.between_samples);
        party.sample = party.service.target.slowdown > 0 && party.level > 0 && due;
        if (!party.sample) return;
        party.since_sample = 0;
        party.level = 0;
    }

    // ---- What is learnt

    LevelControl& control(const Party& party) {
        const Target& target = party.service.target;
        const auto found = std::find_if(known_.begin(), known_.end(), [&](const Known& each) {
            return each.tenant == party.service.tenant && each.company == party.company &&
                   each.p99 == target.p99 && each.slowdown == target.slowdown;
        });
        if (found != known_.end()) return found->control;
        if (known_.size() >= kMostKnown) known_.pop_front();
        return known_
            .emplace_back(Known{party.service.tenant, party.company, target.p99, target.slowdown,
                                LevelControl(kFree, knobs_.level, kStart)})
            .control;
    }

    void learn_from(Party& party, const Request& request, const Device& device, Wanted& wanted) {
        party.busy += request.busy;
        if (party.span > knobs_.sticky) party.busy /= 2, party.span /= 2;  // older ones count less
        if (++party.seen <= knobs_.first || request.launches == 0) return;
        if (!request.cut) keep(party.launches, request.launches);
        if (was_by_itself(party, request)) party.own.note(request);
        Duration time{};
        const std::optional<double> part = part_of_allowed(party, request, &time);
        party.unknown = !part;
        if (part) {
            keep(party.times, time);
            keep(party.parts, *part);
            const bool late = party.late || *part > 1;
            const bool counts = party.beside && !party.sample && (!party.lower || late);
            if (counts) control(party).note(late ? std::max(*part, kLate) : *part);
        }
        party.usual = control(party).level();
        wanted.tell(attained(party, device));
    }

    // Best-effort tenants had no work, or were soon stopped. Where they never are, that is what there is.
    bool was_by_itself(Party& party, const Request& request) const {
        if (!party.beside) return true;
        if (party.level > 0 || party.late) return false;
        const Duration most = std::max<Duration>(knobs_.stops, request.time / 8);
        return party.ran - party.began <= most || ++party.not_stopped > knobs_.not_stopped;
    }

    // Of one request, if some came out as several; 0: not known.
    static uint64_t usual_launches(const Party& party) {
        return party.launches.empty() ? 0 : quantile(party.launches, kUsual);
    }

    // The request under way. If it has more launches than one, as many again as one are to be expected.
    bool is_late(const Party& party, TimePoint now) const {
        Request request = party.requests.so_far(party.service.launches, now);
        request.cut = true;
        if (const uint64_t usual = usual_launches(party))
            request.launches = std::max<uint64_t>(1, (request.launches + usual - 1) / usual) * usual;
        Duration time{};
        return part_of_allowed(party, request, &time).value_or(0) > 1;
    }

    // How much of what it may take a request took. Nothing: that is not known yet.
    std::optional<double> part_of_allowed(const Party& party, const Request& request, Duration* time) const {
        const Target& target = party.service.target;
        double part = 0;
        *time = request.busy;
        if (target.slowdown > 0) {
            const std::optional<Duration> own = party.own.tail(request);
            if (!own || *own <= Duration::zero()) return std::nullopt;
            part = ns(request.busy) / (ns(*own) * target.slowdown);
        }
        if (target.p99 > Duration::zero()) {
            const uint64_t usual = usual_launches(party);
            const double count = usual ? std::max(1.0, std::round(static_cast<double>(request.launches) /
                                                                  static_cast<double>(usual)))
                                       : 1;
            *time = count > 1 ? std::chrono::duration_cast<Duration>(request.busy / count) : request.time;
            part = std::max(part, ns(*time) / ns(target.p99));
        }
        return part;
    }

    template <class Value>
    void keep(std::deque<Value>& values, Value value) const {
        values.push_back(value);
        if (values.size() > knobs_.shown) values.pop_front();
    }

    Attained attained(const Party& party, const Device& device) {
        Attained said{.session = party.service.session};
        said.multiprocessors = multiprocessors_at(party.usual, device);
        if (party.parts.empty()) return said;
        said.state = control(party).kept() ? Attained::State::kKept : Attained::State::kNotKept;
        said.seen_p99 = quantile(party.times, 0.99);
        said.headroom = 1 - quantile(party.parts, 0.99);
        return said;
    }

    // ---- What best-effort tenants may do

    struct Stand {
        bool stop = false;
        int multiprocessors = 0;  // 0: all
        Duration ahead{};         // 0: no limit; or kLongStops
    };
    // What counts now, of all services.
    Stand stand_now(const Device& device, TimePoint now) const {
        Stand stand;
        int lowest = kFree, active = 0, free = 0;
        for (const Party& party : parties_) {
            if (!party.active(now, knobs_)) continue;
            if (party.requests.at_work(now)) stand.stop |= party.level == 0;
            const int level = party.effective(party.usual);
            if (level > 0) lowest = std::min(lowest, level);
            ++active;
            free += level == kFree;
        }
        if (lowest < kLimited) stand.multiprocessors = multiprocessors_at(lowest, device);
        if (lowest == kLimited) stand.ahead = knobs_.ahead;
        if (active > 0 && free == active) stand.ahead = Confinement::kLongStops;
        return stand;
    }

    static void keep_to(const Stand& stand, const Kernel& kernel, const Device& device, Wanted& wanted) {
        const int most = stand.multiprocessors;
        if (kernel.multiprocessors != most || kernel.ahead != stand.ahead)
            wanted.confine({kernel.id,
                            most,
                            {},
                            most ? fmt::format("keeps to {} multiprocessors of {} beside a service", most,
                                               device.multiprocessors)
                                 : "all multiprocessors: no service restricts it",
                            true,
                            stand.ahead});
        if (stand.stop)
            wanted.wait(kernel, [&] {
                return fmt::format("{} for a request", kernel.stoppable() ? "stopped" : "held back");
            });
        else
            wanted.resume(kernel, "goes on: no request wants it stopped");
    }

    struct Known {
        std::string tenant, company;
        Duration p99{};
        double slowdown = 0;
        LevelControl control;
    };

    const SloKnobs knobs_;
    std::list<Party> parties_;
    std::map<std::string, TimePoint> best_effort_;  // when it had work
    std::deque<Known> known_;
};

}  // namespace

std::unique_ptr<Policy> make_slo(const SloKnobs& knobs) { return std::make_unique<Slo>(knobs); }

}  // namespace smt::runtime::schedule
