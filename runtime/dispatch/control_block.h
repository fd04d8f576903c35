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

// Device memory of control blocks that are gone, for those to come: to free it would wait until the whole device is
// idle, and hold up everybody's calls meanwhile. Any thread.
class ControlMemory {
public:
    struct Piece {
        CUdeviceptr block = 0;
        CUdeviceptr map = 0;   // 0, or a mapping ring
    };
    explicit ControlMemory(const DriverApi& driver) : driver_(driver) {}
    ~ControlMemory();
    ControlMemory(const ControlMemory&) = delete;
    ControlMemory& operator=(const ControlMemory&) = delete;

    CUresult take(Piece* piece);
    void give(const Piece& piece);

    static constexpr uint32_t kMapEntries = 1u << 12;

private:
    const DriverApi& driver_;
    std::mutex mutex_;
    std::vector<Piece> free_;
};

class ControlBlock {
public:
    ControlBlock(const DriverApi& driver, ControlMemory& pieces) : driver_(driver), pieces_(pieces) {}
    ~ControlBlock();
    ControlBlock(const ControlBlock&) = delete;
    ControlBlock& operator=(const ControlBlock&) = delete;

    CUresult open(CUstream control);   // ready when it returns
    smt::Control* address() const { return reinterpret_cast<smt::Control*>(piece_.block); }

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
    // What was written to the ring since the last call, oldest first; what was overwritten is lost.
    CUresult read_mappings(CUstream control, std::vector<smt::Mapping>* mappings);

private:
    CUdeviceptr at(size_t offset) const { return piece_.block + offset; }

    const DriverApi& driver_;
    ControlMemory& pieces_;
    ControlMemory::Piece piece_;
    uint32_t mapped_ = 0;    // entries read
    uint32_t change_ = 0;    // number of the last change
    uint32_t said_ = 0;      // what the word's high half was set to last
};

}  // namespace smt::runtime::dispatch
