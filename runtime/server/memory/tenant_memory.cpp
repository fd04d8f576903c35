// See tenant_memory.h.
//
// Cost of a new chunk: create, map, set access (tens of microseconds) and zeroing at memory speed (measured
// on an H200: 2 MiB in a few us, 1 GiB in 0.4 ms). The thread waits for the zeroing on a stream of the
// highest priority, so that another tenant's long kernel does not delay it.
#include "runtime/server/memory/tenant_memory.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <iterator>
#include <thread>

#include "runtime/protocol/try.h"
#include "runtime/server/memory/fence.h"
#include "runtime/server/memory/tenant_ranges.h"

namespace smt::runtime::server {

namespace {

constexpr uint64_t kFurtherRangeBytes = 64ull << 30;
// Of slabs that a keeper makes: a takeover maps each chunk anew, so there are to be few of them.
constexpr uint64_t kMostSlabBytes = 64ull << 20;
constexpr uint64_t kSlabShare = 8;  // a new slab's part of what the tenant holds
constexpr auto kPendingNap = std::chrono::microseconds(100);
// A free may be behind a wait for what the program does after this call.
constexpr auto kLongestPending = std::chrono::seconds(10);

thread_local uint64_t missed_bytes = 0;  // TenantMemory::missed()

uint64_t chunk_multiple(uint64_t bytes) { return (bytes + kChunkBytes - 1) & ~(kChunkBytes - 1); }

// The entry of an ordered map base -> bytes that contains [address, address + bytes), or end().
template <typename Map, typename Size>
auto containing(const Map& map, uint64_t address, uint64_t bytes, Size size) {
    auto next = map.upper_bound(address);
    if (next == map.begin()) return map.end();
    auto found = std::prev(next);
    uint64_t skipped = address - found->first;
    uint64_t whole = size(found->second);
    return skipped < whole && bytes <= whole - skipped ? found : map.end();
}

uint64_t plain_size(uint64_t bytes) { return bytes; }
uint64_t mapped_bytes(const TenantMemory::Mapping& mapping) { return mapping.bytes; }

}  // namespace

TenantMemory::TenantMemory(device::Device& device, const Arena& arena, uint64_t base, uint64_t bytes,
                           MemoryAccountPointer tenant, std::shared_ptr<BlockStore> blocks,
                           MemoryAccountPointer host, Fence* fence)
    : device_(device),
      driver_(device.driver()),
      base_(base),
      bytes_(bytes),
      account_(std::make_shared<MemoryAccount>(0, std::move(tenant))),
      own_(arena, base, bytes),
      fence_(fence),
      oversubscribes_(host != nullptr),
      mover_(device, std::bind_front(&BlockStore::make, std::move(blocks), std::move(host), in_files_)),
      pools_(driver_, *this),
      graphs_(driver_, *this) {
    addresses_.add(base, bytes);
    TenantRanges::add(*this);
}

TenantMemory::~TenantMemory() {
    TenantRanges::remove(*this);
    clear();
    if (stream_) driver_.cuStreamDestroy_v2(stream_);
    for (auto [base, bytes] : further_ranges_) {
        device_.forgotten(base, bytes);
        driver_.cuMemAddressFree(base, bytes);
    }
}

CUresult TenantMemory::allocate(uint64_t bytes, CUdeviceptr* address) {
    const auto until = std::chrono::steady_clock::now() + kLongestPending;
    bool pending = false;
    CUresult status = allocate_at_once(bytes, address, &pending);
    while (status == CUDA_ERROR_OUT_OF_MEMORY && pending && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(kPendingNap);
        status = allocate_at_once(bytes, address, &pending);
    }
    return status;
}

// If memory runs out, all tenants return their idle memory. No lock is held meanwhile.
CUresult TenantMemory::allocate_at_once(uint64_t bytes, CUdeviceptr* address, bool* pending) {
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    missed_bytes = 0;
    CUresult status = try_allocate(bytes, address);
    if (status == CUDA_ERROR_OUT_OF_MEMORY) {
        *pending = !pools_.collect();
        graphs_.collect();
        TenantRanges::trim_all();
        status = try_allocate(bytes, address);
    }
    if (status == CUDA_SUCCESS) device_.allocated(*address, bytes);
    if (status != CUDA_ERROR_OUT_OF_MEMORY) missed_bytes = 0;
    return status;
}

uint64_t TenantMemory::missed() { return std::exchange(missed_bytes, 0); }

CUresult TenantMemory::try_allocate(uint64_t bytes, CUdeviceptr* address) {
    Lock lock(mutex_);
    uint64_t slab_bytes = next_slab_bytes();
    if (bytes > std::max(kLargeBytes, slab_bytes / kSlabShare)) return allocate_large(bytes, address);
    *address = slabs_.allocate(bytes);
    if (*address) return CUDA_SUCCESS;
    uint64_t slab = 0;
    CUresult status = make_chunk(slab_bytes, &slab);
    if (status == CUDA_ERROR_OUT_OF_MEMORY && slab_bytes > chunk_multiple(bytes))
        status = make_chunk(slab_bytes = chunk_multiple(bytes), &slab);
    if (status != CUDA_SUCCESS) return status;
    slabs_.add(slab, slab_bytes);
    *address = slabs_.allocate(bytes);
    return CUDA_SUCCESS;
}

uint64_t TenantMemory::next_slab_bytes() const {
    if (!device_.physical_memory().kept()) return kChunkBytes;
    return std::clamp(std::bit_floor(account_->held() / kSlabShare), kChunkBytes, kMostSlabBytes);
}

CUresult TenantMemory::allocate_large(uint64_t bytes, CUdeviceptr* address) {
    uint64_t chunk = chunk_multiple(bytes);
    if (chunk < bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    auto cached = cached_.lower_bound(chunk);
    if (cached != cached_.end() && cached->first - chunk <= chunk / 4) {
        auto [size, base] = *cached;
        cached_.erase(cached);
        cached_bytes_ -= size;
        large_[base] = {size, bytes};
        *address = base;
        return CUDA_SUCCESS;
    }
    uint64_t base = 0;
    SMT_TRY(make_chunk(chunk, &base));
    large_[base] = {chunk, bytes};
    *address = base;
    return CUDA_SUCCESS;
}

CUresult TenantMemory::free(CUdeviceptr address) {
    Lock lock(mutex_);
    exported_.erase(address);
    if (auto large = large_.find(address); large != large_.end()) {
        uint64_t bytes = large->second.bytes;
        large_.erase(large);
        device_.freed(address, bytes);
        if (open_elsewhere(address)) return drop_chunk(address, bytes), CUDA_SUCCESS;
        cached_.insert({bytes, address});
        cached_bytes_ += bytes;
    } else {
        uint64_t bytes = slabs_.release(address);
        if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
        device_.freed(address, bytes);
    }
    if (idle_bytes() > kCacheBytes + kept_)
        trim_to(kCacheBytes + kept_);
    else if (!moves_)
        unmap_left();
    return CUDA_SUCCESS;
}

// Takes addresses in the device range, else in a further range.
uint64_t TenantMemory::take_addresses(uint64_t bytes, uint64_t alignment, uint64_t hint) {
    if (hint && addresses_.allocate_at(hint, bytes)) return hint;
    if (uint64_t address = addresses_.allocate(bytes, alignment)) return address;
    if (fence_) return 0;  // its window ends with the device range
    uint64_t wanted = std::max(kFurtherRangeBytes, chunk_multiple(bytes));
    CUdeviceptr range = 0;
    if (driver_.cuMemAddressReserve(&range, wanted, std::max(alignment, kChunkBytes), 0, 0) != CUDA_SUCCESS)
        return 0;
    further_ranges_[range] = wanted;
    addresses_.add(range, wanted);
    own_.add(range, wanted, this);
    return addresses_.allocate(bytes, alignment);
}

CUresult TenantMemory::make_chunk(uint64_t bytes, uint64_t* base) {
    missed_bytes = 0;
    if (!account_->take(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t address = take_addresses(bytes, kChunkBytes, 0);
    CUresult status = address ? map_zeroed(address, bytes) : CUDA_ERROR_OUT_OF_MEMORY;
    if (address && status == CUDA_ERROR_OUT_OF_MEMORY) missed_bytes = bytes;
    if (status != CUDA_SUCCESS) {
        if (address) addresses_.release(address);
        account_->give(bytes);
        return status;
    }
    *base = address;
    return CUDA_SUCCESS;
}

CUresult TenantMemory::map_zeroed(uint64_t base, uint64_t bytes) {
    device::PhysicalMemory::Made memory;
    SMT_TRY(device_.physical_memory().make(bytes, &memory));
    CUresult status = map_and_zero(base, bytes, memory.handle);
    if (status == CUDA_SUCCESS) status = open_to_kernels(base, bytes);
    driver_.cuMemRelease(memory.handle);  // the mapping keeps the memory
    if (status) return device_.physical_memory().forget(memory.id), status;
    if (memory.id) kept_chunks_[base] = memory.id;
    return status;
}

CUresult TenantMemory::map_and_zero(uint64_t base, uint64_t bytes, CUmemGenericAllocationHandle memory) {
    SMT_TRY(map_closed(base, bytes, memory));
    CUresult status = zero(base, bytes);
    if (status) driver_.cuMemUnmap(base, bytes);
    return status;
}

CUresult TenantMemory::map(uint64_t base, uint64_t bytes, CUmemGenericAllocationHandle memory) {
    SMT_TRY(map_closed(base, bytes, memory));
    return open_to_kernels(base, bytes);
}

CUresult TenantMemory::map_closed(uint64_t base, uint64_t bytes, CUmemGenericAllocationHandle memory) {
    SMT_TRY(driver_.cuMemMap(base, bytes, 0, memory, 0));
    CUmemAccessDesc access{};
    access.location = here();
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CUresult status = driver_.cuMemSetAccess(base, bytes, &access, 1);
    if (status) driver_.cuMemUnmap(base, bytes);
    return status;
}

CUresult TenantMemory::zero_physical(CUmemGenericAllocationHandle memory, uint64_t bytes) {
    Lock lock(mutex_);
    uint64_t base = take_addresses(bytes, kChunkBytes, 0);
    if (base == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult status = map_and_zero(base, bytes, memory);
    if (status == CUDA_SUCCESS) status = driver_.cuMemUnmap(base, bytes);
    addresses_.release(base);
    return status;
}

CUmemLocation TenantMemory::here() const {
    CUmemLocation location{};
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = device_.device();
    return location;
}

CUresult TenantMemory::zero(uint64_t base, uint64_t bytes) {
    CUstream stream = device_.errands();
    if (device_.properties().keeps_sessions_apart) {  // a shared stream would order the sessions
        if (!stream_) driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING);
        stream = stream_;
    }
    const auto begin = std::chrono::steady_clock::now();
    SMT_TRY(driver_.cuMemsetD8Async(base, 0, bytes, stream));
    const CUresult status = driver_.cuStreamSynchronize(stream);
    zeroed_bytes_ += bytes;
    zeroing_ns_ +=
        static_cast<uint64_t>((std::chrono::steady_clock::now() - begin) / std::chrono::nanoseconds(1));
    return status;
}

// Gives idle chunks back, largest first, until at most `bound` is left. A state that was written of them is
// void before another tenant may have one.
void TenantMemory::trim_to(uint64_t bound) {
    if (moves_) return;
    unmap_left();
    while (idle_bytes() > bound && !cached_.empty()) {
        auto largest = std::prev(cached_.end());
        auto [bytes, base] = *largest;
        cached_.erase(largest);
        cached_bytes_ -= bytes;
        if (told_) told_();
        drop_chunk(base, bytes);
    }
    while (idle_bytes() > bound) {
        auto [base, bytes] = slabs_.take_idle_region();
        if (bytes == 0) return;
        if (told_) told_();
        drop_chunk(base, bytes);
    }
}

void TenantMemory::trim() {
    pools_.collect();
    graphs_.collect();
    {
        Lock lock(mutex_);
        trim_to(0);
    }
    device_.physical_memory().trim();
}

void TenantMemory::keep(uint64_t bytes) {
    Lock lock(mutex_);
    kept_ = std::min(bytes, ~uint64_t{0} - kCacheBytes);
}

CUresult TenantMemory::charge(uint64_t bytes, Charge* charge) {
    if (charge->take(account_, bytes)) return CUDA_SUCCESS;
    trim();
    return charge->take(account_, bytes) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void TenantMemory::hold(HandleKind kind, uint64_t handle, Charge charge) {
    Lock lock(mutex_);
    held_[{kind, handle}] = std::move(charge);
}

Charge TenantMemory::take_held(HandleKind kind, uint64_t handle) {
    Lock lock(mutex_);
    auto found = held_.extract({kind, handle});
    return found ? std::move(found.mapped()) : Charge();
}

void TenantMemory::retain_physical(CUmemGenericAllocationHandle memory, CUdeviceptr mapped) {
    Lock lock(mutex_);
    auto mapping = containing(mappings_, mapped, 1, mapped_bytes);
    Physical& physical = physical_[memory];
    if (!physical.memory && mapping != mappings_.end()) physical.memory = mapping->second.memory;
    ++physical.handles;
}

CUresult TenantMemory::reserve(uint64_t bytes, uint64_t alignment, uint64_t hint, CUdeviceptr* address) {
    if (fence_) return CUDA_ERROR_NOT_SUPPORTED;  // what the program maps there may have no access
    if (bytes == 0 || bytes % kChunkBytes != 0 || (alignment & (alignment - 1)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    Lock lock(mutex_);
    if (alignment && hint % alignment != 0) hint = 0;
    uint64_t found = take_addresses(bytes, alignment, hint);
    if (found == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    reservations_[found] = bytes;
    *address = found;
    return CUDA_SUCCESS;
}

CUresult TenantMemory::release_reservation(CUdeviceptr address, uint64_t bytes) {
    Lock lock(mutex_);
    auto found = reservations_.find(address);
    if (found == reservations_.end() || found->second != bytes) return CUDA_ERROR_INVALID_VALUE;
    auto mapping = mappings_.lower_bound(address);
    if (mapping != mappings_.end() && mapping->first < address + bytes) return CUDA_ERROR_INVALID_VALUE;
    reservations_.erase(found);
    addresses_.release(address);
    return CUDA_SUCCESS;
}

bool TenantMemory::reserved(CUdeviceptr address, uint64_t bytes) const {
    Lock lock(mutex_);
    return bytes != 0 && containing(reservations_, address, bytes, plain_size) != reservations_.end();
}

void TenantMemory::note_mapping(CUdeviceptr address, uint64_t bytes, CUmemGenericAllocationHandle memory) {
    Lock lock(mutex_);
    auto found = physical_.find(memory);
    mappings_[address] = {bytes, found == physical_.end() ? nullptr : found->second.memory};
    device_.allocated(address, bytes);
}

void TenantMemory::note_reuse(CUdeviceptr address, uint64_t block, uint64_t bytes) {
    {
        Lock lock(mutex_);
        exported_.erase(address);
    }
    device_.freed(address, block);
    device_.allocated(address, bytes);
}

TenantMemory::Mappings TenantMemory::take_mappings(CUdeviceptr address, uint64_t bytes) {
    Lock lock(mutex_);
    Mappings taken;
    auto each = mappings_.lower_bound(address);
    while (each != mappings_.end() && each->first < address + bytes) taken.insert(mappings_.extract(each++));
    for (const auto& [base, mapping] : taken) {
        device_.freed(base, mapping.bytes);
        exported_.erase(base);
    }
    return taken;
}

void TenantMemory::restore_mappings(Mappings mappings) {
    Lock lock(mutex_);
    for (const auto& [base, mapping] : mappings) device_.allocated(base, mapping.bytes);
    mappings_.merge(mappings);
}

BlockAllocator::Block TenantMemory::find(CUdeviceptr address) const {
    Lock lock(mutex_);
    auto large = containing(large_, address, 1, [](const Chunk& chunk) { return chunk.bytes; });
    if (large != large_.end()) return {large->first, large->second.bytes, large->second.requested};
    auto mapping = containing(mappings_, address, 1, mapped_bytes);
    if (mapping != mappings_.end()) return {mapping->first, mapping->second.bytes, mapping->second.bytes};
    return slabs_.find(address);
}

void TenantMemory::clear() {
    graphs_.clear();
    pools_.clear();
    Lock lock(mutex_);
    clearing_ = true;
    device_.freed(base_, bytes_);
    for (auto [base, bytes] : further_ranges_) device_.freed(base, bytes);
    forget_shared();
    for (const auto& [base, mapping] : mappings_) driver_.cuMemUnmap(base, mapping.bytes);
    mappings_.clear();
    physical_.clear();
    held_.clear();
    for (auto [base, bytes] : reservations_) addresses_.release(base);
    reservations_.clear();
    for (auto& [base, chunk] : large_) {
        cached_.insert({chunk.bytes, base});
        cached_bytes_ += chunk.bytes;
    }
    large_.clear();
    slabs_.release_all();
    moves_ = false;
    trim_to(0);
    clearing_ = false;
}

}  // namespace smt::runtime::server
