// The host's side of smt::Control (rewriter/device/smt_worker.h): device memory of control blocks, and the
// stream operations that write a control block while workers read it.
//
// A ControlBlock is not thread-safe: the caller serializes. `control` is a stream on which nothing ever
// waits.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "driver_api.gen.h"
#include "rewriter/device/smt_worker.h"
#include "runtime/dispatch/memory_pool.h"

namespace smt::runtime::dispatch {

using QuotaTable = std::vector<uint8_t>;  // by SM; kNoQuota: as many as fit

// Device memory for control blocks, each with its mapping ring behind it. Any thread.
class ControlMemory : public MemoryPool {
public:
    static_assert(sizeof(smt::Control) % alignof(smt::Mapping) == 0);

    // `map_entries`: size of each mapping ring, a power of two.
    ControlMemory(const DriverApi& driver, uint32_t map_entries)
        : MemoryPool(driver, sizeof(smt::Control) + uint64_t{map_entries} * sizeof(smt::Mapping)),
          map_entries_(map_entries) {}

    uint32_t map_entries() const { return map_entries_; }

private:
    const uint32_t map_entries_;
};

class ControlBlock {
public:
    explicit ControlBlock(ControlMemory& memory) : memory_(memory), driver_(memory.driver()) {}
    ~ControlBlock();  // precondition: no worker is running
    ControlBlock(const ControlBlock&) = delete;
    ControlBlock& operator=(const ControlBlock&) = delete;

    // On return the block is ready, whatever the last user of its memory enqueued on `control`.
    CUresult open(CUstream control);
    smt::Control* address() const { return reinterpret_cast<smt::Control*>(base_); }

    // Resets everything but the mapping ring, in the order of `stream`.
    CUresult reset(CUstream stream);
    CUresult set_quotas(CUstream stream, const QuotaTable& quotas);  // precondition: no worker is running

    CUresult stop(CUstream control, bool inside);                        // smt::kInsideBit
    CUresult change_quotas(CUstream control, const QuotaTable& quotas);  // workers may be running

    // Ticket state, as the workers left it.
    struct State {
        uint32_t taken = 0;   // tickets
        uint32_t change = 0;  // high half of Control::word
        uint32_t refused = 0;
        uint32_t run() const { return taken - refused; }
    };
    // Enqueues a copy to pinned memory in the order of `stream`. Does not wait.
    CUresult report(CUstream stream, State* pinned);
    // Whether all writes on `control` had arrived when `state` was read. A write that arrives after a reset
    // would stop an unrelated launch.
    bool up_to_date(const State& state) const { return state.change == said_; }
    // The first ticket that was taken back since the reset; all workers have left. ~0: none was. Waits for
    // the copy, if a stop with kInsideBit was written.
    CUresult read_abandoned(CUstream control, uint32_t* first);
    // Number of workers of a quota-mode run that have a place now. Waits for the copy.
    CUresult read_residents(CUstream control, uint64_t* workers);
    // Entries written to the ring since the last call, oldest first. `lost`: entries overwritten before they
    // were read. Waits for the copies.
    CUresult read_mappings(CUstream control, std::vector<smt::Mapping>* mappings, uint64_t* lost);

private:
    CUdeviceptr at(size_t offset) const { return base_ + offset; }
    CUresult read(CUstream control, size_t offset, void* to, size_t bytes) const;  // waits for the copy

    ControlMemory& memory_;
    const DriverApi& driver_;
    CUdeviceptr base_ = 0;  // 0: not open
    uint32_t mapped_ = 0;   // entries read so far
    uint32_t change_ = 0;   // number of the last change
    uint32_t said_ = 0;     // last value written to the word's high half
    bool inside_ = false;   // a stop with kInsideBit was written since the reset
};

}  // namespace smt::runtime::dispatch
