// The dispatcher's decisions: the snapshot, the policy's answer, and what follows from it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "runtime/dispatch/dispatcher.h"

namespace smt::runtime::dispatch {

void Dispatcher::decide() {
    const Tenant* const solo = solo_;
    for (const Member& member : members_)
        if (&member.stream->tenant() != solo) member.stream->tenant().free.store(false);
    if (policy_.studying()) return end_unasked();  // the decision is made when the study has been learnt
    std::vector<schedule::Kernel> over;
    take_snapshot(solo, &over);
    const bool decided = (over.empty() || hear_late(std::move(over))) && ask_and_carry_out();
    const Tenant* const alone = decided ? alone_with_work(solo) : nullptr;
    if (alone != solo_) end_unasked();
    solo_ = alone;
    if (alone) alone->free.store(true);
    if (decided) let_begin();
}

void Dispatcher::end_unasked() {
    solo_ = nullptr;
    for (const Member& member : members_) member.stream->tenant().free.store(false);
}

void Dispatcher::let_begin() {
    if (quiesce_.open()) return;
    for (const Member& member : members_) {
        const Tenant& tenant = member.stream->tenant();
        if (policy_.lets_begin(tenant)) tenant.free.store(true);
    }
    for (const Member& member : members_) {
        if (member.trial || !member.orders.runs_freely()) member.stream->tenant().free.store(false);
    }
}

// The streams of the solo tenant come last: if another tenant has work the session is over by then.
// `over`: work of the session that is over and that no decision has seen, as if it ran. Of other tenants that
// begin unasked such work is not told: it was beside others', which the thread looks at all the time.
void Dispatcher::take_snapshot(const Tenant* solo, std::vector<schedule::Kernel>* over) {
    schedule::Snapshot& snapshot = policy_.snapshot();
    snapshot.urgent.clear();
    tenants_.list_urgent(snapshot.urgent);
    snapshot.kernels.resize(members_.size());
    const auto look_at = [&](bool those_of_solo) {
        bool any = false;
        for (size_t i = 0; i < members_.size(); ++i) {
            Member& member = members_[i];
            if ((&member.stream->tenant() == solo) != those_of_solo) continue;
            schedule::Kernel& kernel = snapshot.kernels[i] = {};
            member.decided = !member.trial && !suspended(member) && member.stream->describe(&kernel);
            any |= member.decided || member.trial;
            const std::optional<Abilities> unheard = member.stream->take_unheard();
            if (member.decided) continue;
            if (unheard && those_of_solo && !member.trial) {
                kernel.state = schedule::Kernel::State::kRunning;
                kernel.managed = unheard->quota;
                kernel.has_door = unheard->stop && !unheard->quota;
                over->push_back(std::move(kernel));
            }
            kernel = {};
        }
        return any;
    };
    if (look_at(false)) end_unasked();
    look_at(true);
    // Behind the looks, in which streams see ends of work.
    snapshot.services.clear();
    tenants_.list_services(snapshot.services);
    std::erase_if(snapshot.kernels, [](const schedule::Kernel& kernel) { return kernel.id == 0; });
}

// The policy decides on `over` with what else its tenant has: other tenants had no work then.
bool Dispatcher::hear_late(std::vector<schedule::Kernel>&& over) {
    std::vector<schedule::Kernel>& kernels = policy_.snapshot().kernels;
    const uint32_t session = over.front().session;
    const std::vector<schedule::Kernel> present = std::exchange(kernels, std::move(over));
    std::copy_if(present.begin(), present.end(), std::back_inserter(kernels),
                 [&](const schedule::Kernel& each) { return each.session == session; });
    if (!ask_and_carry_out()) return false;
    policy_.snapshot().kernels = present;
    return true;
}

bool Dispatcher::ask_and_carry_out() {
    // By the host's clock: the cost of the decision.
    const schedule::TimePoint begin = schedule::Clock::now();
    const std::optional<schedule::Decision> decision = policy_.ask(now());
    if (!decision) return false;
    // A confinement takes effect before waiting launches are released.
    for (const schedule::Confinement& each : decision->confinements) give(each);
    for (const schedule::Assignment& each : decision->assignments) give(each);
    for (const schedule::Attained& each : decision->attained) give(each);
    policy_.decided_since(begin);
    return true;
}

// The tenant of all work, if it goes on as it is; without any work the last one is still alone. Null: none.
const Tenant* Dispatcher::alone_with_work(const Tenant* last) const {
    if (!policy_.leaves_alone() || quiesce_.open()) return nullptr;
    const Tenant* alone = nullptr;
    for (const Member& member : members_) {
        const Tenant* const tenant = &member.stream->tenant();
        if (member.trial || (member.decided && alone && alone != tenant)) return nullptr;
        if (member.decided) alone = tenant;
    }
    if (!alone) alone = last;
    const auto restrained = [&](const Member& each) {
        return &each.stream->tenant() == alone &&
               (!each.orders.runs_freely() || (each.decided && !each.stream->passes_through()));
    };
    return std::ranges::none_of(members_, restrained) ? alone : nullptr;
}

Dispatcher::Member* Dispatcher::member_of(uint64_t stream) {
    const auto found =
        std::ranges::find_if(members_, [&](const Member& each) { return each.stream->id() == stream; });
    return found == members_.end() ? nullptr : &*found;
}

void Dispatcher::give(const schedule::Assignment& assignment) {
    Member* const member = member_of(assignment.kernel);
    if (!member) return;
    if (member->orders.give(assignment)) notes_.decision(member->stream->tenant(), assignment.reason);
    const bool waits = assignment.action == schedule::Assignment::Action::kWait;
    member->stream->waits_because(waits ? assignment.reason : "");
    follow(*member);
}

void Dispatcher::give(const schedule::Confinement& confinement) {
    Member* const member = member_of(confinement.kernel);
    if (!member) return;
    member->stream->confine(confinement);
    notes_.decision(member->stream->tenant(), confinement.reason);
}

void Dispatcher::give(const schedule::Attained& attained) {
    Tenant* const tenant = tenants_.find(attained.session);
    if (!tenant) return;
    Attainment& said = tenant->attainment;
    said.seen_p99_ns.store(std::chrono::nanoseconds(attained.seen_p99).count());
    said.headroom_thousandths.store(static_cast<int>(std::clamp(attained.headroom * 1000, -1e6, 1e6)));
    said.multiprocessors.store(attained.multiprocessors);
    said.state.store(static_cast<int>(attained.state));
    if (attained.state != schedule::Attained::State::kNotKept || std::exchange(said.told, true)) return;
    notes_.note(*tenant,
                fmt::format("its target cannot be kept: 99 % of its requests take up to {:.2f} ms, {:.0f} % "
                            "above it, with all best-effort tenants stopped",
                            std::chrono::duration<double, std::milli>(attained.seen_p99).count(),
                            -100 * attained.headroom));
}

void Dispatcher::follow(Member& member) {
    schedule::Kernel kernel;
    const schedule::TimePoint begin = schedule::Clock::now();
    member.behind = member.stream->describe(&kernel) && !follow(member, kernel);
    notes_.note_if_long(member.stream->tenant(), "stopping, launching or placing", begin);
}

bool Dispatcher::follow(Member& member, const schedule::Kernel& kernel) {
    Decider& decider = member.trial ? *member.trial : member.orders;
    const View view{*member.stream, kernel, member.stream->passes_through(), now()};
    const bool rests = suspended(member) || quiesces(member);
    const Step step = rests ? Orders::to_rest(kernel, view.passes_through) : decider.next(view);
    const Outcome outcome = carry_out(*member.stream, step);
    if (outcome == Outcome::kDone) decider.done(step);
    return outcome != Outcome::kNotNow;
}

// Failures are returned by the program's next call.
Dispatcher::Outcome Dispatcher::carry_out(ManagedStream& stream, const Step& step) {
    CUresult status = CUDA_SUCCESS;
    switch (step.what) {
        case Step::What::kNone:
            break;
        case Step::What::kStop:
            return stream.stop() ? Outcome::kDone : Outcome::kNotNow;
        case Step::What::kHalt:
            if (!stream.ready()) return Outcome::kNotNow;
            status = stream.halt();
            break;
        case Step::What::kPassThrough:
            stream.pass_through();
            break;
        case Step::What::kRun:
            status = stream.run(step.quotas, step.slice);
            if (status != CUDA_SUCCESS) stream.pass_through();
            break;
        case Step::What::kChange:
            if (!stream.ready()) return Outcome::kNotNow;
            status = stream.change(step.quotas);
            if (status == CUDA_SUCCESS && step.growth) status = stream.grow(step.growth);
            break;
        case Step::What::kGrow:
            status = stream.grow(step.growth);
            break;
        case Step::What::kFillUp:
            status = stream.fill_up();
            break;
    }
    return status == CUDA_SUCCESS ? Outcome::kDone : Outcome::kFailed;
}

}  // namespace smt::runtime::dispatch
