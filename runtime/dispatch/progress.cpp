// The progress of a stream's launches, for policies.
#include <chrono>

#include "runtime/dispatch/dispatcher.h"
#include "runtime/dispatch/managed_stream.h"

namespace smt::runtime::dispatch {

namespace {

constexpr uint32_t kRegisterUnit = 256;   // unit in which a warp's registers are allocated
constexpr uint32_t kSystemShared = 1024;  // bytes that the system reserves in each CTA
constexpr uint32_t kWarp = 32;

schedule::Resources resources_of(const Work& work) {
    const ManagedFunction& function = *work.function;
    if (function.registers == 0) return {};
    const uint32_t warps = (work.threads() + kWarp - 1) / kWarp;
    const uint32_t each = (function.registers * kWarp + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
    return {work.threads(), warps * each, function.static_shared + work.shared_bytes + kSystemShared, warps,
            1};
}

}  // namespace

void ManagedStream::estimate(const Work& work, schedule::Kernel* kernel) const {
    kernel->predicted = work.time_alone(uint64_t{work.fits} * multiprocessors_of(*tenant_, dispatcher_));
    if (!kernel->predicted) return;
    const double left =
        kernel->blocks ? 1 - static_cast<double>(kernel->blocks_done) / static_cast<double>(kernel->blocks)
                       : 0;
    kernel->remaining = std::chrono::duration_cast<schedule::Duration>(*kernel->predicted * left);
}

// The CTAs per SM that the launch has or will have. In quota mode: those that it has when the quotas are
// lifted.
uint32_t ManagedStream::usual_ctas(const Work& work) const {
    if (!work.function->abilities().quota) return work.fits;
    if (work.tickets.count && !preemptor_.in_quota_mode()) return work.ctas;
    const bool all = !dispatcher_.policy().short_stops || work.function->reuse == Reuse::kNever ||
                     work.left() <= uint64_t{work.fits} * multiprocessors_of(*tenant_, dispatcher_);
    return all ? work.fits : work.function->enough.found(work.fits);
}

bool ManagedStream::describe(schedule::Kernel* kernel) {
    std::lock_guard lock(mutex_);
    prune();
    kernel->id = id_;
    kernel->tenant = tenant_->name;
    kernel->session = tenant_->session;
    kernel->priority = tenant_->priority;
    kernel->weight = tenant_->weight;
    kernel->since = preemptor_.since();
    kernel->multiprocessors = unmanaged_.confined_to;
    kernel->ahead = queue_.limit();
    kernel->own_sms = tenant_->places != nullptr;
    account_.describe(queue_.in_flight().empty() ? nullptr : &queue_.in_flight().front(), kernel);
    using Seen = schedule::Kernel::State;
    kernel->state = preemptor_.in(State::kStopping)  ? Seen::kStopping
                    : preemptor_.in(State::kStopped) ? Seen::kWaiting
                                                     : Seen::kRunning;
    const Work* const work = queue_.first();
    const Abilities can = work ? work->function->abilities() : abilities_of(Form::kWhole);
    kernel->managed = can.quota;
    kernel->has_door = can.stop && !can.quota;
    if (at_wait() && unmanaged_.wanting == 0) return false;
    if (work) describe(*work, kernel);
    if (work || gone()) return work != nullptr;
    if (under_way() || unmanaged_.wanting) return true;
    kernel->state = Seen::kRunning;
    return markers_.reached() < markers_.last();
}

bool ManagedStream::begins_unasked() const {
    const bool asks = tenant_->preemptible.load(std::memory_order_relaxed) ||
                      tenant_->preemptor.load(std::memory_order_relaxed);
    return asks && tenant_->free.load();
}

void ManagedStream::begin_unasked(const Abilities& can) {
    const int seen = kBegan | (can.stop ? kStops : 0) | (can.quota ? kKeepsQuotas : 0);
    unheard_.fetch_or(static_cast<uint8_t>(seen), std::memory_order_relaxed);
}

std::optional<Abilities> ManagedStream::take_unheard() {
    if (!unheard()) return std::nullopt;
    const uint8_t seen = unheard_.exchange(kHeard, std::memory_order_relaxed);
    return Abilities{.stop = (seen & kStops) != 0, .quota = (seen & kKeepsQuotas) != 0};
}

void ManagedStream::prune() {
    const uint64_t over = markers_.reached();
    for (const UnmanagedSide::Flight& each : unmanaged_.in_flight) {
        if (each.marker > over) break;
        account_.over(each);
    }
    if (!unmanaged_.in_flight.empty()) unmanaged_.over(over, tenant_->window, dispatcher_.now());
    if (preemptor_.in(State::kPassThrough)) forget(queue_.over_at(over));
    settle_account();
    note_work(over);
}

void ManagedStream::forget(size_t over) {
    if (over == 0) return;
    for (size_t i = 0; i < over; ++i) {
        const Work& each = queue_.in_flight()[i];
        const bool tried = each.function->persistent() && each.ctas == 0;  // with fewer CTAs
        account_.over(each, each.left(), !tried, true);
    }
    queue_.forget(over, dispatcher_.now());
}

void ManagedStream::note_begin() {
    if (!account_.at_work() && account_.of_service()) account_.set_at_work(!at_wait());
}

void ManagedStream::note_work(uint64_t reached) {
    if (account_.of_service())
        account_.set_at_work((queue_.first() || under_way() || reached < markers_.last()) && !at_wait());
}

void ManagedStream::settle_account() {
    const bool work =
        !queue_.in_flight().empty() || !unmanaged_.in_flight.empty() || preemptor_.in_quota_mode();
    account_.settle(work && !at_wait());
}

void ManagedStream::write_times() {
    std::lock_guard lock(mutex_);
    account_.write_times(id_);
}

void ManagedStream::end_waits() {
    if (!waits_.empty()) waits_.end(markers_.words().waits_over.load(std::memory_order_acquire));
}

bool ManagedStream::at_wait() {
    end_waits();
    if (waits_.empty()) return false;
    const WaitList::Place& place = waits_.place();
    return markers_.reached() >= place.marker && !queue_.unfinished(place.launches) && waits_.holds_up();
}

bool ManagedStream::front(Front* front) {
    std::lock_guard lock(mutex_);
    const Work* const work = queue_.first();
    if (!work) return false;
    *front = {work->function->known,           work->shape(), work->left(),
              work->function->block_ns.load(), kMostBlocks,   static_cast<int>(work->fits)};
    // With one block per worker there are as many mappings as blocks.
    if (work->function->reuse == Reuse::kNever)
        front->most_timed = dispatcher_.supplies().control_memory().map_entries();
    return true;
}

void ManagedStream::describe(const Work& work, schedule::Kernel* kernel) const {
    kernel->launch = work.number;
    kernel->blocks = work.total;
    kernel->blocks_done = work.done;
    kernel->ctas_per_sm = static_cast<int>(work.fits);
    kernel->usual_ctas = static_cast<int>(usual_ctas(work));
    kernel->cta = resources_of(work);
    if (kernel->state == schedule::Kernel::State::kRunning && work.tickets.count) {
        kernel->blocks_done += work.over_at(samples_.taken());
        kernel->last_taken = work.tickets.below(samples_.taken()) == work.tickets.count &&
                             work.done + work.covered == work.total;
    }
    if (const uint64_t stop = work.function->stop_ns.load(std::memory_order_relaxed))
        kernel->preemption = std::chrono::nanoseconds(stop);
    if (profiles::KnownKernel* const known = work.function->known.get())
        kernel->profile =
            dispatcher_.explores() ? known->find_or_begin(work.shape()) : known->find(work.shape());
    estimate(work, kernel);
}

void ManagedStream::sample() {
    std::lock_guard lock(mutex_);
    look_at_tickets();
}

void ManagedStream::look_at_tickets() {
    const bool runs = preemptor_.in_quota_mode()
                          ? runs_with_quotas()
                          : preemptor_.in(State::kPassThrough) && queue_.in_flight_with(Form::kPersistent);
    samples_.look(forms_.persistent().control(), dispatcher_.device().errands(),
                  runs && markers_.reached() >= preemptor_.ready(), dispatcher_.now());
}

}  // namespace smt::runtime::dispatch
