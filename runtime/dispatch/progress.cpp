// The progress of a stream's launches, for policies.
#include <algorithm>
#include <chrono>

#include "runtime/dispatch/dispatcher.h"
#include "runtime/dispatch/managed_stream.h"

namespace smt::runtime::dispatch {

namespace {

using namespace std::chrono_literals;

// Between two samples of a control block. Each is a copy of a few bytes and costs the dispatcher a few
// microseconds.
constexpr auto kBetweenSamples = 100us;

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
    kernel->predicted = work.function->time_alone(work.shape(), uint64_t{work.fits} * multiprocessors());
    if (!kernel->predicted) return;
    const double left =
        kernel->blocks ? 1 - static_cast<double>(kernel->blocks_done) / static_cast<double>(kernel->blocks)
                       : 0;
    kernel->remaining = std::chrono::duration_cast<schedule::Duration>(*kernel->predicted * left);
}

// The CTAs per SM that the launch has or will have. In quota mode: those that it has when the quotas are
// lifted.
uint32_t ManagedStream::usual_ctas(const Work& work) const {
    if (work.function->has_door()) return work.fits;
    if (work.tickets && state_ != State::kRunning) return work.ctas;
    const bool all = !dispatcher_.short_stops() || work.function->reuse == Reuse::kNever ||
                     work.left() <= uint64_t{work.fits} * multiprocessors();
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
    kernel->since = since_;
    kernel->multiprocessors = confined_to_;
    kernel->own_sms = tenant_->places != nullptr;
    kernel->managed = true;
    kernel->has_door = false;
    using Seen = schedule::Kernel::State;
    kernel->state = state_ == State::kStopping  ? Seen::kStopping
                    : state_ == State::kStopped ? Seen::kWaiting
                                                : Seen::kRunning;
    if (at_wait() && wanting_ == 0) return false;
    if (const Work* const work = first_unfinished()) {
        describe(*work, kernel);
        return true;
    }
    kernel->managed = false;
    if (gone_) return false;
    if (under_way() || wanting_) return true;
    kernel->state = Seen::kRunning;
    return reached() < marked_;
}

void ManagedStream::end_waits() {
    if (waits_.empty()) return;
    waits_.end(words_->waits_over.load(std::memory_order_acquire));
    any_waits_.store(!waits_.empty(), std::memory_order_release);
}

bool ManagedStream::at_wait() {
    end_waits();
    if (waits_.empty()) return false;
    const Work* const work = first_unfinished();
    const WaitList::Place& place = waits_.place();
    return reached() >= place.marker && (!work || work->number > place.launches) && waits_.holds_up();
}

const Work* ManagedStream::first_unfinished() const {
    return !in_flight_.empty() ? &in_flight_.front() : !waiting_.empty() ? &waiting_.front() : nullptr;
}

bool ManagedStream::front(Front* front) {
    std::lock_guard lock(mutex_);
    const Work* const work = first_unfinished();
    if (!work) return false;
    *front = {work->function->known,           work->shape(), work->left(),
              work->function->block_ns.load(), kMostBlocks,   static_cast<int>(work->fits)};
    // With one block per worker there are as many mappings as blocks.
    if (work->function->reuse == Reuse::kNever)
        front->most_timed = dispatcher_.supplies().control_memory().map_entries();
    return true;
}

void ManagedStream::describe(const Work& work, schedule::Kernel* kernel) const {
    kernel->managed = work.function->persistent();
    kernel->has_door = work.function->has_door();
    kernel->launch = work.number;
    kernel->blocks = work.total;
    kernel->blocks_done = work.done;
    kernel->ctas_per_sm = static_cast<int>(work.fits);
    kernel->usual_ctas = static_cast<int>(usual_ctas(work));
    kernel->cta = resources_of(work);
    if (kernel->state == schedule::Kernel::State::kRunning && work.tickets) {
        const uint32_t taken =
            sample_.taken > work.ticket ? std::min(sample_.taken - work.ticket, work.tickets) : 0;
        kernel->blocks_done += std::min<uint64_t>(uint64_t{taken} * work.chunk, work.covered);
        kernel->last_taken = taken == work.tickets && work.done + work.covered == work.total;
    }
    if (const uint64_t stop = work.function->stop_ns.load(std::memory_order_relaxed))
        kernel->preemption = std::chrono::nanoseconds(stop);
    if (work.function->known) kernel->profile = work.function->known->find(work.shape());
    estimate(work, kernel);
}

void ManagedStream::sample() {
    std::lock_guard lock(mutex_);
    if (words_->sampled.load(std::memory_order_acquire) < asked_) return;
    if (fresh_ && asked_ > 0) sample_ = words_->sample;
    const schedule::TimePoint now = dispatcher_.now();
    const bool runs = state_ == State::kRunning
                          ? runs_with_quotas()
                          : state_ == State::kPassThrough && !in_flight_.empty() && !in_flight_with_door();
    if (!runs || reached() < ready_ || now < sample_again_) return;
    sample_again_ = now + kBetweenSamples;
    // Not on the control stream, where it would delay a stop.
    const CUstream errands = dispatcher_.device().errands();
    if (control_.report(errands, &words_->sample) != CUDA_SUCCESS) return;
    if (dispatcher_.driver().cuStreamWriteValue64_v2(errands, address_of(&words_->sampled), asked_ + 1, 0) !=
        CUDA_SUCCESS)
        return;
    ++asked_;
    fresh_ = true;
}

uint64_t ManagedStream::residents() {
    std::lock_guard lock(mutex_);
    uint64_t workers = 0;
    if (!runs_with_quotas() || reached() < ready_) return 0;
    return control_.read_residents(dispatcher_.device().errands(), &workers) == CUDA_SUCCESS ? workers : 0;
}

// Tickets are counted from 0 again.
void ManagedStream::forget_sample() {
    sample_ = {};
    fresh_ = false;
}

}  // namespace smt::runtime::dispatch
