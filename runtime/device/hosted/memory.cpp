// Device memory: mapping physical memory is mmap at the reserved address. Pinned memory is the caller's own.
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <map>

#include "runtime/device/hosted/backend.h"
#include "runtime/device/hosted/physical.h"

namespace smt::runtime::device::hosted {

namespace {

constexpr uint64_t kMostAddresses = 1ull << 44;  // of one reservation

struct Mapping {
    uint64_t bytes;
    CUmemGenericAllocationHandle handle;
    CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
};
struct Registered {
    uint64_t bytes;
    unsigned flags;
};

struct MemoryState {
    std::map<CUdeviceptr, uint64_t> reservations;
    std::map<CUdeviceptr, Mapping> mappings;
    std::map<CUdeviceptr, uint64_t> allocations;  // cuMemAlloc
    std::map<uint64_t, Registered> registered;
    std::map<uint64_t, uint64_t> globals;
};

MemoryState& memory_state() {
    static MemoryState* state = new MemoryState;
    return *state;
}

template <typename Map>
typename Map::iterator containing(Map& map, uint64_t address,
                                  uint64_t (*bytes)(const typename Map::mapped_type&)) {
    auto after = map.upper_bound(address);
    if (after == map.begin()) return map.end();
    auto found = std::prev(after);
    return address - found->first < bytes(found->second) ? found : map.end();
}

uint64_t plain(const uint64_t& bytes) { return bytes; }
uint64_t of_registered(const Registered& registered) { return registered.bytes; }
uint64_t of_mapping(const Mapping& mapping) { return mapping.bytes; }

// Every mapping that starts within the range; they cannot be cut.
void unmap(CUdeviceptr address, uint64_t bytes) {
    auto it = memory_state().mappings.lower_bound(address);
    while (it != memory_state().mappings.end() && it->first < address + bytes) {
        void* place = mmap(reinterpret_cast<void*>(it->first), it->second.bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        if (place == MAP_FAILED) return;  // no room in the kernel's tables: the rest stays mapped, and known
        drop_physical(it->second.handle);
        it = memory_state().mappings.erase(it);
    }
}

}  // namespace

// Asks the kernel for the first and the last byte, so that a wild pointer is an error and no crash.
bool accessible(uint64_t address, uint64_t bytes) {
    if (bytes == 0) return true;
    char first = 0, last = 0;
    const iovec to[] = {{&first, 1}, {&last, 1}};
    const iovec from[] = {{reinterpret_cast<void*>(address), 1},
                          {reinterpret_cast<void*>(address + bytes - 1), 1}};
    return address + bytes >= address &&
           (process_vm_readv(getpid(), to, 2, from, 2, 0) == 2 || errno == EPERM);
}

bool known(uint64_t address, uint64_t bytes) {
    if (!backend().doubts_memory()) return true;
    if (address == 0 || address + bytes < address) return false;
    const auto within = [&](auto& map, auto size_of) {
        auto found = containing(map, address, size_of);
        return found != map.end() && bytes <= size_of(found->second) - (address - found->first);
    };
    if (within(memory_state().registered, of_registered) || within(memory_state().allocations, plain) ||
        within(memory_state().globals, plain)) {
        return true;
    }
    for (uint64_t end = address + bytes; address < end;) {  // mappings side by side are one
        auto found = containing(memory_state().mappings, address, of_mapping);
        if (found == memory_state().mappings.end() ||
            found->second.access != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return false;
        address = found->first + found->second.bytes;
    }
    return true;
}

bool registered(uint64_t address, uint64_t bytes) {
    auto found = containing(memory_state().registered, address, of_registered);
    return found != memory_state().registered.end() &&
           bytes <= of_registered(found->second) - (address - found->first);
}

bool touchable(uint64_t address, uint64_t bytes) {
    Lock lock(world());
    return known(address, bytes);
}

bool on_device(uint64_t address) {
    return containing(memory_state().mappings, address, of_mapping) != memory_state().mappings.end() ||
           containing(memory_state().allocations, address, plain) != memory_state().allocations.end() ||
           containing(memory_state().globals, address, plain) != memory_state().globals.end();
}

void know_global(uint64_t address, uint64_t bytes) {
    if (bytes) {
        memory_state().globals[address] = bytes;
    } else {
        memory_state().globals.erase(address);
    }
}

}  // namespace smt::runtime::device::hosted

using namespace smt::runtime::device::hosted;

DRIVER_EXPORT CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment,
                                           CUdeviceptr hint, unsigned long long) {
    if (!address) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuMemAddressReserve, "bytes=%zx hint=%llx", bytes, hint);
    if (bytes == 0 || bytes % kGranularity != 0 || bytes > kMostAddresses) return CUDA_ERROR_INVALID_VALUE;
    if ((alignment & (alignment - 1)) != 0 || alignment > kMostAddresses) return CUDA_ERROR_INVALID_VALUE;
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    // As on GPUs, a small range is anywhere, and a hint means a multiple of this size.
    constexpr uint64_t kHintGranule = 32ull << 20;
    void* place = MAP_FAILED;
    if (hint && bytes >= kHintGranule && hint % kHintGranule == 0)
        place = mmap(reinterpret_cast<void*>(hint), bytes, PROT_NONE, kFlags | MAP_FIXED_NOREPLACE, -1, 0);
    if (place == MAP_FAILED) {
        if (alignment < kGranularity) alignment = kGranularity;
        void* wide = mmap(nullptr, bytes + alignment, PROT_NONE, kFlags, -1, 0);
        if (wide == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
        const uint64_t start = reinterpret_cast<uint64_t>(wide);
        const uint64_t aligned = (start + alignment - 1) / alignment * alignment;
        if (aligned > start) munmap(wide, aligned - start);
        if (start + alignment > aligned)
            munmap(reinterpret_cast<void*>(aligned + bytes), start + alignment - aligned);
        place = reinterpret_cast<void*>(aligned);
    }
    *address = reinterpret_cast<CUdeviceptr>(place);
    Lock lock(world());
    memory_state().reservations[*address] = bytes;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
    DRIVER_ASKED(cuMemAddressFree, "%llx", address);
    CUresult status = CUDA_ERROR_INVALID_VALUE;
    backend().quietly([&] {
        Lock lock(world());
        auto found = memory_state().reservations.find(address);
        if (found == memory_state().reservations.end() || found->second != bytes) return;
        unmap(address, bytes);
        munmap(reinterpret_cast<void*>(address), bytes);
        memory_state().reservations.erase(found);
        status = CUDA_SUCCESS;
    });
    return status;
}
DRIVER_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuMemRetainAllocationHandle);
    Lock lock(world());
    auto mapping = containing(memory_state().mappings, reinterpret_cast<uint64_t>(address), of_mapping);
    if (mapping == memory_state().mappings.end()) return CUDA_ERROR_INVALID_VALUE;
    *handle = mapping->second.handle;
    ++find_physical(*handle)->references;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                                CUmemGenericAllocationHandle handle, unsigned long long) {
    DRIVER_ASKED(cuMemMap, "%llx bytes=%zx", address, bytes);
    Lock lock(world());
    Physical* physical = find_physical(handle);
    auto reserved = containing(memory_state().reservations, address, plain);
    if (!physical || bytes > physical->bytes || offset > physical->bytes - bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (reserved == memory_state().reservations.end() ||
        address + bytes > reserved->first + reserved->second) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (containing(memory_state().mappings, address, of_mapping) != memory_state().mappings.end())
        return CUDA_ERROR_ALREADY_MAPPED;
    void* place = mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
                       file_of(*physical), static_cast<off_t>(physical->offset + offset));
    if (place == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    ++physical->references;
    memory_state().mappings[address] = {bytes, handle};
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
    DRIVER_ASKED(cuMemUnmap, "%llx bytes=%zx", address, bytes);
    CUresult status = CUDA_ERROR_INVALID_VALUE;
    backend().quietly([&] {
        Lock lock(world());
        if (!memory_state().mappings.contains(address)) return;
        unmap(address, bytes);
        status = CUDA_SUCCESS;
    });
    return status;
}
DRIVER_EXPORT CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access,
                                      size_t count) {
    DRIVER_ASKED(cuMemSetAccess, "%llx bytes=%zx", address, bytes);
    if (count == 0) return CUDA_ERROR_INVALID_VALUE;
    const int protection = access[0].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? PROT_READ | PROT_WRITE
                           : access[0].flags == CU_MEM_ACCESS_FLAGS_PROT_READ    ? PROT_READ
                                                                                 : PROT_NONE;
    Lock lock(world());
    auto reserved = containing(memory_state().reservations, address, plain);
    if (reserved == memory_state().reservations.end()) return CUDA_ERROR_INVALID_VALUE;
    if (bytes > reserved->first + reserved->second - address) return CUDA_ERROR_INVALID_VALUE;
    if (mprotect(reinterpret_cast<void*>(address), bytes, protection) != 0) return CUDA_ERROR_INVALID_VALUE;
    for (auto it = memory_state().mappings.lower_bound(address);
         it != memory_state().mappings.end() && it->first < address + bytes; ++it) {
        it->second.access = access[0].flags;
    }
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation*, CUdeviceptr address) {
    DRIVER_ASKED(cuMemGetAccess, "%llx", address);
    Lock lock(world());
    const auto found = containing(memory_state().mappings, address, of_mapping);
    if (found == memory_state().mappings.end()) return CUDA_ERROR_INVALID_VALUE;
    *flags = found->second.access;
    return CUDA_SUCCESS;
}

DRIVER_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
    if (!address) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuMemAlloc_v2, "bytes=%zx", bytes);
    if (!take_memory(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    *address = reinterpret_cast<CUdeviceptr>(aligned_alloc(512, (bytes + 511) & ~511ull));
    Lock lock(world());
    memory_state().allocations[*address] = bytes;
    lock.unlock();
    backend().allocated(*address, bytes);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
    DRIVER_ASKED(cuMemFree_v2);
    if (CUresult status = cuCtxSynchronize(); status != CUDA_SUCCESS) return status;
    uint64_t bytes = 0;
    {
        Lock lock(world());
        auto found = memory_state().allocations.find(address);
        if (found == memory_state().allocations.end()) return CUDA_ERROR_INVALID_VALUE;
        bytes = found->second;
        memory_state().allocations.erase(found);
    }
    give_memory(bytes);
    backend().freed(address, bytes);
    backend().quietly([&] { free(reinterpret_cast<void*>(address)); });
    return CUDA_SUCCESS;
}

DRIVER_EXPORT CUresult cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned flags) {
    DRIVER_ASKED(cuMemHostRegister_v2, "%p bytes=%zx", pointer, bytes);
    Lock lock(world());
    const uint64_t address = reinterpret_cast<uint64_t>(pointer);
    auto next = memory_state().registered.lower_bound(address);
    const bool overlaps =
        containing(memory_state().registered, address, of_registered) != memory_state().registered.end() ||
        (next != memory_state().registered.end() && next->first < address + bytes);
    if (overlaps) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    memory_state().registered[address] = {bytes, flags};
    lock.unlock();
    backend().allocated(address, bytes);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuMemHostUnregister(void* pointer) {
    DRIVER_ASKED(cuMemHostUnregister, "%p", pointer);
    Lock lock(world());
    auto found = memory_state().registered.find(reinterpret_cast<uint64_t>(pointer));
    if (found == memory_state().registered.end()) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    const uint64_t bytes = found->second.bytes;
    memory_state().registered.erase(found);
    lock.unlock();
    backend().freed(reinterpret_cast<uint64_t>(pointer), bytes);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* pointer, unsigned) {
    if (!address) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuMemHostGetDevicePointer_v2);
    Lock lock(world());
    *address = reinterpret_cast<CUdeviceptr>(pointer);
    return containing(memory_state().registered, *address, of_registered) == memory_state().registered.end()
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}
