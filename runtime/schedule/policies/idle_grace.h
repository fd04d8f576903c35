// The idle grace period: how long a policy reserves the place or turn of a tenant that launches, waits and
// launches again. Without it, such a tenant would lose its place at each launch, and all others would move. A
// program that wakes up and answers over two processes takes 30 to 400 us, depending on the machine. So the
// period is learnt: twice the recent idle time, at least `least` and at most kMost. Not thread-safe.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "runtime/schedule/snapshot.h"

namespace smt::runtime::schedule {

// `Name`: the unit that idle times are learnt for, a stream or a tenant.
template <class Name>
class IdleGrace {
public:
    static constexpr Duration kMost = std::chrono::milliseconds(1);  // longer idle times are not learnt

    // 0: no grace period.
    explicit IdleGrace(Duration least) : least_(least) {}

    // The start and the end of an idle time. Repeated calls have no effect.
    void gone(const Name& name, TimePoint now) {
        Absence& absence = absences_[name];
        if (!absence.since) absence.since = now;
    }
    void works(const Name& name, TimePoint now) {
        const auto found = absences_.find(name);
        if (found == absences_.end() || !found->second.since) return;
        const Duration took = now - *std::exchange(found->second.since, std::nullopt);
        Duration& usual = found->second.usual;
        if (took <= kMost)
            usual = usual > Duration::zero() ? (3 * usual + took) / 4 : took;
        else
            usual = Duration::zero();
        std::erase_if(absences_, [&](const auto& each) {
            return each.second.since && now - *each.second.since > kForgotten;
        });
    }

    Duration of(const Name& name) const {
        if (least_ == Duration::zero()) return least_;
        const auto found = absences_.find(name);
        return found == absences_.end()
                   ? least_
                   : std::clamp<Duration>(2 * found->second.usual, least_, std::max(least_, kMost));
    }

private:
    struct Absence {
        std::optional<TimePoint> since;  // start of the idle time
        Duration usual{};                // 0: not known
    };
    static constexpr Duration kForgotten = std::chrono::seconds(1);

    Duration least_;
    std::map<Name, Absence> absences_;
};

}  // namespace smt::runtime::schedule
