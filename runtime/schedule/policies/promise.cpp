#include "runtime/schedule/policies/promise.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace smt::runtime::schedule {

namespace {

constexpr double kUsual = 0.2;  // quantile of launches that is one request, if some came out as several

Duration of_ns(double ns) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::nano>(ns));
}

template <class Values>
auto quantile(const Values& values, double part) {
    std::vector sorted(values.begin(), values.end());
    const auto place = sorted.begin() + std::lround(part * static_cast<double>(sorted.size() - 1));
    std::nth_element(sorted.begin(), place, sorted.end());
    return *place;
}

PauseKnobs pauses(const Service& service, PauseKnobs knobs) {
    if (service.target.p99 > Duration::zero()) knobs.longest = 4 * service.target.p99;
    return knobs;
}

}  // namespace

Promise::Promise(const Service& service, const SloKnobs& knobs)
    : knobs_(knobs), service_(service), requests_(pauses(service, knobs.pause)) {}

void Promise::restart() { requests_ = Requests(pauses(service_, knobs_.pause)); }

std::optional<Promise::Judgement> Promise::learn(const Request& request, bool by_itself) {
    if (++seen_ <= knobs_.first || request.launches == 0) return std::nullopt;
    if (!request.cut) keep(launches_, request.launches);
    if (by_itself) own_.note(request);
    const std::optional<Judgement> judged = judge(request);
    if (!judged) return judged;
    keep(times_, judged->time);
    keep(parts_, judged->part);
    return judged;
}

// Of one request, if some came out as several; 0: not known.
uint64_t Promise::usual_launches() const { return launches_.empty() ? 0 : quantile(launches_, kUsual); }

double Promise::requests_in(const Request& request) const {
    const uint64_t usual = usual_launches();
    if (!usual) return 1;
    return std::max(1.0, std::round(static_cast<double>(request.launches) / static_cast<double>(usual)));
}

std::optional<Promise::Judgement> Promise::judge(const Request& request) const {
    const Target& target = service_.target;
    Judgement judged{0, request.busy};
    if (target.slowdown > 0) {
        const std::optional<Duration> own = own_.tail(request);
        if (!own || *own <= Duration::zero()) return std::nullopt;
        judged.part = ns_of(request.busy) / (ns_of(*own) * target.slowdown);
    }
    if (target.p99 > Duration::zero()) {
        const double count = requests_in(request);
        judged.time = count > 1 ? of_ns(ns_of(request.busy) / count) : request.time;
        judged.part = std::max(judged.part, ns_of(judged.time) / ns_of(target.p99));
    }
    return judged;
}

// Of the request under way, as far as can be told. If it has more launches than one, as many again as one are
// to be expected.
Request Promise::expected(TimePoint now) const {
    Request request = requests_.so_far(service_.launches, now);
    request.cut = true;
    if (const uint64_t usual = usual_launches())
        request.launches = std::max<uint64_t>(1, (request.launches + usual - 1) / usual) * usual;
    return request;
}

bool Promise::is_late(TimePoint now) const {
    const std::optional<Judgement> judged = judge(expected(now));
    return judged && judged->part > 1;
}

// Time that such a request may take, without pauses.
std::optional<Duration> Promise::allowed(const Request& request) const {
    const Target& target = service_.target;
    std::optional<Duration> most;
    if (target.slowdown > 0) {
        const std::optional<Duration> own = own_.tail(request);
        if (!own) return std::nullopt;
        most = of_ns(ns_of(*own) * target.slowdown);
    }
    if (target.p99 > Duration::zero()) {
        const Duration whole = of_ns(ns_of(target.p99) * requests_in(request));
        most = most ? std::min(*most, whole) : whole;
    }
    return most;
}

Duration Promise::margin(TimePoint now) const {
    const Request request = expected(now);
    const std::optional<Duration> own = own_.tail(request), most = allowed(request);
    return own && most ? std::max(Duration::zero(), *most - *own) : Duration::zero();
}

std::optional<Duration> Promise::rest(TimePoint now) const {
    const Request request = expected(now);
    const std::optional<Duration> own = own_.tail(request), most = allowed(request);
    if (!own || !most || *own <= Duration::zero() || request.launches == 0) return std::nullopt;
    const auto all = static_cast<double>(request.launches);
    const uint64_t before = std::min(service_.over, requests_.over_before());
    const double over = static_cast<double>(service_.over - before) / all;
    const double on_pace = ns_of(request.busy) / ns_of(*own);
    const double done = std::clamp(on_pace, std::min(1.0, over), std::min(1.0, over + 1 / all));
    return *most - *own - (request.busy - of_ns(done * ns_of(*own)));
}

Duration Promise::seen_p99() const { return quantile(times_, 0.99); }
double Promise::headroom() const { return 1 - quantile(parts_, 0.99); }

}  // namespace smt::runtime::schedule
