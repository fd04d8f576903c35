// Slo: a service says how long its requests may take (Target), and best-effort tenants, those without a
// target, get all that leaves that true.
//
// They work at one of six levels beside a request. Which one is learnt from the service's requests
// (level_control.h), for each service and each set of best-effort tenants that have work. It begins with what
// policy priority does.
//
//     level 0            stopped for each request
//     levels 1 to 3      on a quarter, a half, or three quarters of the multiprocessors
//     level 4            on all, with little launched ahead (`ahead`)
//     level 5            on all, as under fifo
//
// docs/policies.md (slo) says what each level means for a request and for the others, what is learnt of
// requests by themselves, which launches ask (lets_begin()), and the reasons. When a request has lost what it
// may lose beside others (promise.h), the rest of it has level 0. Of several services each keeps best-effort
// tenants to its own level, and the lowest one counts.
//
// A best-effort tenant starves only where a service at level 0 has a request under way at all times. It works
// in all pauses of more than PauseKnobs::least, and beside requests wherever the target allows any.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <list>
#include <map>

#include "runtime/schedule/policies/policies.h"
#include "runtime/schedule/policies/slo_service.h"

namespace smt::runtime::schedule {

namespace {

constexpr size_t kMostKnown = 64;    // companies; the oldest is forgotten
constexpr double kJustLate = 1.001;  // part of what is allowed

// On so many multiprocessors; 0: none, at level 0.
int multiprocessors_at(int level, const Device& device) {
    if (level == 0) return 0;
    return std::max(1, device.multiprocessors * std::min(level, kQuarters) / kQuarters);
}

class Slo final : public Policy {
public:
    explicit Slo(const SloKnobs& knobs) : Policy({"slo", Stops::kBestEffort}), knobs_(knobs) {}
    bool leaves_alone() const override {
        return std::ranges::all_of(streams_, [&](const auto& each) { return each.second.as(stand_); });
    }
    // Of one name that has both kinds of sessions each launch asks.
    bool lets_begin(std::string_view tenant, int) const override {
        const bool best_effort = best_effort_.contains(tenant);
        bool is_service = false;
        for (const SloService& each : services_) {
            if (each.service().tenant != tenant) continue;
            if (best_effort || (!each.at_work && (each.usual < kLimited || each.would_sample())))
                return false;
            is_service = true;
        }
        if (is_service) return true;
        return best_effort && !stand_.stop && std::ranges::all_of(streams_, [&](const auto& each) {
                   return each.second.tenant != tenant || each.second.as(stand_);
               });
    }

    void recall(Policy& earlier) override {
        auto* const other = dynamic_cast<Slo*>(&earlier);
        if (!other) return;
        known_ = std::move(other->known_);
        best_effort_ = std::move(other->best_effort_);
        services_ = std::move(other->services_);
        for (SloService& each : services_) each.restart();
    }
    std::vector<int> parts(const Device& device) const override {
        std::vector<int> all;
        for (int level = 1; level < kLimited; ++level) all.push_back(multiprocessors_at(level, device));
        if (part_for_long_blocks(device)) all.push_back(part_for_long_blocks(device));
        std::ranges::sort(all);
        all.erase(std::unique(all.begin(), all.end()), all.end());
        return all;
    }

    void want(const Snapshot& snapshot, TimePoint now, Wanted& wanted) override {
        note_services(snapshot);
        note_best_effort(snapshot, now);
        for (SloService& each : services_) note_requests(each, snapshot, now, wanted);
        stand_ = stand_now(snapshot.device, now);
        for (const Kernel& kernel : snapshot.kernels) {
            if (find(kernel.session))
                wanted.resume(kernel, "it has a target");
            else
                keep_to_stand(kernel, snapshot.device, now, wanted);
        }
        for (const SloService& each : services_) {
            if (const auto after = each.requests().changes_after(now)) wanted.ask_again(*after);
            if (each.active(now)) wanted.ask_again(each.look_after(now));
        }
    }

private:
    // What best-effort tenants may do now.
    struct Stand {
        bool stop = false;
        int multiprocessors = 0;   // 0: all
        bool all_kernels = false;  // that applies to them, not only to unmanaged ones with long blocks
        Duration ahead{};          // 0: no limit; or kLongStops
    };
    // A best-effort stream, as it was last told.
    struct Stream {
        std::string tenant;
        Stand told = {};
        TimePoint seen{};
        bool as(const Stand& stand) const {
            return told.multiprocessors == stand.multiprocessors && told.all_kernels == stand.all_kernels &&
                   told.ahead == stand.ahead;
        }
    };
    struct Known {
        std::string tenant, company;
        Target target;
        LevelControl control;
    };

    int part_for_long_blocks(const Device& device) const {  // 0: they are not confined
        return device.multiprocessors < knobs_.kept_free
                   ? 0
                   : device.multiprocessors - device.multiprocessors / knobs_.kept_free;
    }
    SloService* find(uint32_t session) {
        const auto found = std::ranges::find(services_, session, &SloService::session);
        return found == services_.end() ? nullptr : &*found;
    }

    // ---- Who is there

    void note_services(const Snapshot& snapshot) {
        std::erase_if(services_, [&](const SloService& service) {
            return std::ranges::find(snapshot.services, service.session(), &Service::session) ==
                   snapshot.services.end();
        });
        for (const Service& each : snapshot.services) {
            if (SloService* const known = find(each.session))
                known->promise.renew(each);
            else
                services_.emplace_back(each, knobs_);
        }
    }

    void note_best_effort(const Snapshot& snapshot, TimePoint now) {
        for (const Kernel& kernel : snapshot.kernels) {
            if (find(kernel.session)) continue;
            best_effort_[kernel.tenant] = now;
            Stream& stream = streams_[kernel.id];
            stream.tenant = kernel.tenant;
            stream.seen = now;
        }
        std::erase_if(best_effort_, [&](const auto& each) { return now - each.second > knobs_.gone; });
        std::erase_if(streams_, [&](const auto& each) { return now - each.second.seen > knobs_.gone; });
    }

    // The best-effort tenants that have work or had some a moment ago, as a text.
    std::string company() const {
        std::string names;
        for (const auto& [name, seen] : best_effort_) names += "\n" + name;
        return names;
    }

    // ---- Requests, and what is learnt from them

    void note_requests(SloService& service, const Snapshot& snapshot, TimePoint now, Wanted& wanted) {
        bool beside = false, runs = false;
        Duration stop{};
        for (const Kernel& kernel : snapshot.kernels) {
            if (find(kernel.session)) continue;
            beside = true;
            runs |= kernel.state != Kernel::State::kWaiting;
            stop = std::max(stop, kernel.preemption.value_or(Duration::zero()));
        }
        for (const Request& over : service.promise.note(now))
            learn_from(service, over, snapshot.device, wanted);
        if (service.requests().has_begun()) {
            service.company = company();
            service.begin(control(service).level());
        }
        service.at_work = service.requests().at_work(now);
        if (!service.requests().under_way()) return;
        service.look(now, beside, runs, stop);
        service.lower |= std::ranges::any_of(services_, [&](const SloService& other) {
            return other.active(now) && other.level < service.level;
        });
    }

    LevelControl& control(const SloService& service) {
        const std::string& tenant = service.service().tenant;
        const Target& target = service.service().target;
        const auto found = std::ranges::find_if(known_, [&](const Known& each) {
            return each.tenant == tenant && each.company == service.company &&
                   each.target.p99 == target.p99 && each.target.slowdown == target.slowdown;
        });
        if (found != known_.end()) return found->control;
        if (known_.size() >= kMostKnown) known_.pop_front();
        return known_.emplace_back(Known{tenant, service.company, target, LevelControl(kFree, knobs_.level)})
            .control;
    }

    // A request that no decision saw had no level. It says nothing but how long it took.
    void learn_from(SloService& service, const Request& request, const Device& device, Wanted& wanted) {
        const auto judged = service.promise.learn(request, request.seen && service.was_by_itself(request));
        if (request.seen) service.unknown = !judged;
        if (judged && request.seen && service.counts()) {
            const bool late = service.late || judged->part > 1;
            control(service).note(late ? std::max(judged->part, kJustLate) : judged->part,
                                  service.part_at_level(request));
        }
        service.usual = control(service).level();
        wanted.tell(attained(service, device));
    }

    Attained attained(const SloService& service, const Device& device) {
        Attained said{.session = service.session()};
        said.multiprocessors = multiprocessors_at(service.usual, device);
        if (!service.promise.any()) return said;
        said.state = control(service).kept() ? Attained::State::kKept : Attained::State::kNotKept;
        said.seen_p99 = service.promise.seen_p99();
        said.headroom = service.promise.headroom();
        return said;
    }

    // ---- What best-effort tenants may do

    // Of all services.
    Stand stand_now(const Device& device, TimePoint now) const {
        Stand stand;
        int beside = kFree, between = kFree;  // the lowest levels of requests at work, and of all services
        bool any = false;
        for (const SloService& each : services_) {
            if (!each.active(now)) continue;
            any = true;
            between = std::min(between, each.usual);
            if (each.requests().at_work(now)) beside = std::min(beside, each.level);
        }
        if (!any) return stand;
        stand.stop = beside == 0;
        if (between == kFree)
            stand.ahead = stand.stop ? Duration::zero() : Confinement::kLongStops;
        else
            stand.multiprocessors = part_for_long_blocks(device);
        if (between == kLimited) stand.ahead = knobs_.ahead;
        if (beside > 0 && beside < kLimited) {
            stand.multiprocessors = multiprocessors_at(beside, device);
            stand.all_kernels = true;
            stand.ahead = knobs_.ahead;
        }
        return stand;
    }

    // What moves to other multiprocessors beside a request stops first.
    void keep_to_stand(const Kernel& kernel, const Device& device, TimePoint now, Wanted& wanted) {
        Stream& stream = streams_[kernel.id];
        const bool as_told =
            kernel.multiprocessors == stream.told.multiprocessors && kernel.ahead == stream.told.ahead;
        const bool same = as_told && stream.as(stand_);
        if (!same && stand_.all_kernels && kernel.state != Kernel::State::kWaiting) {
            if (!soon_over(kernel, now, wanted))
                wanted.wait(kernel, "moves to fewer multiprocessors for a request");
            return;
        }
        if (!same) {
            const int most = stand_.multiprocessors;
            wanted.confine(
                {kernel.id, most, stand_.all_kernels ? Duration::zero() : knobs_.long_block,
                 !most ? "all multiprocessors: no service restricts it"
                 : stand_.all_kernels
                     ? fmt::format("keeps to {} multiprocessors of {} beside a service", most,
                                   device.multiprocessors)
                     : fmt::format("long kernels keep to {} multiprocessors of {}: a service worked "
                                   "recently",
                                   most, device.multiprocessors),
                 stand_.all_kernels, stand_.ahead});
            stream.told = stand_;
        }
        if (stand_.stop)
            wanted.wait(kernel, [&] {
                return fmt::format("{} for a request", kernel.stoppable() ? "stopped" : "held back");
            });
        else
            wanted.resume(kernel, "goes on: no request wants it stopped");
    }

    // It is expected to end before the requests under way have lost a part of what they may lose.
    bool soon_over(const Kernel& kernel, TimePoint now, Wanted& wanted) const {
        if (!kernel.remaining || wanted.waits(kernel)) return false;
        for (const SloService& each : services_) {
            if (!each.requests().at_work(now)) continue;
            const auto most = std::chrono::duration_cast<Duration>(each.promise.margin(now) * knobs_.let_end);
            if (*kernel.remaining > most - (now - each.began)) return false;
        }
        wanted.ask_again(std::max(*kernel.remaining, knobs_.soonest_look));
        return true;
    }

    const SloKnobs knobs_;
    std::list<SloService> services_;
    std::map<std::string, TimePoint, std::less<>> best_effort_;  // tenants, and when they had work
    std::map<uint64_t, Stream> streams_;                         // by id: those that have had work lately
    Stand stand_;
    std::deque<Known> known_;
};

}  // namespace

std::unique_ptr<Policy> make_slo(const SloKnobs& knobs) { return std::make_unique<Slo>(knobs); }

}  // namespace smt::runtime::schedule
