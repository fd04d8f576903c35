// A tenant's memory pools: cuMemAllocAsync and related calls, without the driver's pools, because all memory
// of a tenant lies in the tenant's own range.
//
// A block freed in a stream's order is pending until the event behind the free has completed. Until then only
// the same stream may reuse it, immediately, and where memory has run out another stream, which then waits
// for that event. After that any allocation may. Pools differ only in their attributes and counters; they
// share the tenant's memory.
//
// Any thread. Lock order: this object's, then the tenant's memory.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/protocol/state.h"

namespace smt::runtime::server {

class TenantMemory;

class Pools {
public:
    Pools(const DriverApi& driver, TenantMemory& memory);
    Pools(const Pools&) = delete;
    Pools& operator=(const Pools&) = delete;

    // Handles are numbers of the server's; 0 denotes the current pool.
    static constexpr uint64_t kDefaultPool = 0x706f6f6c00000010ull;
    uint64_t create(uint64_t most_bytes);  // 0: no limit of its own
    CUresult destroy(uint64_t pool);
    CUresult set_current(uint64_t pool);
    uint64_t current() const;

    CUresult allocate(uint64_t pool, uint64_t bytes, CUstream stream, CUdeviceptr* address);
    // INVALID_VALUE unless an allocation of the tenant starts there. The stream must not capture.
    CUresult free(CUdeviceptr address, CUstream stream);
    // Removes a block from its pool because cuMemFree frees it. No effect on memory of no pool.
    // INVALID_VALUE: it was freed already.
    CUresult forget(CUdeviceptr address);

    // Values are cuuint64_t; the reuse switches are 0 or 1.
    CUresult get_attribute(uint64_t pool, CUmemPool_attribute attribute, uint64_t* value);
    CUresult set_attribute(uint64_t pool, CUmemPool_attribute attribute, uint64_t value);

    // Lowers the reserved bytes to `bytes`, but not below the bytes in use or pending. Both are in steps.
    CUresult trim(uint64_t pool, uint64_t bytes);
    // The driver's pools grow and shrink in steps, which programs see in the reserved bytes.
    static constexpr uint64_t kStepBytes = 32ull << 20;
    static uint64_t in_steps(uint64_t bytes) { return (bytes + kStepBytes - 1) / kStepBytes * kStepBytes; }

    // Frees pending blocks with a completed event. False: others are still pending.
    bool collect();
    // Takeover. over(): the tenant's work is complete, and the driver need not be asked.
    void over();
    void save(protocol::StateWriter& out) const;
    void restore(protocol::Reader& in);
    void clear();  // frees all pending blocks and drops the pools; the tenant's work must be complete

private:
    struct Pool {
        uint64_t switches[3] = {1, 1, 1};  // CU_MEMPOOL_ATTR_REUSE_*
        uint64_t allows(CUmemPool_attribute reuse) const {
            return switches[reuse - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
        }
        uint64_t threshold = 0;
        uint64_t used = 0;
        uint64_t used_high = 0;
        uint64_t pending = 0;  // freed, the free not known to have completed
        // As the driver's pool would report: in steps; a wait releases what is above the threshold.
        uint64_t reserved = 0;
        uint64_t reserved_high = 0;
        uint64_t most = 0;
    };
    struct Block {
        uint64_t pool;
        uint64_t bytes;      // occupied
        uint64_t requested;  // counted by the pool
    };
    struct Pending {
        CUdeviceptr address;
        Block block;
        CUevent event;
    };
    using Queue = std::deque<Pending>;  // of one stream, oldest first

    Pool* find(uint64_t pool);
    const Pool* find(uint64_t pool) const;
    bool reuse(CUstream stream, uint64_t pool, uint64_t bytes, CUdeviceptr* address);
    bool reuse_behind_event(CUstream stream, uint64_t pool, uint64_t bytes, CUdeviceptr* address);
    static Queue::iterator fitting(Queue& queue, uint64_t bytes);
    CUdeviceptr take_pending(Queue& queue, Queue::iterator freed, uint64_t pool, uint64_t bytes);
    void note_live(CUdeviceptr address, Block block);
    CUresult take_event(CUevent* event);
    void collect_locked();
    void settle(const Pending& pending);
    static void shrink(Pool& pool, uint64_t keep);
    void update_threshold();

    const DriverApi& driver_;
    TenantMemory& memory_;

    mutable std::mutex mutex_;
    uint64_t current_ = kDefaultPool;
    uint64_t next_ = kDefaultPool + 0x10;
    std::map<uint64_t, Pool> pools_;
    std::unordered_map<CUdeviceptr, Block> live_;
    std::unordered_map<CUstream, Queue> pending_;
    std::unordered_set<CUdeviceptr> freed_;  // addresses in pending_
    std::vector<CUevent> idle_events_;
};

}  // namespace smt::runtime::server
