// What workers wrote down of where they ran and how long they took: for the journal, and to learn how many
// blocks a ticket should stand for.
#include <algorithm>
#include <map>

#include "runtime/dispatch/dispatcher.h"
#include "runtime/dispatch/managed_stream.h"

namespace smt::runtime::dispatch {

namespace {

// A ticket's blocks take about so long: the word is then taken so rarely that it costs nothing, and a stop
// still comes soon. One block that takes longer is a ticket by itself.
constexpr uint64_t kTicketTime = 16'000;   // ns
constexpr uint64_t kMostChunk = 16;

}  // namespace

bool ManagedStream::learning() {
    std::lock_guard lock(mutex_);
    return learning_;
}

// Not while a stop is under way, which reading would delay; all is read at its end. Nor in a run with quotas: some who
// have their entry may not have filled it yet, and its end is soon enough.
void ManagedStream::read_mappings() {
    std::lock_guard lock(mutex_);
    if (state_ != State::kStopping && state_ != State::kRunning) take_mappings(0);
}

Placement::Sums ManagedStream::placement() {
    std::lock_guard lock(mutex_);
    return placement_.sums();
}

void ManagedStream::take_mappings(uint64_t stop_ns) {
    if (!learning_ && !dispatcher_.maps()) return;
    std::vector<smt::Mapping> mappings;
    uint64_t lost = 0;
    if (control_.read_mappings(dispatcher_.device().errands(), &mappings, &lost) != CUDA_SUCCESS || mappings.empty()) return;
    placement_.add(mappings, lost);
    if (stop_ns) note_longest(mappings, stop_ns);
    std::map<uint32_t, std::vector<smt::Mapping>> by_launch;
    for (const smt::Mapping& each : mappings) by_launch[each.launch].push_back(each);
    for (const auto& [launch, workers] : by_launch) {
        const Launched& known = launched_[launch % launched_.size()];
        if (known.function) learn(*known.function, workers);
        if (dispatcher_.maps()) dispatcher_.report(*tenant_, known.name, workers);
    }
    learning_ = false;
}

// Of the workers that a stop found at work: those that ended within it. The GPU's timer is not this process's clock, but
// the last of them ended before the stop was over, so nobody who ended by so much earlier was there.
void ManagedStream::note_longest(const std::vector<smt::Mapping>& workers, uint64_t took_ns) {
    uint64_t last = 0;
    for (const smt::Mapping& each : workers) last = std::max<uint64_t>(last, each.ended);
    for (const smt::Mapping& each : workers) {
        const uint32_t chunk = launched_[each.launch % launched_.size()].chunk;
        // A worker that does not say how long its last ticket took: as long as its others, on average.
        const uint64_t ticket = each.last ? each.last : (each.ended - each.began) * chunk / std::max(each.blocks, chunk);
        if (each.ended + took_ns < last || ticket <= longest_.end_ns - longest_.start_ns) continue;
        longest_ = {each.ended - ticket, each.ended, chunk};
    }
}

// How many blocks a ticket should stand for.
void ManagedStream::learn(ManagedFunction& function, const std::vector<smt::Mapping>& workers) {
    uint64_t time = 0, blocks = 0;
    for (const smt::Mapping& each : workers) time += each.ended - each.began, blocks += each.blocks;
    if (blocks == 0) return;
    const uint64_t block_time = std::max<uint64_t>(1, time / blocks);
    function.block_ns.store(block_time);
    function.chunk.store(static_cast<uint32_t>(std::clamp<uint64_t>((kTicketTime + block_time / 2) / block_time, 1, kMostChunk)));
}

}  // namespace smt::runtime::dispatch
