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

void ManagedStream::read_mappings() {
    std::lock_guard lock(mutex_);
    take_mappings();
}

void ManagedStream::take_mappings() {
    if (!learning_ && !dispatcher_.maps()) return;
    std::vector<smt::Mapping> mappings;
    if (control_.read_mappings(dispatcher_.device().errands(), &mappings) != CUDA_SUCCESS || mappings.empty()) return;
    std::map<uint32_t, std::vector<smt::Mapping>> by_launch;
    for (const smt::Mapping& each : mappings) by_launch[each.launch].push_back(each);
    for (const auto& [launch, workers] : by_launch) {
        const Launched& known = launched_[launch % launched_.size()];
        if (known.function) learn(*known.function, workers);
        if (dispatcher_.maps()) dispatcher_.report(*tenant_, known.name, workers);
    }
    learning_ = false;
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
