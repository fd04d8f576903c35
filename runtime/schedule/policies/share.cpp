// Share: tenants run at the same time, and one that is ahead of its weight is held back until the others have
// caught up. Start-time fair queueing (Goyal, Vin and Cheng, 1996) of tenants instead of packets:
//
//     a tenant's virtual time = GPU time received / weight
//
// GPU time received is the time that its completed work takes alone (Kernel::received), so it is progress,
// and does not depend on what runs beside it. A tenant is ahead by what its virtual time exceeds the smallest
// one of those that contend. It is held back when the others need more than `lead` to make up for that, and
// goes on when it is ahead of none. So tenants of equal weight and equal progress are never held back, and
// over time progress is as weights are:
//
//     weights 2 and 1, both get 0.6 of their speed alone when they run at the same time:
//     the second one runs for 5/8 of the time. 0.6 * 5/8 + 3/8 = 0.75 and 0.6 * 5/8 = 0.375
//
// Work-conserving: a tenant contends while it has work, and for `gap` afterwards. Without contenders behind
// it, a tenant goes on. Idle time gives no credit: a tenant comes back as far behind the smallest virtual
// time as it was when it became idle, by `lead` at most. A tenant behind that does not catch up in `patience`
// times the time that it needs, although the others wait, cannot use its share. Then its arrears are written
// off, and the others go on.
//
// Nor is a tenant behind that others do not slow down: it gets all that it can use. docs/policies.md (share)
// has the reasons.
//
// The time that a kernel takes alone is learnt while it is alone (Kernel::guessed), and so is by how much
// that is off for all kernels of a tenant (Kernel::correction): share_trials.h. A tenant pays for its trials
// as for all it receives.
//
// A stop costs the tenant that is stopped; so the lead is at least 1 / max_overhead times that, and so is the
// time from one stop to the next. Unmanaged work is held back between two kernels.
//
// No tenant starves: the tenant that is furthest behind runs, and another one only waits until it has caught
// up or its patience is over.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>

#include "runtime/schedule/estimate.h"
#include "runtime/schedule/lookup.h"
#include "runtime/schedule/policies/behind.h"
#include "runtime/schedule/policies/policies.h"
#include "runtime/schedule/policies/share_trials.h"

namespace smt::runtime::schedule {

namespace {

constexpr auto kNewAfter = std::chrono::seconds(1);  // a tenant without work for so long is new

struct Party {
    std::string tenant;
    double weight = 1;
    double time = 0;     // virtual, ns
    double stop_ns = 0;  // the longest of its kernels'
    bool works = false;
    bool runs = false;                   // one of its kernels does, or is stopping
    std::optional<TimePoint> idle = {};  // since when it has no work, and
    double idle_behind = 0;              // others then
    TimePoint since{};                   // it has had work; with the times before it, older ones less:
    Duration worked{}, paused{};
    bool held = false;
    std::optional<TimePoint> held_since = {};  // or was last
    std::optional<TimePoint> patience = {};    // until when the others may catch up

    // Beside others that run, in the window under way: time with work, and what was received in it, ns.
    bool is_beside = false;
    double beside = 0, got = 0;
    int not_slowed = 0;  // by them, in so many windows in a row

    ShareTrials trials;
};

class ShareByTime final : public Policy {
public:
    explicit ShareByTime(const ShareKnobs& knobs)
        : Policy({.name = "share",
                  .stops = Stops::kAny,
                  .least_saved = knobs.lead / 4,
                  .follows_launches = false}),
          knobs_(knobs) {}
    bool leaves_alone() const override { return contenders_ < 2; }
    bool lets_begin(std::string_view tenant, int) const override {
        if (tried_alone_) return *tried_alone_ == tenant;
        const auto found = std::ranges::find(parties_, tenant, &Party::tenant);
        return found == parties_.end() || !found->held;
    }

    void want(const Snapshot& snapshot, TimePoint now, Wanted& wanted) override {
        note_work(snapshot, now);
        write_off_not_slowed(now);
        const Party* const last = furthest_behind(now);
        if (last) clock_ = std::max(clock_, last->time);
        order(now);
        for (Party& party : parties_) {
            if (party.works) hold_or_release(party, now);
        }
        try_alone(now, wanted);
        set_beside();
        ask_again(now, wanted);
        for (const Kernel& kernel : snapshot.kernels) {
            if (tried_alone_ && kernel.tenant != *tried_alone_)
                wanted.wait(kernel, [&] { return fmt::format("{} is tried alone", *tried_alone_); });
            else if (!tried_alone_ && find(kernel.tenant)->held)
                wanted.wait(kernel,
                            [&] { return fmt::format("ahead of {}", behind_of(kernel.tenant, now)); });
            else
                wanted.resume(kernel, "not ahead of its share");
        }
    }

private:
    // ---- Who has received what: names are tenants', and a tenant may have several sessions.

    void note_work(const Snapshot& snapshot, TimePoint now) {
        for (Party& party : parties_) party.works = party.runs = false;
        for (const Kernel& kernel : snapshot.kernels) {
            Party* party = find(kernel.tenant);
            if (!party)
                party = &parties_.emplace_back(
                    Party{.tenant = kernel.tenant, .time = clock_, .since = now, .trials = ShareTrials(now)});
            if (!party->works) party->stop_ns = 0;
            party->works = true;
            party->runs |= kernel.state != Kernel::State::kWaiting;
            party->weight = kernel.weight > 0 ? kernel.weight : 1;
            party->stop_ns = std::max(party->stop_ns, preemption_ns(kernel));
            party->trials.note_correction(kernel, knobs_, now);
        }
        note_received(snapshot, now);
        note_beside(now);
        for (Party& party : parties_) {
            if (party.works && party.idle) come_back(party, now);
            if (!party.works && !party.idle) {
                party.idle = now;
                party.worked += now - party.since;
                party.idle_behind = first_of_others(party, now) - party.time;
                release(party);
            }
        }
        forget(now);
    }

    void note_received(const Snapshot& snapshot, TimePoint now) {
        for (Session& session : sessions_) session.total = {};
        size_t near = 0;
        for (const Kernel& kernel : snapshot.kernels) {
            const size_t place =
                find_near(sessions_, near, [&](const Session& each) { return each.id == kernel.session; });
            if (place == sessions_.size())
                sessions_.push_back({kernel.session, kernel.tenant, kernel.received, kernel.guessed});
            Session* const session = &sessions_[place];
            if (!session->total) session->total = kernel.received;
            session->guessed_total = kernel.guessed;
            *session->total += kernel.receiving;
        }
        for (Session& session : sessions_) {
            if (!session.total) continue;
            Party& party = *find(session.tenant);
            const double got = ns_of(*session.total - session.counted);
            party.time += got / party.weight;
            if (party.is_beside) party.got += got;
            party.trials.received(got, ns_of(session.guessed_total - session.guessed));
            session.counted = *session.total;
            session.guessed = session.guessed_total;
            session.seen = now;
        }
    }

    // What a tenant received since the last call belongs to what was wanted then.
    void note_beside(TimePoint now) {
        for (Party& party : parties_) {
            if (party.is_beside) party.beside += ns_of(now - seen_);
            if (party.beside < ns_of(knobs_.window)) continue;
            party.not_slowed = party.got < knobs_.slowed * party.beside ? 0 : party.not_slowed + 1;
            party.beside = party.got = 0;
        }
        seen_ = now;
    }
    void set_beside() {
        const auto runs = [&](const Party& each) { return each.works && !each.held && !tried_alone_; };
        const auto count = std::ranges::count_if(parties_, runs);
        for (Party& party : parties_) party.is_beside = count > 1 && runs(party);
    }

    // It has received what was under way when it became idle. A tenant that pauses little is owed what it was
    // behind before, and, behind a short pause, what others received meanwhile.
    void come_back(Party& party, TimePoint now) const {
        const Duration idle = now - *party.idle;
        const double lead = lead_ns(party) / party.weight;
        double behind = 0;
        if (pauses_little(party, now))
            behind = idle <= knobs_.pause ? 2 * lead : std::clamp(party.idle_behind, 0.0, lead);
        party.idle.reset();
        party.time = std::max(party.time, first_of_others(party, now) - behind);
    }
    bool pauses_little(Party& party, TimePoint now) const {
        party.paused += std::min<Duration>(now - *party.idle, knobs_.history);
        party.since = now;
        const bool little = ns_of(party.paused) <= knobs_.pauses * ns_of(party.worked);
        if (party.worked + party.paused > knobs_.history) party.worked /= 2, party.paused /= 2;
        return little;
    }

    void forget(TimePoint now) {
        const auto gone = [&](TimePoint since) { return now - since >= kNewAfter; };
        std::erase_if(sessions_, [&](const Session& each) { return gone(each.seen); });
        std::erase_if(parties_, [&](const Party& each) { return each.idle && gone(*each.idle); });
    }

    // ---- Who waits for whom

    bool contends(const Party& party, TimePoint now) const {
        return party.works || (party.idle && now - *party.idle < knobs_.gap);
    }

    const Party* furthest_behind(TimePoint now) const {
        const Party* last = nullptr;
        for (const Party& each : parties_) {
            if (contends(each, now) && (!last || each.time < last->time)) last = &each;
        }
        return last;
    }
    // The smallest virtual time of the others that contend; without any, the clock's.
    double first_of_others(const Party& party, TimePoint now) const {
        double least = std::numeric_limits<double>::infinity();
        for (const Party& each : parties_) {
            if (&each != &party && contends(each, now)) least = std::min(least, each.time);
        }
        return least == std::numeric_limits<double>::infinity() ? clock_ : least;
    }
    std::string_view behind_of(std::string_view tenant, TimePoint now) const {
        const Party* const last = furthest_behind(now);
        return last && last->tenant != tenant ? std::string_view(last->tenant) : "others";
    }

    // The lead that a tenant may have, in time of the GPU.
    double lead_ns(const Party& party) const {
        return std::max(ns_of(knobs_.lead), (party.stop_ns + ns_of(knobs_.resume)) / knobs_.max_overhead);
    }

    void order(TimePoint now) {
        behind_.clear();
        for (const Party& each : parties_)
            if (contends(each, now)) behind_.add(each.time, each.weight);
        behind_.sum();
    }
    // The time that those behind it need to catch up, with the GPU to themselves.
    double ahead_ns(const Party& party) const { return behind_.of(party.time); }

    void hold_or_release(Party& party, TimePoint now) {
        const double ahead = ahead_ns(party);
        if (!party.held) {
            const double lead = lead_ns(party);
            if (ahead > lead && (!party.held_since || now - *party.held_since >= nanoseconds(lead))) {
                party.held = true;
                party.held_since = now;
            }
            return;
        }
        if (party.runs)
            party.patience.reset();  // they cannot catch up yet
        else if (!party.patience)
            party.patience = now + nanoseconds(knobs_.patience * ahead);
        if (party.patience && now >= *party.patience) write_off(party, now);
        if (ahead_ns(party) <= 0) release(party);
    }

    static void release(Party& party) {
        party.held = false;
        party.patience.reset();
    }

    void write_off(const Party& ahead, TimePoint now) {
        for (Party& each : parties_) {
            if (contends(each, now)) each.time = std::max(each.time, ahead.time);
        }
        order(now);
    }

    // To hold others back would bring them nothing.
    void write_off_not_slowed(TimePoint now) {
        for (Party& party : parties_) {
            if (party.works && party.not_slowed >= knobs_.windows)
                party.time = std::max(party.time, first_of_others(party, now));
        }
    }

    void try_alone(TimePoint now, Wanted& wanted) {
        if (tried_alone_) {
            const Party* const party = find(*tried_alone_);
            if (now >= trial_ends_ || !party || !contends(*party, now)) tried_alone_.reset();
        }
        const bool others = std::ranges::count_if(parties_, [](const Party& each) { return each.works; }) > 1;
        for (Party& party : parties_) {
            if (tried_alone_ || !others || now < next_trial_ || !party.works || party.held ||
                !party.trials.is_due(knobs_, now))
                continue;
            tried_alone_ = party.tenant;
            trial_ends_ = now + knobs_.trial;
            next_trial_ = now + party.trials.begin(knobs_);
        }
        if (tried_alone_) wanted.ask_again(trial_ends_ - now);
    }

    // When the next one may have to be held back, or may go on.
    void ask_again(TimePoint now, Wanted& wanted) {
        contenders_ = std::ranges::count_if(parties_, [&](const Party& each) { return contends(each, now); });
        if (contenders_ < 2) return;
        for (const Party& each : parties_) {
            if (!each.works) {
                if (contends(each, now)) wanted.ask_again(knobs_.gap - (now - *each.idle));
                continue;
            }
            const double ahead = ahead_ns(each);
            const double until =
                each.held ? ahead : (lead_ns(each) - ahead) * each.weight / (behind_.weights() - each.weight);
            wanted.ask_again(std::max(knobs_.tick, nanoseconds(until)));
            if (each.patience) wanted.ask_again(std::max(knobs_.tick, *each.patience - now));
        }
    }

    Party* find(const std::string& tenant) {
        const size_t place =
            find_near(parties_, near_, [&](const Party& each) { return each.tenant == tenant; });
        return place == parties_.size() ? nullptr : &parties_[place];
    }

    struct Session {
        uint32_t id;
        std::string tenant;
        Duration counted, guessed;  // received, and part of its tenant's virtual time
        std::optional<Duration> total = {};
        Duration guessed_total{};
        TimePoint seen{};
    };

    const ShareKnobs knobs_;
    std::vector<Party> parties_;
    Behind behind_;    // of those that contend
    size_t near_ = 0;  // the one that was found last
    std::vector<Session> sessions_;
    std::optional<std::string> tried_alone_;  // the tenant for which the others wait,
    TimePoint trial_ends_{}, next_trial_{};   // until when, and when another may be
    TimePoint seen_{};                        // the last call
    double clock_ = 0;                        // the smallest virtual time of contenders so far
    std::ptrdiff_t contenders_ = 0;           // at the last call
};

}  // namespace

std::unique_ptr<Policy> make_share(const ShareKnobs& knobs) { return std::make_unique<ShareByTime>(knobs); }

}  // namespace smt::runtime::schedule
