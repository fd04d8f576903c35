// The host's side of smt::Control (rewriter/device/smt_worker.h): a piece of device memory, and the stream
// operations that write it while workers read it.
//
// Whoever calls sees to it that nobody else does; `control` is a stream on which nothing ever waits.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <mutex>
#include <vector>

#include "driver_api.gen.h"
#include "rewriter/device/smt_worker.h"

namespace smt::runtime::dispatch {

using QuotaTable = std::vector<uint8_t>;   // by multiprocessor; kNoQuota: as many as fit

// Device memory for control blocks. It is kept for the next stream: to free it, the driver waits until the whole
// context is idle and keeps everybody out meanwhile, also whoever would end a wait. Any thread.
class ControlMemory {
public:
    struct Piece {
        CUdeviceptr control = 0;
        CUdeviceptr map = 0;
    };
    // `map_entries`: of each piece's mapping ring, a power of two.
    ControlMemory(const DriverApi& driver, uint32_t map_entries) : driver_(driver), map_entries_(map_entries) {}
    ~ControlMemory();   // no stream is left
    ControlMemory(const ControlMemory&) = delete;
    ControlMemory& operator=(const ControlMemory&) = delete;

    const DriverApi& driver() const { return driver_; }
    uint32_t map_entries() const { return map_entries_; }
    CUresult take(Piece* piece);   // with whatever is in it
    void give(const Piece& piece);

private:
    const DriverApi& driver_;
    const uint32_t map_entries_;
    std::mutex mutex_;
    std::vector<Piece> free_;
};

class ControlBlock {
public:
    explicit ControlBlock(ControlMemory& memory) : memory_(memory), driver_(memory.driver()) {}
    ~ControlBlock();   // no worker is running
    ControlBlock(const ControlBlock&) = delete;
    ControlBlock& operator=(const ControlBlock&) = delete;

    // Ready when it returns, whatever its memory's last owner has written on `control`.
    CUresult open(CUstream control);
    smt::Control* address() const { return reinterpret_cast<smt::Control*>(piece_.control); }

    // As if never used, but for what the ring holds; in the order of `stream`.
    CUresult reset(CUstream stream);
    CUresult set_quotas(CUstream stream, const QuotaTable& quotas);   // no worker is running

    CUresult stop(CUstream control);
    CUresult change_quotas(CUstream control, const QuotaTable& quotas);   // workers are running

    // What the workers have left behind.
    struct State {
        uint32_t taken = 0;     // tickets
        uint32_t change = 0;    // the word's high half
        uint32_t refused = 0;
        uint32_t run() const { return taken - refused; }
    };
    // In the order of `stream`, to pinned memory: nobody need wait for it then.
    CUresult report(CUstream stream, State* pinned);
    // Whether all that was written on `control` had arrived by then. What arrives after a reset would stop
    // a launch that nobody meant to stop.
    bool up_to_date(const State& state) const { return state.change == said_; }
    // How many workers of a run with quotas have a place, now. Waits for the copy.
    CUresult read_residents(CUstream control, uint64_t* workers);
    // What was written to the ring since the last call, oldest first; so many were overwritten before.
    CUresult read_mappings(CUstream control, std::vector<smt::Mapping>* mappings, uint64_t* lost);

private:
    CUdeviceptr at(size_t offset) const { return piece_.control + offset; }

    ControlMemory& memory_;
    const DriverApi& driver_;
    ControlMemory::Piece piece_;
    uint32_t mapped_ = 0;    // entries read
    uint32_t change_ = 0;    // number of the last change
    uint32_t said_ = 0;      // what the word's high half was set to last
};

}  // namespace smt::runtime::dispatch
