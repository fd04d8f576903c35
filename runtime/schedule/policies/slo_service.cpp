#include "runtime/schedule/policies/slo_service.h"

#include <algorithm>

namespace smt::runtime::schedule {

void SloService::restart() {
    promise.restart();
    usual = level = 0;
    at_work = false;
    lately_.reset();
}

bool SloService::active(TimePoint now) const {
    return requests().under_way() || (lately_ && now - *lately_ < knobs_.sticky);
}

void SloService::begin(int learnt) {
    began = requests().began();
    beside = lower = late = false;
    spent_.reset();
    ran_ = {};
    level = usual = learnt;
    sample = would_sample();
    ++since_sample_;
    if (sample) level = since_sample_ = 0;
    begun_at_ = level;
}

bool SloService::would_sample() const {
    if (service().target.slowdown == 0 || usual == 0) return false;
    return unknown || (usual < kFree && since_sample_ + 1 >= knobs_.between_samples);
}

void SloService::look(TimePoint now, bool has_work, bool runs, Duration stop) {
    lately_ = now;
    if (runs && requests().at_work(now)) ran_ = now;
    beside |= has_work;
    stop_ = stop;
    if (!can_end()) return;
    const std::optional<Duration> left = rest(now);
    late = promise.is_late(now);
    if (!late && (!left || *left > Duration::zero())) return;
    spent_ = now;
    level = 0;
}

// A stop takes time, too; where it takes much of what there is, requests show whether that is enough.
std::optional<Duration> SloService::rest(TimePoint now) const {
    const std::optional<Duration> left = promise.rest(now);
    if (!left) return left;
    return *left - std::min(stop_, promise.margin(now) / 2);
}

Duration SloService::look_after(TimePoint now) const {
    if (!requests().under_way() || !can_end()) return *lately_ + knobs_.sticky - now;
    return std::clamp(rest(now).value_or(knobs_.look), knobs_.soonest_look, knobs_.look);
}

// Best-effort tenants had no work, or were soon stopped. Where they never are, that is what there is.
bool SloService::was_by_itself(const Request& request) {
    if (!beside) return true;
    if (begun_at_ > 0 || late) return false;
    const Duration most = std::max<Duration>(knobs_.stops, request.time / 8);
    return ran_ - began <= most || ++not_stopped_ > knobs_.not_stopped;
}

double SloService::part_at_level(const Request& request) const {
    if (!spent_ || request.time <= Duration::zero()) return 1;
    return std::min(
        1.0, std::chrono::duration<double>(*spent_ - began) / std::chrono::duration<double>(request.time));
}

}  // namespace smt::runtime::schedule
