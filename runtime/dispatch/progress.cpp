// The progress of a stream's launches, for policies.
#include <algorithm>
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
    if (work.tickets && !preemptor_.in_quota_mode()) return work.ctas;
    const bool all = !dispatcher_.short_stops() || work.function->reuse == Reuse::kNever ||
                     work.left() <= uint64_t{work.fits} * multiprocessors_of(*tenant_, dispatcher_);
    return all ? work.fits : work.function->enough.found(work.fits);
}

void ManagedStream::note_received(schedule::Kernel* kernel) {
    const Work* const next = queue_.in_flight().empty() ? nullptr : &queue_.in_flight().front();
    kernel->received = std::chrono::nanoseconds(tenant_->received.ns.load(std::memory_order_relaxed));
    kernel->guessed = std::chrono::nanoseconds(tenant_->received.guessed_ns.load(std::memory_order_relaxed));
    kernel->correction = tenant_->received.correction.factor();
    kernel->corrections = tenant_->received.correction.windows();
    kernel->receiving =
        gpu_time_.receiving(next ? &next->alone() : nullptr, next ? next->left() : 0, dispatcher_.now());
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
    note_received(kernel);
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
    if (work || gone_) return work != nullptr;
    if (under_way() || unmanaged_.wanting) return true;
    kernel->state = Seen::kRunning;
    return markers_.reached() < markers_.last();
}

bool ManagedStream::begins_unasked() const {
    const bool asks = tenant_->preemptible.load(std::memory_order_relaxed) ||
                      tenant_->preemptor.load(std::memory_order_relaxed);
    return asks && (dispatcher_.solo().of(*tenant_) || tenant_->free.load());
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
        gpu_time_.over_unmanaged(each.key);
        note_end();
        if (times_)
            times_->over({each.name, each.treatment}, each.one_wave, gpu_time_.expected_unmanaged(each.key),
                         true);
    }
    if (!unmanaged_.in_flight.empty()) unmanaged_.over(over, tenant_->window, dispatcher_.now());
    if (preemptor_.in(State::kPassThrough) && queue_.any_over(over)) {
        note_over([&](const Work& work) { return LaunchQueue::over_at(work, over); });
        queue_.over(over, dispatcher_.now());
    }
    note_gpu_time();
    note_work(over);
}

void ManagedStream::note_begin(schedule::TimePoint now) {
    if (!works_ && tenant_->target.any()) note_work(!at_wait(), now);
}

void ManagedStream::note_work(uint64_t reached) {
    if (!tenant_->target.any()) return;
    const bool works = (queue_.first() || under_way() || reached < markers_.last()) && !at_wait();
    if (works != works_) note_work(works, dispatcher_.now());
}

void ManagedStream::note_work(bool works, schedule::TimePoint now) {
    if (works == works_) return;
    works_ = works;
    if (works)
        tenant_->activity.begins(now);
    else
        tenant_->activity.ends(now, tenant_->launched.load(std::memory_order_relaxed),
                               tenant_->over.load(std::memory_order_relaxed));
}

void ManagedStream::note_gpu_time() {
    const bool work =
        !queue_.in_flight().empty() || !unmanaged_.in_flight.empty() || preemptor_.in_quota_mode();
    const bool at_work = work && !at_wait();
    if (times_) times_->settle(at_work, dispatcher_.now());
    if (gpu_time_.needs_settling(at_work))
        gpu_time_.settle(at_work, dispatcher_.now(), tenant_->preemptible.load(std::memory_order_relaxed));
}

void ManagedStream::note_end() {
    if (tenant_->target.any()) tenant_->over.fetch_add(1, std::memory_order_relaxed);
}

void ManagedStream::note_part(const Work& work, uint64_t blocks, bool whole, bool ends) {
    LaunchTime& alone = work.alone();
    gpu_time_.over(alone, blocks, whole, work.alike());
    if (ends) note_end();
    if (!times_ || blocks == 0) return;
    const uint64_t together = uint64_t{work.fits} * multiprocessors_of(*tenant_, dispatcher_);
    times_->over({work.entry.name, static_cast<uint32_t>(work.entry.value)},
                 !work.graph && work.total <= together, alone.of(static_cast<double>(blocks)), ends);
}

void ManagedStream::write_times() {
    std::lock_guard lock(mutex_);
    if (!times_) return;
    times_->report([&](const KernelTimes::Which& which, const KernelTimes::Sum& sum) {
        dispatcher_.notes().gpu_time(*tenant_, id_, which, sum);
    });
}

void ManagedStream::end_waits() {
    if (waits_.list.empty()) return;
    waits_.list.end(markers_.words().waits_over.load(std::memory_order_acquire));
    waits_.any.store(!waits_.list.empty(), std::memory_order_release);
}

bool ManagedStream::at_wait() {
    end_waits();
    if (waits_.list.empty()) return false;
    const WaitList::Place& place = waits_.list.place();
    return markers_.reached() >= place.marker && !queue_.unfinished(place.launches) && waits_.list.holds_up();
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
    if (kernel->state == schedule::Kernel::State::kRunning && work.tickets) {
        const uint32_t taken =
            samples_.taken() > work.ticket ? std::min(samples_.taken() - work.ticket, work.tickets) : 0;
        kernel->blocks_done += std::min<uint64_t>(uint64_t{taken} * work.chunk, work.covered);
        kernel->last_taken = taken == work.tickets && work.done + work.covered == work.total;
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
    samples_.look(persistent_.control(), markers_, dispatcher_.device().errands(),
                  runs && markers_.reached() >= preemptor_.ready(), dispatcher_.now());
}

}  // namespace smt::runtime::dispatch
