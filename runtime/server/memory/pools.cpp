// See pools.h.
#include "runtime/server/memory/pools.h"

#include <algorithm>

#include "runtime/protocol/try.h"
#include "runtime/server/memory/tenant_memory.h"

namespace smt::runtime::server {

Pools::Pools(const DriverApi& driver, TenantMemory& memory) : driver_(driver), memory_(memory) {
    pools_[kDefaultPool] = {};
}

Pools::Pool* Pools::find(uint64_t pool) {
    auto found = pools_.find(pool ? pool : current_);
    return found == pools_.end() ? nullptr : &found->second;
}

const Pools::Pool* Pools::find(uint64_t pool) const { return const_cast<Pools*>(this)->find(pool); }

uint64_t Pools::create(uint64_t most_bytes) {
    std::lock_guard lock(mutex_);
    uint64_t pool = next_;
    next_ += 0x10;
    pools_[pool].most = most_bytes;
    return pool;
}

// Allocated blocks stay allocated. No pool counts them from then on.
CUresult Pools::destroy(uint64_t pool) {
    std::lock_guard lock(mutex_);
    if (pool == kDefaultPool) return CUDA_ERROR_INVALID_VALUE;
    if (pools_.erase(pool) == 0) return CUDA_ERROR_INVALID_VALUE;
    if (current_ == pool) current_ = kDefaultPool;
    update_threshold();
    return CUDA_SUCCESS;
}

CUresult Pools::set_current(uint64_t pool) {
    std::lock_guard lock(mutex_);
    if (!find(pool)) return CUDA_ERROR_INVALID_VALUE;
    if (pool) current_ = pool;
    return CUDA_SUCCESS;
}

uint64_t Pools::current() const {
    std::lock_guard lock(mutex_);
    return current_;
}

CUresult Pools::allocate(uint64_t pool, uint64_t bytes, CUstream stream, CUdeviceptr* address) {
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    {
        std::lock_guard lock(mutex_);
        const Pool* from = find(pool);
        if (!from) return CUDA_ERROR_INVALID_VALUE;
        if (from->most && (bytes > from->most || from->used > from->most - bytes))
            return CUDA_ERROR_OUT_OF_MEMORY;
        if (pool == 0) pool = current_;
        if (reuse(stream, pool, bytes, address)) return CUDA_SUCCESS;
        collect_locked();
    }
    bool pending = false;
    CUresult status = memory_.allocate_at_once(bytes, address, &pending);  // may call collect()
    if (status == CUDA_ERROR_OUT_OF_MEMORY && pending) {
        {
            std::lock_guard lock(mutex_);
            if (reuse_behind_event(stream, pool, bytes, address)) return CUDA_SUCCESS;
        }
        status = memory_.allocate(bytes, address);
    }
    if (status != CUDA_SUCCESS) return status;
    std::lock_guard lock(mutex_);
    note_live(*address, {pool, memory_.find(*address).bytes, bytes});
    return CUDA_SUCCESS;
}

// Reuses a block that the same stream freed: later work of that stream runs after the free.
bool Pools::reuse(CUstream stream, uint64_t pool, uint64_t bytes, CUdeviceptr* address) {
    auto queue = pending_.find(stream);
    if (queue == pending_.end()) return false;
    auto freed = fitting(queue->second, bytes);
    if (freed == queue->second.end()) return false;
    *address = take_pending(queue->second, freed, pool, bytes);
    return true;
}

bool Pools::reuse_behind_event(CUstream stream, uint64_t pool, uint64_t bytes, CUdeviceptr* address) {
    const Pool* from = find(pool);
    if (!from || !from->allows(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)) return false;
    for (auto& [other, queue] : pending_) {
        auto freed = fitting(queue, bytes);
        if (freed == queue.end() || driver_.cuStreamWaitEvent(stream, freed->event, 0) != CUDA_SUCCESS)
            continue;
        *address = take_pending(queue, freed, pool, bytes);
        return true;
    }
    return false;
}

// The smallest block that is large enough and not more than twice too large.
Pools::Queue::iterator Pools::fitting(Queue& queue, uint64_t bytes) {
    auto best = queue.end();
    for (auto it = queue.begin(); it != queue.end(); ++it) {
        uint64_t size = it->block.bytes;
        if (size < bytes || size / 2 > std::max(bytes, kBlockBytes)) continue;
        if (best == queue.end() || size < best->block.bytes) best = it;
    }
    return best;
}

CUdeviceptr Pools::take_pending(Queue& queue, Queue::iterator freed, uint64_t pool, uint64_t bytes) {
    const Pending taken = *freed;
    queue.erase(freed);
    if (Pool* owner = find(taken.block.pool))
        owner->pending -= std::min(owner->pending, taken.block.requested);
    memory_.note_reuse(taken.address, taken.block.bytes, bytes);
    note_live(taken.address, {pool, taken.block.bytes, bytes});
    idle_events_.push_back(taken.event);
    freed_.erase(taken.address);
    return taken.address;
}

void Pools::note_live(CUdeviceptr address, Block block) {
    live_[address] = block;
    Pool* pool = find(block.pool);
    if (!pool) return;
    pool->used += block.requested;
    pool->used_high = std::max(pool->used_high, pool->used);
    pool->reserved = std::max(pool->reserved, in_steps(pool->used + pool->pending));
    pool->reserved_high = std::max(pool->reserved_high, pool->reserved);
}

CUresult Pools::free(CUdeviceptr address, CUstream stream) {
    if (memory_.graphs().owns(address)) return memory_.graphs().free(address, stream);
    std::lock_guard lock(mutex_);
    Block block{0, 0, 0};
    auto live = live_.find(address);
    if (live != live_.end()) {
        block = live->second;
    } else {
        BlockAllocator::Block found = memory_.find(address);
        if (found.bytes == 0 || found.base != address) return CUDA_ERROR_INVALID_VALUE;
        if (freed_.contains(address)) return CUDA_ERROR_INVALID_VALUE;
        block.bytes = block.requested = found.bytes;
    }
    CUevent event = nullptr;
    CUresult status = take_event(&event);
    if (status == CUDA_SUCCESS) status = driver_.cuEventRecord(event, stream);
    if (status) {
        if (event) idle_events_.push_back(event);
        return status;
    }
    if (live != live_.end()) live_.erase(live);
    if (auto pool = pools_.find(block.pool); pool != pools_.end()) {
        pool->second.used -= std::min(pool->second.used, block.requested);
        pool->second.pending += block.requested;
    }
    freed_.insert(address);
    pending_[stream].push_back({address, block, event});
    return CUDA_SUCCESS;
}

CUresult Pools::forget(CUdeviceptr address) {
    std::lock_guard lock(mutex_);
    if (freed_.contains(address)) return CUDA_ERROR_INVALID_VALUE;
    auto live = live_.find(address);
    if (live == live_.end()) return CUDA_SUCCESS;
    if (auto pool = pools_.find(live->second.pool); pool != pools_.end())
        pool->second.used -= std::min(pool->second.used, live->second.requested);
    live_.erase(live);
    return CUDA_SUCCESS;
}

CUresult Pools::take_event(CUevent* event) {
    if (idle_events_.empty()) return driver_.cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
    *event = idle_events_.back();
    idle_events_.pop_back();
    return CUDA_SUCCESS;
}

bool Pools::collect() {
    std::lock_guard lock(mutex_);
    collect_locked();
    return pending_.empty();
}

// A stream's frees complete in order, so the loop ends at the first pending one.
void Pools::collect_locked() {
    for (auto queue = pending_.begin(); queue != pending_.end();) {
        Queue& blocks = queue->second;
        while (!blocks.empty() && driver_.cuEventQuery(blocks.front().event) == CUDA_SUCCESS) {
            settle(blocks.front());
            blocks.pop_front();
        }
        queue = blocks.empty() ? pending_.erase(queue) : std::next(queue);
    }
}

void Pools::settle(const Pending& pending) {
    freed_.erase(pending.address);
    memory_.free(pending.address);
    idle_events_.push_back(pending.event);
    if (auto pool = pools_.find(pending.block.pool); pool != pools_.end())
        pool->second.pending -= std::min(pool->second.pending, pending.block.requested);
}

void Pools::shrink(Pool& pool, uint64_t keep) {
    pool.reserved = std::max(in_steps(pool.used + pool.pending), std::min(pool.reserved, keep));
}

CUresult Pools::trim(uint64_t handle, uint64_t bytes) {
    std::lock_guard lock(mutex_);
    collect_locked();
    Pool* pool = find(handle);
    if (!pool) return CUDA_ERROR_INVALID_VALUE;
    shrink(*pool, bytes > ~uint64_t{0} - kStepBytes ? bytes : in_steps(bytes));
    return CUDA_SUCCESS;
}

// Completed frees are collected first, because the driver would have released what is above the threshold by
// now.
CUresult Pools::get_attribute(uint64_t handle, CUmemPool_attribute attribute, uint64_t* value) {
    std::lock_guard lock(mutex_);
    collect_locked();
    Pool* pool = find(handle);
    if (!pool) return CUDA_ERROR_INVALID_VALUE;
    shrink(*pool, pool->threshold / kStepBytes * kStepBytes);
    switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
            *value = pool->allows(attribute);
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
            *value = pool->threshold;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
            *value = pool->reserved;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
            *value = pool->reserved_high;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
            *value = pool->used;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            *value = pool->used_high;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult Pools::set_attribute(uint64_t handle, CUmemPool_attribute attribute, uint64_t value) {
    std::lock_guard lock(mutex_);
    Pool* pool = find(handle);
    if (!pool) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
            pool->switches[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = value != 0;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
            pool->threshold = value;
            update_threshold();
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
            if (value != 0) return CUDA_ERROR_INVALID_VALUE;
            pool->reserved_high = pool->reserved;
            return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            if (value != 0) return CUDA_ERROR_INVALID_VALUE;
            pool->used_high = pool->used;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

// The tenant's memory keeps idle chunks up to the sum of the pools' release thresholds.
void Pools::update_threshold() {
    uint64_t sum = 0;
    for (const auto& [handle, pool] : pools_) sum += std::min(pool.threshold, ~uint64_t{0} - sum);
    memory_.keep(sum);
}

void Pools::over() {
    std::lock_guard lock(mutex_);
    for (auto& [stream, queue] : pending_)
        for (const Pending& pending : queue) settle(pending);
    pending_.clear();
}

void Pools::save(protocol::StateWriter& out) const {
    std::lock_guard lock(mutex_);
    std::vector<std::pair<uint64_t, Pool>> pools(pools_.begin(), pools_.end());
    std::vector<std::pair<uint64_t, Block>> live(live_.begin(), live_.end());
    out.scalar(current_);
    out.scalar(next_);
    out.scalar<uint64_t>(pools.size());
    for (const auto& [handle, pool] : pools) out.scalar(handle), out.scalar(pool);
    out.scalar<uint64_t>(live.size());
    for (const auto& [address, block] : live) out.scalar(address), out.scalar(block);
}

void Pools::restore(protocol::Reader& in) {
    std::lock_guard lock(mutex_);
    current_ = in.scalar<uint64_t>();
    next_ = in.scalar<uint64_t>();
    for (uint64_t left = in.scalar<uint64_t>(); left > 0 && in.good(); --left) {
        const auto handle = in.scalar<uint64_t>();
        pools_[handle] = in.scalar<Pool>();
    }
    for (uint64_t left = in.scalar<uint64_t>(); left > 0 && in.good(); --left) {
        const auto address = in.scalar<uint64_t>();
        live_[address] = in.scalar<Block>();
    }
    if (!pools_.contains(current_)) in.reject();
    update_threshold();
}

void Pools::clear() {
    over();
    std::lock_guard lock(mutex_);
    live_.clear();
    for (CUevent event : idle_events_) driver_.cuEventDestroy_v2(event);
    idle_events_.clear();
    pools_.clear();
    pools_[kDefaultPool] = {};
    current_ = kDefaultPool;
    update_threshold();
}

}  // namespace smt::runtime::server
