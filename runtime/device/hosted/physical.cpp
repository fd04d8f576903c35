// Physical memory is a part of one file. Memory that may be shared with other processes has a file of its
// own, and a descriptor of that file is what is exported.
#include "runtime/device/hosted/physical.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <unordered_map>

#include "runtime/device/hosted/backend.h"

namespace smt::runtime::device::hosted {

namespace {

struct PhysicalState {
    int file = -1;
    uint64_t end = 0;
    uint64_t used = 0;
    uint64_t next_handle = 0x4d00;
    std::unordered_map<CUmemGenericAllocationHandle, Physical> physical;
};

PhysicalState& physical_state() {
    static PhysicalState* state = new PhysicalState;
    return *state;
}

bool grow_file(uint64_t bytes) {
    if (physical_state().file < 0) physical_state().file = memfd_create("device-memory", MFD_CLOEXEC);
    return physical_state().file >= 0 &&
           ftruncate(physical_state().file, static_cast<off_t>(physical_state().end + bytes)) == 0;
}

// A part of the common file, or a file of its own. 0 bytes: there is no room.
Physical make_physical(uint64_t bytes, bool shareable) {
    if (shareable) {
        const int file = memfd_create("shareable-device-memory", MFD_CLOEXEC);
        if (file < 0) return {};
        if (ftruncate(file, static_cast<off_t>(bytes)) != 0) return close(file), Physical{};
        return {file, 0, bytes, 1};
    }
    if (!grow_file(bytes)) return {};
    const Physical physical{-1, physical_state().end, bytes, 1};
    physical_state().end += bytes;
    return physical;
}

void soil(const Physical& physical) {
    void* view =
        mmap(nullptr, physical.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_of(physical), physical.offset);
    if (view == MAP_FAILED) return;
    backend().soil(view, physical.bytes);
    munmap(view, physical.bytes);
}

}  // namespace

int file_of(const Physical& physical) {
    return physical.own_file >= 0 ? physical.own_file : physical_state().file;
}

Physical* find_physical(CUmemGenericAllocationHandle handle) {
    auto found = physical_state().physical.find(handle);
    return found == physical_state().physical.end() ? nullptr : &found->second;
}

void drop_physical(CUmemGenericAllocationHandle handle) {
    auto found = physical_state().physical.find(handle);
    if (found == physical_state().physical.end() || --found->second.references != 0) return;
    if (found->second.own_file >= 0) {
        close(found->second.own_file);
    } else {
        fallocate(physical_state().file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, found->second.offset,
                  found->second.bytes);
    }
    physical_state().used -= found->second.bytes;
    physical_state().physical.erase(found);
}

bool take_memory(uint64_t bytes) {
    Lock lock(world());
    if (bytes > backend().memory_bytes() - physical_state().used) return false;
    physical_state().used += bytes;
    return true;
}

void give_memory(uint64_t bytes) {
    Lock lock(world());
    physical_state().used -= bytes;
}

}  // namespace smt::runtime::device::hosted

using namespace smt::runtime::device::hosted;

DRIVER_EXPORT CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
    if (!free || !total) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuMemGetInfo_v2);
    Lock lock(world());
    *total = backend().memory_bytes();
    *free = *total - physical_state().used;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp*,
                                                     CUmemAllocationGranularity_flags) {
    if (!granularity) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuMemGetAllocationGranularity);
    *granularity = kGranularity;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                                   const CUmemAllocationProp* wanted, unsigned long long) {
    if (!handle || !wanted) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuMemCreate, "bytes=%zx", bytes);
    if (bytes == 0 || bytes % kGranularity != 0 || wanted->location.id != 0) return CUDA_ERROR_INVALID_VALUE;
    if (!take_memory(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    Lock lock(world());
    const Physical physical =
        make_physical(bytes, wanted->requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (physical.bytes == 0) return physical_state().used -= bytes, CUDA_ERROR_OUT_OF_MEMORY;
    *handle = physical_state().next_handle++;
    physical_state().physical[*handle] = physical;
    soil(physical);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuMemExportToShareableHandle(void* shared, CUmemGenericAllocationHandle handle,
                                                    CUmemAllocationHandleType type, unsigned long long) {
    if (!shared || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuMemExportToShareableHandle);
    Lock lock(world());
    auto found = physical_state().physical.find(handle);
    if (found == physical_state().physical.end() || found->second.own_file < 0)
        return CUDA_ERROR_INVALID_VALUE;
    const int file = fcntl(found->second.own_file, F_DUPFD_CLOEXEC, 0);
    if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    *static_cast<int*>(shared) = file;
    return CUDA_SUCCESS;
}
// `shared` is the descriptor, which stays the caller's.
DRIVER_EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shared,
                                                      CUmemAllocationHandleType type) {
    if (!handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuMemImportFromShareableHandle);
    struct stat facts{};
    const int file = fcntl(static_cast<int>(reinterpret_cast<intptr_t>(shared)), F_DUPFD_CLOEXEC, 0);
    if (file < 0) return CUDA_ERROR_INVALID_VALUE;
    const bool known = fstat(file, &facts) == 0 && facts.st_size > 0;
    const uint64_t bytes = static_cast<uint64_t>(facts.st_size);
    if (!known || bytes % kGranularity != 0) return close(file), CUDA_ERROR_INVALID_VALUE;
    if (!take_memory(bytes)) return close(file), CUDA_ERROR_OUT_OF_MEMORY;
    Lock lock(world());
    *handle = physical_state().next_handle++;
    physical_state().physical[*handle] = {file, 0, bytes, 1};
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    DRIVER_ASKED(cuMemRelease);
    Lock lock(world());
    if (!physical_state().physical.contains(handle)) return CUDA_ERROR_INVALID_VALUE;
    drop_physical(handle);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                              CUmemGenericAllocationHandle handle) {
    if (!properties) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuMemGetAllocationPropertiesFromHandle);
    Lock lock(world());
    if (!physical_state().physical.contains(handle)) return CUDA_ERROR_INVALID_VALUE;
    *properties = {};
    properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return CUDA_SUCCESS;
}
