// Whose turn it is while tenants are kept apart (quarantine.h): each tenant in quarantine is a group, and all
// others together are one, which has no name.
//
// A turn ends early when nothing of the group is at work. Without work of another group it goes on. A group's
// turn is as long as it has programs at work, times kTurn. No threads, no locks.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace smt::runtime::server {

class QuarantineTurns {
public:
    using Clock = std::chrono::steady_clock;
    static constexpr auto kTurn = std::chrono::milliseconds(50);
    struct Group {
        std::string tenant;  // empty: the others
        size_t working = 0;  // programs of it
    };

    // The group whose turn it is now, or comes. `groups`: each once, in any order that stays.
    const std::string& next(const std::vector<Group>& groups, Clock::time_point now) {
        const auto has_turn = [this](const Group& each) { return each.tenant == turn_; };
        const auto at = std::find_if(groups.begin(), groups.end(), has_turn);
        if (at != groups.end() && at->working != 0 && now - since_ < kTurn * at->working) return turn_;
        const auto works = [](const Group& each) { return each.working != 0; };
        const auto behind = at == groups.end() ? groups.begin() : at + 1;
        auto found = std::find_if(behind, groups.end(), works);
        if (found == groups.end()) found = std::find_if(groups.begin(), groups.end(), works);
        if (found == groups.end()) return turn_;
        turn_ = found->tenant;
        since_ = now;
        return turn_;
    }
    const std::string& turn() const { return turn_; }
    // The others are at rest since then: until now it had no turn.
    void began(Clock::time_point now) { since_ = now; }

private:
    std::string turn_;
    Clock::time_point since_{};
};

}  // namespace smt::runtime::server
