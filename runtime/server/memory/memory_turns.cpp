// See memory_turns.h.
#include "runtime/server/memory/memory_turns.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace smt::runtime::server {

namespace {

constexpr double kNewest = 0.5;            // weight of the newest move in the speed
constexpr uint64_t kLeastTimed = 1 << 20;  // smaller moves say nothing of the speed

}  // namespace

MemoryTurns::Duration MemoryTurns::takes(uint64_t bytes) const {
    return std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(static_cast<double>(bytes) / speed_));
}

void MemoryTurns::follow(const std::vector<Program>& programs, TimePoint now) {
    std::map<uint32_t, Place> places;
    for (const Program& program : programs) {
        const auto known = places_.find(program.id);
        Place place = known == places_.end() ? Place{.worked = now} : known->second;
        if (program.works && !program.out) place.worked = now;
        place.out = program.out;
        if (!program.out) place.cut = {};  // it was to be moved, and was not
        const bool asks = program.asks != 0 || (program.out && program.works);
        if (!asks || !program.out) place.missing = 0;
        if (!asks) {
            place.asked = {};
        } else if (place.asked == TimePoint{}) {
            place.asked = now;
            place.order = ++orders_;
        }
        places.emplace(program.id, place);
    }
    places_ = std::move(places);
    if (credited_ != TimePoint{})
        credit_ = std::min(kMostCredit,
                           credit_ + std::chrono::duration_cast<Duration>((now - credited_) * for_calls_));
    credited_ = now;
}

// There and back again.
bool MemoryTurns::may_cut(const Program& requester, uint64_t needed) const {
    return for_calls_ > 0 && requester.out && places_.at(requester.id).was_idle &&
           takes(4 * needed) <= credit_;
}

std::vector<MemoryTurns::Candidate> MemoryTurns::candidates(const std::vector<Program>& programs,
                                                            const Program& requester, uint64_t needed,
                                                            TimePoint now) const {
    const Duration grace =
        std::clamp(std::chrono::duration_cast<Duration>(takes(2 * needed) * kGrace), kLeastGrace, kMostGrace);
    const bool cuts = may_cut(requester, needed);
    std::vector<Candidate> all;
    for (const Program& each : programs) {
        if (each.id == requester.id || each.stays || each.here == 0) continue;
        const Place& place = places_.at(each.id);
        const TimePoint idle = place.worked + grace;
        if (each.held)
            all.push_back({&each, 3, place.begun, now + kLeastGrace});
        else if (each.out)
            all.push_back({&each, 1, place.worked, now});
        else if (!each.works && idle <= now)
            all.push_back({&each, 2, place.worked, now});
        else
            all.push_back({&each, 3, place.begun,
                           cuts ? std::min(place.until, std::max(place.begun, place.came) + kLeastTurn)
                           : each.works ? place.until
                                        : std::min(place.until, idle)});
    }
    std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
        return std::tie(a.rank, a.since, a.program->id) < std::tie(b.rank, b.since, b.program->id);
    });
    return all;
}

// False: nothing that may be moved, now or later, would be enough. A program with an allocation that has no
// room whatever moves comes in without it, to be told.
bool MemoryTurns::serve(const std::vector<Program>& programs, const Program& requester, uint64_t free,
                        TimePoint now, Step* step) {
    if (!requester.out) return serve(programs, requester, requester.asks, free, now, step);
    if (requester.asks && serve(programs, requester, requester.away + requester.asks, free, now, step))
        return true;
    return serve(programs, requester, requester.away, free, now, step);
}

bool MemoryTurns::serve(const std::vector<Program>& programs, const Program& requester, uint64_t wanted,
                        uint64_t free, TimePoint now, Step* step) {
    *step = {.id = requester.id, .requester = requester.id, .again = now};
    if (requester.out) step->with = wanted - requester.away;
    if (wanted <= free) {
        step->what = requester.out ? Step::What::kIn : Step::What::kGrant;
        return true;
    }
    const uint64_t needed = wanted - free;
    uint64_t all = 0, ready = 0;
    TimePoint again = TimePoint::max();
    const std::vector<Candidate> from = candidates(programs, requester, needed, now);
    for (const Candidate& each : from) {
        all += each.program->here;
        if (each.from <= now)
            ready += each.program->here;
        else
            again = std::min(again, each.from);
    }
    if (all < needed) {
        step->what = Step::What::kRefuse;
        step->bytes = needed - all;
        return false;
    }
    if (ready < needed) {
        step->again = again;
        return true;
    }
    const auto first =
        std::find_if(from.begin(), from.end(), [&](const Candidate& each) { return each.from <= now; });
    step->what = Step::What::kOut;
    step->id = first->program->id;
    if (!first->program->out) {
        Place& place = places_.at(step->id);
        place.was_idle = first->rank == 2;
        place.cut = first->rank == 3 && place.until > now ? now : TimePoint{};
    }
    step->bytes = std::min(needed, first->program->here);
    step->last = requester.out && step->bytes == needed;
    step->ahead = ahead(requester, *first, step->bytes, now);
    return true;
}

uint64_t MemoryTurns::ahead(const Program& requester, const Candidate& from, uint64_t bytes,
                            TimePoint now) const {
    const Place& place = places_.at(requester.id);
    if (requester.out || !from.program->out || place.came + kGrowsOn < now) return 0;
    return std::min(place.grown - std::min(place.grown, bytes), from.program->here - bytes);
}

MemoryTurns::Step MemoryTurns::next(const std::vector<Program>& programs, uint64_t free, TimePoint now) {
    follow(programs, now);
    std::vector<const Program*> line;
    for (const Program& each : programs)
        if (places_.at(each.id).asked != TimePoint{}) line.push_back(&each);
    std::sort(line.begin(), line.end(), [&](const Program* a, const Program* b) {
        return places_.at(a->id).order < places_.at(b->id).order;
    });
    Step step;
    bool cut_waits = false;  // one whose turn a call has ended: before the next call
    for (const Program* requester : line) {
        const bool in_turn = !requester->out && places_.at(requester->id).until > now;
        const bool moves = !requester->stays && !requester->later;
        const bool cuts = !cut_waits && moves && may_cut(*requester, requester->away);
        cut_waits |= requester->out && moves && places_.at(requester->id).cut != TimePoint{};
        if (!in_turn && !cuts) continue;
        const bool served = serve(programs, *requester, free, now, &step);
        if (!served && requester->out) continue;  // as below
        if (step.what != Step::What::kNothing) return step;
    }
    for (const Program* requester : line) {
        if (requester->out && (requester->stays || requester->later)) continue;
        // One that is out and finds no room holds up no other; an allocation is told.
        const bool served = serve(programs, *requester, free, now, &step);
        if (requester->out) places_.at(requester->id).missing = served ? 0 : step.bytes;
        if (served || !requester->out) return step;
    }
    return {};
}

void MemoryTurns::moved(uint32_t requester, uint64_t bytes, Duration took) {
    if (const auto place = places_.find(requester); place != places_.end()) place->second.moved += bytes;
    credit_ = std::max(credit_ - took, -kMostCredit);
    if (bytes < kLeastTimed || took <= Duration::zero()) return;
    const double seen = static_cast<double>(bytes) / std::chrono::duration<double>(took).count();
    speed_ = measured_ ? speed_ + kNewest * (seen - speed_) : seen;
    measured_ = true;
}

void MemoryTurns::served(uint32_t requester, TimePoint now) {
    const auto found = places_.find(requester);
    if (found == places_.end()) return;
    Place& place = found->second;
    place.asked = {};
    place.worked = now;
    const TimePoint cut = std::exchange(place.cut, TimePoint{});
    if (place.moved == 0) return;  // there was room
    const bool grows_on = !place.out && now <= place.came + kGrowsOn;
    place.grown = place.out ? 0 : place.moved + (grows_on ? place.grown : 0);
    place.came = now;
    if (cut != TimePoint{}) {
        place.moved = 0;
        place.until = now + std::max(place.until - cut, Duration(kLeastTurn));
        return;
    }
    if (place.until <= now || place.turns == 0) {
        place.begun = now;
        place.in_turn = 0;
        ++place.turns;
    }
    place.in_turn += std::exchange(place.moved, 0);
    const double turn = std::chrono::duration<double>(takes(place.in_turn)).count() / part_;
    const Duration longest = std::clamp(
        std::chrono::duration_cast<Duration>(
            std::chrono::duration<double>(std::min(turn, std::chrono::duration<double>(kMostTurn).count()))),
        kLeastTurn, kMostTurn);
    place.until = std::max(place.until, place.begun + longest);
}

uint64_t MemoryTurns::missing(uint32_t id) const {
    const auto found = places_.find(id);
    return found == places_.end() ? 0 : found->second.missing;
}

MemoryTurns::Duration MemoryTurns::waits(uint32_t id, TimePoint now) const {
    const auto found = places_.find(id);
    const bool asks = found != places_.end() && found->second.asked != TimePoint{};
    return asks ? Duration(now - found->second.asked) : Duration::zero();
}

uint64_t MemoryTurns::turns(uint32_t id) const {
    const auto found = places_.find(id);
    return found == places_.end() ? 0 : found->second.turns;
}

}  // namespace smt::runtime::server
