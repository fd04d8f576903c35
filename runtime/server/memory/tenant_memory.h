// The device memory of one tenant: physical memory mapped into the tenant's own address range, so a pointer
// determines its tenant.
//
//   range   := { slab | large | reservation }, all multiples of kChunkBytes
//   slab    := one chunk, shared by small allocations (block_allocator.h): kChunkBytes, or larger where a
//              keeper makes it (device/physical_memory.h)
//   large   := one chunk for one allocation of more than kLargeBytes
//   reservation := addresses only; the application maps physical memory there itself
//
// A chunk that is new to the tenant is zeroed before use. Memory that the tenant freed may be reused for it
// with its old contents. Freed chunks are cached up to a bound, so a malloc and free pair needs no mapping.
// Chunks beyond the bound are given back (device/physical_memory.h), and all idle ones if any tenant runs out
// of memory.
//
// Any thread. A caller that frees memory has waited for the work that uses it. The caller keeps ownership of
// the range given to the constructor.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/device/device.h"
#include "runtime/protocol/handshake.h"
#include "runtime/protocol/state.h"
#include "runtime/server/memory/block_allocator.h"
#include "runtime/server/memory/block_store.h"
#include "runtime/server/memory/chunk_mover.h"
#include "runtime/server/memory/graph_memory.h"
#include "runtime/server/memory/memory_account.h"
#include "runtime/server/memory/physical_allocation.h"
#include "runtime/server/memory/pools.h"
#include "runtime/server/memory/tenant_addresses.h"
#include "runtime/server/objects/handles.h"

namespace smt::runtime::server {

inline constexpr uint64_t kBlockBytes = 512;         // alignment of allocations
inline constexpr uint64_t kChunkBytes = 2ull << 20;  // what the driver maps
inline constexpr uint64_t kLargeBytes = 1ull << 20;
inline constexpr uint64_t kCacheBytes = 256ull << 20;  // bound of the idle chunks' bytes

class Fence;  // fence.h

class TenantMemory {
public:
    // `tenant`: physical memory of all the tenant's programs. `blocks`: where chunks go that are moved out.
    // `host`: what counts them; tenants may hold more together than the device has then (swapper.h). Null:
    // they may not. `fence`: of the session, which lives as long; null: it has none.
    TenantMemory(device::Device& device, const Arena& arena, uint64_t base, uint64_t bytes,
                 MemoryAccountPointer tenant, std::shared_ptr<BlockStore> blocks, MemoryAccountPointer host,
                 Fence* fence = nullptr);
    ~TenantMemory();
    TenantMemory(const TenantMemory&) = delete;
    TenantMemory& operator=(const TenantMemory&) = delete;

    // Where there is no room it waits for the tenant's pending frees. at_once(): without, and says whether
    // there are some.
    CUresult allocate(uint64_t bytes, CUdeviceptr* address);
    CUresult allocate_at_once(uint64_t bytes, CUdeviceptr* address, bool* pending);
    CUresult free(CUdeviceptr address);  // INVALID_VALUE unless an allocation starts there
    // With oversubscription what others could make room with counts as free.
    CUresult info(uint64_t* free, uint64_t* total);
    // Bytes of the chunk for which the driver had no memory, of the calling thread's last allocate(); 0: it
    // found room, or failed for another reason.
    static uint64_t missed();
    // Writes an allocation that no work uses: zero but for these values. Complete when it returns.
    struct Value {
        uint64_t offset;
        const void* from;
        uint64_t bytes;
    };
    CUresult write(CUdeviceptr address, uint64_t bytes, const std::vector<Value>& values);
    // Within the device, of memory that no work uses. Complete when it returns.
    CUresult copy(CUdeviceptr to, CUdeviceptr from, uint64_t bytes);

    // Addresses for the application's own mappings. A hint that is not free is ignored.
    CUresult reserve(uint64_t bytes, uint64_t alignment, uint64_t hint, CUdeviceptr* address);
    CUresult release_reservation(CUdeviceptr address, uint64_t bytes);
    bool reserved(CUdeviceptr address, uint64_t bytes) const;  // inside one reservation
    // Records that the application mapped memory there.
    void note_mapping(CUdeviceptr address, uint64_t bytes, CUmemGenericAllocationHandle memory);
    void note_reuse(CUdeviceptr address, uint64_t block,
                    uint64_t bytes);  // a block serves another allocation
    // take_mappings() is called before the driver unmaps, restore_mappings() if the driver failed to.
    struct Mapping {
        uint64_t bytes;
        PhysicalPointer memory;
    };
    using Mappings = std::map<uint64_t, Mapping>;  // by base
    Mappings take_mappings(CUdeviceptr address, uint64_t bytes);
    void restore_mappings(Mappings mappings);

    // Counts device memory that the driver allocates for the tenant elsewhere (arrays, variables, a larger
    // stack), as long as the charge exists. OUT_OF_MEMORY beyond the limit. `charge` may hold bytes already.
    CUresult charge(uint64_t bytes, Charge* charge);
    // Keeps the charge of an object by its handle; take_held() is called before the object is destroyed.
    void hold(HandleKind kind, uint64_t handle, Charge charge);
    Charge take_held(HandleKind kind, uint64_t handle);

    // The application's physical memory (cuMemCreate) counts until its last handle and mapping are gone.
    void note_physical(CUmemGenericAllocationHandle handle, PhysicalPointer memory);
    // Records a further handle of the memory that is mapped at `mapped`.
    void retain_physical(CUmemGenericAllocationHandle memory, CUdeviceptr mapped);
    // release_physical() is called before the driver releases a handle, restore_physical() if it failed to.
    PhysicalPointer release_physical(CUmemGenericAllocationHandle handle);
    void restore_physical(CUmemGenericAllocationHandle handle, PhysicalPointer memory);
    // Zeroes new physical memory before the application gets it, through a temporary mapping.
    CUresult zero_physical(CUmemGenericAllocationHandle memory, uint64_t bytes);

    // Sharing between sessions (tenant_sharing.cpp). share(): the allocation that contains the address,
    // which may be opened until it is freed. INVALID_VALUE: there is none. open_shared(): maps it; once more
    // for a block that is open is the same address. close_shared(): as often; the session's work is complete.
    CUresult share(CUdeviceptr address, SharedBlockPointer* block);
    CUresult open_shared(const SharedBlockPointer& block, CUdeviceptr* address);
    CUresult close_shared(CUdeviceptr address);
    // The same for the application's physical memory. INVALID_VALUE: it was not asked for as exportable
    // (`exported`). The handle of import_physical() is the session's.
    CUresult share_physical(CUmemGenericAllocationHandle handle, bool exported, PhysicalPointer* memory);
    CUresult import_physical(const PhysicalPointer& memory, CUmemGenericAllocationHandle* handle);
    // Peer access (tenant_peers.cpp): share_peer() is share(), also of what the program mapped. open_peer():
    // the memory of another GPU's session is mapped at its addresses there, in place of what is
    // open_otherwise(): it was freed there. close_peer(): blocks that begin in the range; memory without an
    // open block is unmapped. Where memory is unmapped the session's work is complete.
    CUresult share_peer(CUdeviceptr address, SharedBlockPointer* block);
    bool open_otherwise(const SharedBlock& block) const;
    CUresult open_peer(const SharedBlock& block);
    CUresult close_peer(CUdeviceptr address, uint64_t bytes);
    bool peer_is_open(CUdeviceptr address) const;  // a block of open_peer() contains it
    bool exportable(CUmemGenericAllocationHandle handle) const;

    // The allocation or mapping that contains the address; bytes 0: none.
    BlockAllocator::Block find(CUdeviceptr address) const;
    // Whether the tenant may pass the range in calls.
    bool may_touch(CUdeviceptr address, uint64_t bytes) const { return own_.may_touch(address, bytes); }
    bool in_device_range(CUdeviceptr address, uint64_t bytes) const {
        return own_.in_device_range(address, bytes);
    }
    TenantAddresses& own() { return own_; }

    // Takeover. why_not_carried(): what cannot be mapped by another process, for people; empty: nothing.
    // save(): the tenant's threads stand still, and its work is complete. restore(): maps the keeper's chunks
    // where they were, which `claim` gives out by their ids; a handle is the caller's.
    using Claim = std::function<CUresult(uint64_t id, uint64_t bytes, CUmemGenericAllocationHandle* handle)>;
    std::string why_not_carried() const;
    void save(protocol::StateWriter& out);
    CUresult restore(protocol::Reader& in, const Claim& claim);

    // Suspension: all chunks move to host memory and back (chunk_mover.h), one after the other of these
    // calls. The tenant's threads stand still and its work is complete or stopped, from copy_out() until
    // forget_copies(). Idle chunks are freed. What the tenant maps by itself, and what the driver made for
    // it, stays.
    // Of the chunks that are here at least `least` bytes, or all, are copied; those that are away stay so.
    ChunkMover::Outcome copy_out(uint64_t least = ~uint64_t{0});
    void release_copied();  // of a chunk that the driver does not unmap the memory stays
    ChunkMover::Outcome bring_in();
    void forget_copies();
    // The same in steps, of some chunks each: choose() says which are enough, and what is idle it has freed.
    using Chunks = std::vector<ChunkMover::Chunk>;
    Chunks choose(uint64_t least, uint64_t* freed);
    ChunkMover::Outcome copy_out(const Chunks& chunks) { return mover_.copy_out(chunks); }
    std::vector<uint64_t> away() const { return mover_.away(); }
    uint64_t bytes_away(uint64_t base) const { return mover_.bytes(base); }
    ChunkMover::Outcome bring_in(const std::vector<uint64_t>& bases);
    uint64_t bytes_away() const { return mover_.bytes_away(); }
    bool away_is_pinned() const { return mover_.pinned(); }
    uint64_t bytes_in_files() const { return in_files_->load(std::memory_order_relaxed); }  // of those away
    uint64_t bytes_movable() const;  // of chunks on the device that copy_out() takes

    void clear();  // frees all memory and reservations, keeps the ranges
    void trim();   // gives cached chunks back, and what is spare to the driver
    // To be called before the memory is used: called before each chunk is given back, under a lock.
    void tell_returned(std::function<void()> told) { told_ = std::move(told); }
    void keep(uint64_t bytes);  // raises the bound kCacheBytes by that much (the pools' release threshold)
    uint64_t bytes_used() const { return account_->held() - mover_.bytes_away(); }  // on the device
    protocol::MemoryFigures figures() const;
    Pools& pools() { return pools_; }
    GraphMemory& graphs() { return graphs_; }

private:
    struct Chunk {
        uint64_t bytes;
        uint64_t requested;
    };
    struct Physical {
        PhysicalPointer memory;  // shared with its mappings
        uint64_t handles = 0;
    };
    // A block of another session that this one has mapped.
    struct Opened {
        std::weak_ptr<const SharedBlock> block;
        SharedBlockPointer foreign;  // the same, if no session of this GPU holds it
        PhysicalPointer memory;
        uint64_t base;   // of the mapping
        uint64_t bytes;  // of the block
        uint64_t times;  // opened, and not closed
    };
    // Memory of another GPU's session that kernels of this one access, by its base.
    struct PeerChunk {
        PhysicalPointer memory;
        uint64_t number;                         // SharedBlock::number
        std::map<CUdeviceptr, uint64_t> blocks;  // allocations in it -> bytes
    };
    using PeerChunks = std::map<uint64_t, PeerChunk>;
    struct PeerWindow {  // addresses of another session, reserved here
        uint64_t bytes = 0;
        size_t chunks = 0;  // that are mapped in it
    };
    // A chunk in the state of a takeover. Slabs have blocks.
    struct SavedChunk {
        enum class Kind : uint64_t { kSlab, kLarge, kCached } kind;
        uint64_t base;
        uint64_t bytes;
        uint64_t requested;  // of kLarge
        uint64_t id;         // the keeper's
    };
    using Lock = std::lock_guard<std::mutex>;

    CUresult try_allocate(uint64_t bytes, CUdeviceptr* address);
    uint64_t next_slab_bytes() const;
    CUresult allocate_large(uint64_t bytes, CUdeviceptr* address);
    CUresult make_chunk(uint64_t bytes, uint64_t* base);
    CUresult map_zeroed(uint64_t base, uint64_t bytes);
    CUresult map_and_zero(uint64_t base, uint64_t bytes, CUmemGenericAllocationHandle memory);
    CUresult map(uint64_t base, uint64_t bytes, CUmemGenericAllocationHandle memory);
    // Without that kernels may access it, which is open_to_kernels(); if that fails it is unmapped.
    CUresult map_closed(uint64_t base, uint64_t bytes, CUmemGenericAllocationHandle memory);
    CUresult open_to_kernels(uint64_t base, uint64_t bytes);
    CUresult restore_chunk(const SavedChunk& chunk, const Claim& claim);
    CUresult zero(uint64_t base, uint64_t bytes);
    CUmemLocation here() const;
    void drop_chunk(uint64_t base, uint64_t bytes);
    void unmap_chunk(uint64_t base, uint64_t bytes);
    // The caller of these five holds mutex_.
    Chunks movable() const;                     // largest first
    bool open_elsewhere(uint64_t chunk) const;  // another session has mapped it
    void unmap_opened(CUdeviceptr address, const Opened& opened);
    void forget_shared();
    CUresult map_peer(uint64_t base, const PhysicalPointer& memory);
    CUresult open_window(uint64_t base, uint64_t bytes);
    void leave_window(uint64_t base);
    void drop_peer_chunk(PeerChunks::const_iterator chunk);
    PeerChunks::const_iterator freed_peer(const SharedBlock& block) const;
    void unmap_left();
    bool may_unmap();  // of what the fence is closed to
    CUresult another_handle(CUmemGenericAllocationHandle handle, uint64_t bytes,
                            CUmemGenericAllocationHandle* another);
    void trim_to(uint64_t bound);
    uint64_t take_addresses(uint64_t bytes, uint64_t alignment, uint64_t hint);
    uint64_t idle_bytes() const { return cached_bytes_ + slabs_.idle_bytes(); }

    device::Device& device_;
    const DriverApi& driver_;
    const uint64_t base_;
    const uint64_t bytes_;
    const MemoryAccountPointer account_;  // physical memory of this program, cached chunks included
    TenantAddresses own_;
    Fence* const fence_;

    mutable std::mutex mutex_;  // guards the members below, except pools_ and graphs_
    BlockAllocator addresses_{kChunkBytes};
    BlockAllocator slabs_{kBlockBytes};
    std::map<uint64_t, Chunk> large_;
    // With a fence: dropped, and mapped until kernels that might still access them are over.
    std::map<uint64_t, uint64_t> left_;
    bool clearing_ = false;                      // nothing of the session is under way any more
    std::multimap<uint64_t, uint64_t> cached_;   // bytes -> base
    std::map<uint64_t, uint64_t> reservations_;  // base -> bytes
    Mappings mappings_;
    std::map<CUmemGenericAllocationHandle, Physical> physical_;
    std::map<std::pair<HandleKind, uint64_t>, Charge> held_;
    std::map<uint64_t, uint64_t> further_ranges_;  // base -> bytes; reserved when the device range was full
    std::map<uint64_t, uint64_t> kept_chunks_;     // base -> the keeper's id
    std::atomic<uint64_t> zeroed_bytes_{0}, zeroing_ns_{0};
    std::map<uint64_t, PhysicalPointer> shared_chunks_;  // base -> chunk that was shared ever
    std::map<CUdeviceptr, SharedBlockPointer> exported_;
    std::map<CUdeviceptr, Opened> opened_;  // by the address that the program has
    PeerChunks peer_chunks_;
    std::map<uint64_t, PeerWindow> peer_windows_;  // by their begin
    uint64_t cached_bytes_ = 0;
    uint64_t kept_ = 0;
    std::function<void()> told_;
    bool moves_ = false;  // chunks move or are away: none is freed

    const bool oversubscribes_;
    const StoredBlock::Bytes in_files_ = std::make_shared<std::atomic<uint64_t>>(0);
    ChunkMover mover_;  // guarded by mutex_, or by standing threads while moves_
    Pools pools_;
    GraphMemory graphs_;
    CUstream stream_ = nullptr;  // zeroes chunks, on devices that keep sessions apart
};

}  // namespace smt::runtime::server
