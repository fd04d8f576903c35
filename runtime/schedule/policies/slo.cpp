// Slo: a service says how long its requests may take (Target), and best-effort tenants, those without a
// target, get all that leaves that true.
//
// Beside a request best-effort tenants work at one of six levels: not at all; on an eighth, a quarter, a half
// or three quarters of the multiprocessors; or on all. A service that answers one request at a time leaves
// most multiprocessors idle, so it is slowed down little by work on the others. By how much depends on both
// programs, and it is learnt from the service's requests (level_control.h), for each service and each set of
// best-effort tenants that have work.
//
//     between requests   on all multiprocessors
//     level 0            stopped, as under policy priority
//     levels 1 to 4      what is launched from the request's begin on keeps to so many multiprocessors
//     level 5            on all, but with little launched ahead
//
// A move to other multiprocessors is no stop: launches that are with the driver go on where they are. So
// little is with the driver (`ahead`), except at level 0, where stops are short.
//
// A request is late if it takes longer than its target: `p99`, or `slowdown` times the 99th percentile that
// its kind has by itself (own_time.h). That is learnt from requests with no best-effort work beside them, or
// with all of it stopped, as it is at the beginning, behind a request of a kind that is not known, and at one
// request of `between_samples`. One request of a
// hundred may be late. Requests that came out as one count as several by their launches (requests.h).
//
// Of several services each keeps best-effort tenants to its own level while it has a request. The lowest
// level counts. Services do not restrict each other.
//
// A request that is late while it is under way has the rest of its time at level 0. Otherwise a level that is
// tried and far too high would make all requests that come meanwhile late.
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

constexpr int kEighths[] = {1, 2, 4, 6};  // of the multiprocessors, at levels 1 to 4
constexpr int kAll = static_cast<int>(std::size(kEighths)) + 1;
constexpr size_t kMostKnown = 64;  // companies; the oldest is forgotten
constexpr double kLate = 1.001;    // part of what is allowed
constexpr double kUsual = 0.2;     // quantile of launches that is one request, if some came out as several

// On so many multiprocessors; 0: none, at level 0, or all of them.
int multiprocessors_at(int level, const Device& device) {
    if (level == 0) return 0;
    if (level == kAll) return device.multiprocessors;
    return std::max(1, device.multiprocessors * kEighths[level - 1] / 8);
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
        for (int level = 1; level < kAll; ++level) all.push_back(multiprocessors_at(level, device));
        all.erase(std::unique(all.begin(), all.end()), all.end());
        return all;
    }

    void want(const Snapshot& snapshot, TimePoint now, Wanted& wanted) override {
        note_services(snapshot);
        note_best_effort(snapshot, now);
        for (Party& party : parties_) note_requests(party, snapshot, now, wanted);
        const int level = level_now(now);
        for (const Kernel& kernel : snapshot.kernels) {
            if (find(kernel.session))
                wanted.resume(kernel, "it has a target");
            else
                keep_to(level, kernel, snapshot.device, wanted);
        }
        for (const Party& party : parties_) {
            if (const auto after = party.requests.changes_after(now)) wanted.ask_again(*after);
            if (party.requests.at_work(now) && party.level > 0) wanted.ask_again(knobs_.look);
        }
    }

private:
    // A service. Its own times are lost with its session; levels stay.
    struct Party {
        Service service;
        Requests requests;
        OwnTime own = {};
        int seen = 0;                        // requests
        int usual = 0;                       // level of its requests
        int level = 0;                       // of the request under way
        bool beside = false;                 // best-effort tenants had work beside it
        bool lower = false;                  // another service had them at a lower level
        bool late = false;                   // it is, while it is under way
        bool unknown = false;                // what the last one takes by itself
        TimePoint look_again{};              // whether it is
        bool sample = false;                 // it is one for the time by itself
        int since_sample = 0;                // requests
        std::string company = {};            // at its begin
        std::deque<uint64_t> launches = {};  // of the last requests
        std::deque<Duration> times = {};     // likewise
        std::deque<double> parts = {};       // of what was allowed
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
        if (over) learn(party, *over, snapshot.device, wanted);
        if (party.requests.has_begun()) begin(party, now);
        if (!party.requests.under_way()) return;
        party.beside |= std::any_of(snapshot.kernels.begin(), snapshot.kernels.end(),
                                    [&](const Kernel& kernel) { return !find(kernel.session); });
        if (party.level > 0 && party.beside && now >= party.look_again) {
            party.look_again = now + knobs_.look;
            party.late = is_late(party, now);
            if (party.late) party.level = 0;
        }
        party.lower |= std::any_of(parties_.begin(), parties_.end(), [&](const Party& other) {
            return other.requests.at_work(now) && other.level < party.level;
        });
    }

    void begin(Party& party, TimePoint now) {
        party.company = company_at(now);
        party.beside = party.lower = party.late = false;
        party.look_again = {};
        party.level = party.usual = control(party).level();
        party.sample = party.service.target.slowdown > 0 && party.level > 0 &&
                       (party.unknown || ++party.since_sample >= knobs_.between_samples);
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
                                LevelControl(kAll, knobs_.level)})
            .control;
    }

    void learn(Party& party, const Request& request, const Device& device, Wanted& wanted) {
        if (++party.seen <= knobs_.first || request.launches == 0) return;
        if (!request.cut) keep(party.launches, request.launches);
        if ((party.level == 0 && !party.late) || !party.beside) party.own.note(request);
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

    static double ns(Duration of) { return std::chrono::duration<double, std::nano>(of).count(); }

    // ---- What best-effort tenants may do

    // The level that counts now; nothing: no service has a request.
    int level_now(TimePoint now) const {
        int level = kNoRequest;
        for (const Party& party : parties_)
            if (party.requests.at_work(now)) level = std::min(level, party.level);
        return level;
    }

    // Where all services have level 0, a stop is short if what it has to stop may be anything.
    bool goes_on_beside() const {
        return std::any_of(parties_.begin(), parties_.end(),
                           [](const Party& each) { return each.usual > 0; });
    }

    void keep_to(int level, const Kernel& kernel, const Device& device, Wanted& wanted) const {
        const int most = level > 0 && level < kAll ? multiprocessors_at(level, device) : 0;
        const Duration ahead = goes_on_beside() ? knobs_.ahead : Duration::zero();
        if (kernel.multiprocessors != most || kernel.ahead != ahead)
            wanted.confine({kernel.id,
                            most,
                            {},
                            most ? fmt::format("keeps to {} multiprocessors of {} beside a request", most,
                                               device.multiprocessors)
                                 : "all multiprocessors: no request restricts it",
                            true,
                            ahead});
        if (level == 0)
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
    static constexpr int kNoRequest = kAll + 1;

    const SloKnobs knobs_;
    std::list<Party> parties_;
    std::map<std::string, TimePoint> best_effort_;  // when it had work
    std::deque<Known> known_;
};

}  // namespace

std::unique_ptr<Policy> make_slo(const SloKnobs& knobs) { return std::make_unique<Slo>(knobs); }

}  // namespace smt::runtime::schedule
