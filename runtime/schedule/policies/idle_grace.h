// How long to wait for who launches, waits, and launches again: the policies that keep a place or a turn meanwhile would else give it
// away at each launch, and everybody would move. A program that is woken and answers over two processes takes 30 to 400 us,
// as machines differ; so it is learnt: twice what it took lately, `least` at least.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "runtime/schedule/snapshot.h"

namespace smt::runtime::schedule {

// `Name`: whose gaps are alike, a stream or a tenant.
template <class Name>
class IdleGrace {
public:
    static constexpr Duration kMost = std::chrono::milliseconds(1);   // who takes longer than this is not waited for

    // 0: nobody is waited for.
    explicit IdleGrace(Duration least) : least_(least) {}

    // Both may be said again and again.
    void gone(const Name& name, TimePoint now) {
        Absence& absence = absences_[name];
        if (!absence.since) absence.since = now;
    }
    void works(const Name& name, TimePoint now) {
        const auto found = absences_.find(name);
        if (found == absences_.end() || !found->second.since) return;
        const Duration took = now - *std::exchange(found->second.since, std::nullopt);
        Duration& usual = found->second.usual;
        if (took <= kMost) usual = usual > Duration::zero() ? (3 * usual + took) / 4 : took;
        else usual = Duration::zero();
        std::erase_if(absences_, [&](const auto& each) { return each.second.since && now - *each.second.since > kForgotten; });
    }

    Duration of(const Name& name) const {
        if (least_ == Duration::zero()) return least_;
        const auto found = absences_.find(name);
        return found == absences_.end() ? least_ : std::clamp<Duration>(2 * found->second.usual, least_, std::max(least_, kMost));
    }

private:
    struct Absence {
        std::optional<TimePoint> since;   // it has had nothing to do
        Duration usual{};                 // 0: not known
    };
    static constexpr Duration kForgotten = std::chrono::seconds(1);

    Duration least_;
    std::map<Name, Absence> absences_;
};

}  // namespace smt::runtime::schedule
