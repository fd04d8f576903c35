#include "runtime/dispatch/learner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/dispatch/dispatcher.h"

namespace smt::runtime::dispatch {

namespace {

// After so many reads that found mappings of other workers, the missing ones were overwritten in the ring.
constexpr uint32_t kMostPartialReads = 64;
// Limit of launches that SaturatingCtas tries and that have a part of their mappings read.
constexpr size_t kMostTold = 8;

}  // namespace

uint32_t multiprocessors_of(const Tenant& tenant, Dispatcher& dispatcher) {
    return tenant.places ? tenant.places->count()
                         : static_cast<uint32_t>(dispatcher.device().properties().multiprocessors);
}

auto Learner::begin(Work& work) -> Launched& {
    work.launch = launches_++;
    Launched& launched = last();
    launched = {};
    launched.id = work.launch % kLaunchIds;
    launched.name = work.entry.name;
    launched.function = work.function;
    launched.chunk = work.tickets.chunk;
    launched.shape = work.shape();
    launched.blocks = work.covered;
    return launched;
}

auto Learner::find(uint32_t launch) -> Launched* {
    Launched& found = launched_[launch % launched_.size()];
    return found.id == launch % kLaunchIds ? &found : nullptr;
}

void Learner::ran(const Work& work, uint64_t before, bool by_itself) {
    Launched* const launched = find(work.launch);
    if (!launched) return;
    launched->blocks = work.done - before;
    launched->stopped = work.left() != 0;
    launched->by_itself = by_itself;
}

void Learner::begun_anew(const Work& work) {
    if (Launched* const launched = find(work.launch)) launched->begun_anew = true;
}

void Learner::begin_learning() {
    if (!std::exchange(learning_, true)) partial_reads_ = 0;
}

bool Learner::watches_slice(const Work& work, const profiler::Placement& placement) const {
    const profiles::KnownKernel* const known = work.function->known.get();
    return known && !tenant_.tried() &&
           (known->slices(work.shape()) < SliceCost::kEnough || !known->has_time(work.shape(), placement));
}

// A point of the kernel's curves. Fewer rounds of blocks would show the begin and the end of the slice.
void Learner::learn_time(const Launched& launched) {
    constexpr uint64_t kLeastRounds = 2;
    const profiler::Placement& place = launched.placement;
    profiles::KnownKernel& known = *launched.function->known;
    if (!launched.even || !launched.by_itself || !dispatcher_.explores() ||
        launched.blocks < kLeastRounds * static_cast<uint64_t>(place.sms * place.ctas_per_sm) ||
        known.has_time(launched.shape, place))
        return;
    const uint64_t ns = launched.ended - launched.began;
    known.learnt(launched.shape, place, launched.blocks, ns);
    dispatcher_.notes().note(
        tenant_, fmt::format("learnt: {} with {} CTAs on each of {} SMs, alone: {} blocks in {:.3f} ms",
                             known.symbol(), place.ctas_per_sm, place.sms, launched.blocks,
                             static_cast<double>(ns) / 1e6));
}

void Learner::learn_slice(const Launched& launched) {
    const auto places = static_cast<uint64_t>(launched.placement.sms * launched.placement.ctas_per_sm);
    const std::optional<uint64_t> cost =
        slice_cost_.next({launched.slice_of, launched.began, launched.ended, launched.at_work,
                          std::min(places, launched.workers)});
    if (!cost) return;
    launched.function->known->sliced(launched.shape, *cost);
}

// The last launch in flight mostly causes the time that a stop takes, so it is attributed to that. An average
// over the last few stops.
void Learner::stopped(const Preemptor::Stop& stop, uint64_t over_ns, uint64_t lost) {
    dispatcher_.notes().stopped(tenant_, stop.name, stop.said_ns, over_ns, std::exchange(longest_, {}), lost);
    ManagedFunction* const function = stop.unmanaged ? nullptr : last().function;
    if (!function) return;
    const uint64_t took = over_ns - stop.said_ns;
    const auto learn = [&](std::atomic<uint64_t>& average) {
        const uint64_t before = average.load(std::memory_order_relaxed);
        average.store(before ? (3 * before + took) / 4 : took, std::memory_order_relaxed);
    };
    learn(function->stop_ns);
    if (!stop.inside) learn(function->waited_ns);
    if (function->known) function->known->stopped(last().shape, took);
}

void Learner::forget_code() {
    for (Launched& each : launched_) each.function = nullptr;
    told_.clear();
    learning_ = false;
}

void Learner::take(ControlBlock& control, uint64_t stop_ns, bool goes_on) {
    if (!learning_ && !dispatcher_.maps() && !tenant_.trial.sweeps()) return;
    std::vector<smt::Mapping> mappings;
    uint64_t lost = 0;
    if (control.read_mappings(dispatcher_.device().errands(), &mappings, &lost) != CUDA_SUCCESS) return;
    if (mappings.empty()) {
        learning_ = learning_ && goes_on;
        return;
    }
    placement_.add(mappings, lost);
    if (stop_ns) note_longest(mappings, stop_ns);
    std::map<uint32_t, std::vector<smt::Mapping>> by_launch;
    for (const smt::Mapping& each : mappings) by_launch[each.launch].push_back(each);
    bool partial = false;
    for (const auto& [launch, workers] : by_launch) {
        Launched* const known = find(launch);
        if (!known) continue;
        if (known->function && !known->begun_anew) learn(*known, workers);
        partial |= known->seen < known->blocks;
        if (dispatcher_.maps()) dispatcher_.notes().mappings(tenant_, known->name, workers);
    }
    learning_ = learning_ && partial && ++partial_reads_ < kMostPartialReads;
}

// Considers the workers that a stop found at work: those that ended within it. The GPU's timer is not this
// process's clock. But the last worker ended before the stop was over, so a worker that ended more than
// `took_ns` earlier was gone when the stop began.
void Learner::note_longest(const std::vector<smt::Mapping>& workers, uint64_t took_ns) {
    uint64_t last = 0;
    for (const smt::Mapping& each : workers) last = std::max<uint64_t>(last, each.ended);
    for (const smt::Mapping& each : workers) {
        const Launched* const known = find(each.launch);
        const uint32_t chunk = known ? known->chunk : 1;
        // A worker without the time of its last ticket: the average of its tickets.
        const uint64_t ticket =
            each.last ? each.last : (each.ended - each.began) * chunk / std::max(each.blocks, chunk);
        if (each.ended + took_ns < last || ticket <= longest_.end_ns - longest_.start_ns) continue;
        longest_ = {each.ended - ticket, each.ended, chunk};
    }
}

// Called as mappings are read; reports a launch when all its workers are known, which may take several reads.
void Learner::learn_saturating(const Launched& launched, const std::vector<smt::Mapping>& workers) {
    std::vector<smt::Mapping>& told = told_[launched.id];
    told.insert(told.end(), workers.begin(), workers.end());
    if (launched.seen < launched.blocks) {
        if (told_.size() > kMostTold) told_.erase(told_.begin());  // some of its mappings will never come
        return;
    }
    ManagedFunction& function = *launched.function;
    const auto ctas = static_cast<uint32_t>(launched.placement.ctas_per_sm);
    const uint32_t multiprocessors = multiprocessors_of(tenant_, dispatcher_);
    if (function.enough.learn(launched.fits, ctas, multiprocessors,
                              {told.size(), launched.seen, time_of_multiprocessors(told, multiprocessors),
                               launched.stopped, late_part(told, uint64_t{ctas} * multiprocessors)}))
        dispatcher_.notes().saturating(tenant_, function.known ? function.known->symbol() : "a kernel",
                                       function.enough.next(launched.fits).ctas, launched.fits);
    told_.erase(launched.id);
}

// Learns how many blocks a ticket should stand for. When all workers are known and the launch was alone,
// learns how long it took.
void Learner::learn(Launched& launched, const std::vector<smt::Mapping>& workers) {
    ManagedFunction& function = *launched.function;
    uint64_t time = 0, blocks = 0;
    for (const smt::Mapping& each : workers) {
        time += each.ended - each.began;
        blocks += each.blocks;
        launched.workers += each.blocks > 0;
        launched.began = std::min<uint64_t>(launched.began, each.began);
        launched.ended = std::max<uint64_t>(launched.ended, each.ended);
    }
    if (blocks == 0) return;
    const uint64_t block_time = std::max<uint64_t>(1, time / blocks);
    const auto ctas = static_cast<uint32_t>(launched.placement.ctas_per_sm);
    launched.seen += blocks;
    launched.at_work += time;
    if (launched.slice_of && launched.seen == launched.blocks && function.known) {
        learn_slice(launched);
        learn_time(launched);
    }
    if (launched.fits) learn_saturating(launched, workers);
    // With fewer CTAs blocks take less time.
    if ((!tenant_.trial.sweeps() && !launched.slice_of && (launched.fits == 0 || launched.fits == ctas)) ||
        function.block_ns.load() == 0)
        function.block_ns.store(block_time);
    const bool alone = launched.alone && launched.alone == dispatcher_.alone();
    if (launched.seen != launched.blocks || !alone || !function.known || tenant_.trial.distorts()) return;
    function.known->ran(launched.shape, launched.placement, launched.blocks, launched.ended - launched.began);
}

}  // namespace smt::runtime::dispatch
