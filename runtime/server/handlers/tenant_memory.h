// The device memory of one tenant: physical memory mapped into the tenant's own address range, so
// that a pointer tells whose it is.
//
//   range   := { slab | large | reservation }, all multiples of kChunkBytes
//   slab    := one chunk of kChunkBytes, shared by small allocations (block_allocator.h)
//   large   := one chunk for one allocation of more than kLargeBytes
//   reservation := addresses only; the application maps physical memory there itself
//
// A chunk that is new to the tenant is zeroed before anybody gets it; what the tenant frees it may
// get back as it was. Freed chunks are cached up to a bound, so that a malloc and free pair costs
// no mapping, and given back beyond it, or as soon as ANY tenant runs out of memory.
//
// Any thread may call anything. Who frees memory has waited for the work that uses it. The range
// given to the constructor stays the caller's.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "driver_api.gen.h"
#include "runtime/device/device.h"
#include "runtime/server/call.h"
#include "runtime/server/handlers/block_allocator.h"
#include "runtime/server/handlers/graph_memory.h"
#include "runtime/server/handlers/pools.h"
#include "runtime/server/handlers/tenant_addresses.h"
#include "runtime/server/memory_account.h"

namespace smt::runtime::server::handlers {

inline constexpr uint64_t kBlockBytes = 512;         // alignment of what an application gets
inline constexpr uint64_t kChunkBytes = 2ull << 20;  // what the driver maps
inline constexpr uint64_t kLargeBytes = 1ull << 20;
inline constexpr uint64_t kCacheBytes = 256ull << 20;  // idle chunks kept

class TenantMemory {
public:
    // limit: bytes of physical memory; 0: the device's.
    TenantMemory(device::Device& device, const Arena& arena, uint64_t base, uint64_t bytes, uint64_t limit);
    ~TenantMemory();
    TenantMemory(const TenantMemory&) = delete;
    TenantMemory& operator=(const TenantMemory&) = delete;

    CUresult allocate(uint64_t bytes, CUdeviceptr* address);
    CUresult free(CUdeviceptr address);  // INVALID_VALUE unless an allocation starts there
    CUresult info(uint64_t* free, uint64_t* total);

    // Addresses for the application's own mappings. A hint that is not free is ignored.
    CUresult reserve(uint64_t bytes, uint64_t alignment, uint64_t hint, CUdeviceptr* address);
    CUresult release_reservation(CUdeviceptr address, uint64_t bytes);
    bool reserved(CUdeviceptr address, uint64_t bytes) const;  // inside one reservation
    // The application mapped memory there.
    void note_mapping(CUdeviceptr address, uint64_t bytes, CUmemGenericAllocationHandle memory);
    void note_reuse(CUdeviceptr address, uint64_t block, uint64_t bytes);   // of a block for another allocation
    // What is mapped there is about to go, or it did not: restore_mappings().
    struct Mapping {
        uint64_t bytes;
        SharedCharge charge;
    };
    using Mappings = std::map<uint64_t, Mapping>;   // by base
    Mappings take_mappings(CUdeviceptr address, uint64_t bytes);
    void restore_mappings(Mappings mappings);

    // Device memory that the driver takes for the tenant elsewhere (arrays, variables, a larger stack), as long as the
    // charge lives: OUT_OF_MEMORY beyond the limit. `charge` may hold some already.
    CUresult charge(uint64_t bytes, Charge* charge);
    // The same for an object that is known by a handle.
    void hold(HandleKind kind, uint64_t handle, Charge charge);
    Charge take_held(HandleKind kind, uint64_t handle);   // it is about to go

    // The application's physical memory (cuMemCreate): counted until the last handle and the last mapping is gone.
    void note_physical(CUmemGenericAllocationHandle memory, Charge charge);
    void retain_physical(CUmemGenericAllocationHandle memory, CUdeviceptr mapped);   // another handle of what is mapped there
    // A handle is about to go, or it did not: restore_physical().
    SharedCharge release_physical(CUmemGenericAllocationHandle memory);
    void restore_physical(CUmemGenericAllocationHandle memory, SharedCharge charge);
    // Zeroes physical memory that the application is about to get, through a mapping of its own.
    CUresult zero_physical(CUmemGenericAllocationHandle memory, uint64_t bytes);

    // The allocation or mapping that contains the address; bytes 0: none.
    BlockAllocator::Block find(CUdeviceptr address) const;
    // What the tenant may name in calls.
    bool may_touch(CUdeviceptr address, uint64_t bytes) const { return own_.may_touch(address, bytes); }
    TenantAddresses& own() { return own_; }

    void clear();               // frees all memory and reservations, keeps the ranges
    void trim();                // gives cached chunks back
    void keep(uint64_t bytes);  // cache that much more than kCacheBytes (the pools' release threshold)
    uint64_t bytes_used() const { return account_->held(); }
    Pools& pools() { return pools_; }
    GraphMemory& graphs() { return graphs_; }

private:
    struct Chunk {
        uint64_t bytes;
        uint64_t requested;
    };
    struct Physical {
        SharedCharge charge;   // its mappings have it too
        uint64_t handles = 0;
    };
    using Lock = std::lock_guard<std::mutex>;

    CUresult try_allocate(uint64_t bytes, CUdeviceptr* address);
    CUresult allocate_large(uint64_t bytes, CUdeviceptr* address);
    CUresult make_chunk(uint64_t bytes, uint64_t* base);
    CUresult map_zeroed(uint64_t base, uint64_t bytes);
    CUresult map_and_zero(uint64_t base, uint64_t bytes, CUmemGenericAllocationHandle memory);
    CUresult zero(uint64_t base, uint64_t bytes);
    CUmemLocation here() const;
    void drop_chunk(uint64_t base, uint64_t bytes);
    void trim_to(uint64_t bound);
    uint64_t take_addresses(uint64_t bytes, uint64_t alignment, uint64_t hint);
    uint64_t idle_bytes() const { return cached_bytes_ + slabs_.idle_bytes(); }

    device::Device& device_;
    const DriverApi& driver_;
    const uint64_t base_;
    const uint64_t bytes_;
    const MemoryAccountPointer account_;   // physical memory, cached chunks included
    TenantAddresses own_;

    mutable std::mutex mutex_;  // everything below
    BlockAllocator addresses_{kChunkBytes};
    BlockAllocator slabs_{kBlockBytes};
    std::map<uint64_t, Chunk> large_;
    std::multimap<uint64_t, uint64_t> cached_;     // bytes -> base
    std::map<uint64_t, uint64_t> reservations_;    // base -> bytes
    Mappings mappings_;
    std::map<CUmemGenericAllocationHandle, Physical> physical_;
    std::map<std::pair<HandleKind, uint64_t>, Charge> held_;
    std::map<uint64_t, uint64_t> further_ranges_;  // base -> bytes, reserved by us when the range was full
    uint64_t cached_bytes_ = 0;
    uint64_t kept_ = 0;

    Pools pools_;
    GraphMemory graphs_;
    CUstream stream_ = nullptr;  // zeroes chunks, where sessions are kept apart
};

}  // namespace smt::runtime::server::handlers
