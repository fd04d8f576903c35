#include "runtime/device/physical_memory.h"

#include <sys/socket.h>
#include <unistd.h>

namespace smt::runtime::device {

void PhysicalMemory::keep_with(std::unique_ptr<keeper::Client> keeper, int pid) {
    keeper_ = std::move(keeper);
    pid_ = pid;
}

int PhysicalMemory::socket_for_another() const {
    int ends[2];
    if (!kept() || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return -1;
    const bool added = keeper_->add_client(ends[1]) == 0;
    close(ends[1]);
    if (added) return ends[0];
    close(ends[0]);
    return -1;
}

CUresult PhysicalMemory::make(uint64_t bytes, Made* made) {
    {
        std::lock_guard lock(mutex_);
        if (spare_.take(bytes, made)) return CUDA_SUCCESS;
    }
    const uint64_t before = trims_.load();
    const CUresult status = make_new(bytes, made);
    if (status != CUDA_ERROR_OUT_OF_MEMORY) return status;
    trim();
    return trims_.load() == before ? status : make_new(bytes, made);  // another thread may have trimmed
}

CUresult PhysicalMemory::make_new(uint64_t bytes, Made* made) {
    if (kept()) {
        keeper::Client::Given given;
        const int status = keeper_->create(bytes, &given);
        if (status == 0) {
            const CUresult imported = import(given, made);
            if (imported != CUDA_SUCCESS) forget(made->id);
            return imported;
        }
        if (status != keeper::kLost) return static_cast<CUresult>(status);
        lost_.store(true);
    }
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
    made->id = 0;
    if (lends_) {
        properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        const CUresult status = driver_.cuMemCreate(&made->handle, bytes, &properties, 0);
        if (status != CUDA_ERROR_NOT_SUPPORTED) return status;
        properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;  // this system has no such descriptors
    }
    return driver_.cuMemCreate(&made->handle, bytes, &properties, 0);
}

CUresult PhysicalMemory::import(const keeper::Client::Given& given, Made* made) const {
    const CUresult status =
        driver_.cuMemImportFromShareableHandle
            ? driver_.cuMemImportFromShareableHandle(
                  &made->handle, reinterpret_cast<void*>(static_cast<intptr_t>(given.file)),
                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
            : CUDA_ERROR_NOT_SUPPORTED;
    close(given.file);
    made->id = given.chunk.id;
    return status;
}

CUresult PhysicalMemory::find_all(std::vector<Found>* found) {
    std::vector<keeper::Client::Given> chunks;
    CUresult status = kept() ? static_cast<CUresult>(keeper_->list(&chunks)) : CUDA_ERROR_NOT_SUPPORTED;
    for (const keeper::Client::Given& each : chunks) {
        Found one;
        one.bytes = each.chunk.bytes;
        const CUresult imported = import(each, &one.made);
        if (imported == CUDA_SUCCESS)
            found->push_back(one);
        else if (status == CUDA_SUCCESS)
            status = imported;
    }
    if (status == CUDA_SUCCESS) return status;
    for (const Found& each : *found) driver_.cuMemRelease(each.made.handle);
    found->clear();
    return status;
}

void PhysicalMemory::forget(uint64_t id) {
    if (id != 0 && kept() && keeper_->release(id) == keeper::kLost) lost_.store(true);
}

void PhysicalMemory::give_back(const Made& made, uint64_t bytes) {
    if (made.handle == 0) return forget(made.id);
    std::vector<Made> left;
    {
        std::lock_guard lock(mutex_);
        left = spare_.add(made, bytes, SpareChunks::Clock::now());
    }
    release(left);
}

void PhysicalMemory::release(const std::vector<Made>& chunks) {
    for (const Made& each : chunks) {
        driver_.cuMemRelease(each.handle);
        forget(each.id);
    }
}

CUresult PhysicalMemory::room(size_t* free, size_t* total) const {
    const CUresult status = driver_.cuMemGetInfo_v2(free, total);
    std::lock_guard lock(mutex_);
    if (status == CUDA_SUCCESS) *free += spare_.bytes();
    return status;
}

void PhysicalMemory::trim() {
    const std::lock_guard one(trimming_);
    std::vector<Made> all;
    {
        std::lock_guard lock(mutex_);
        all = spare_.take_all();
    }
    release(all);
    if (!all.empty()) trims_.fetch_add(1);
}

void PhysicalMemory::trim_unused() {
    std::vector<Made> unused;
    {
        std::lock_guard lock(mutex_);
        unused = spare_.take_unused(SpareChunks::Clock::now());
    }
    release(unused);
}

std::string PhysicalMemory::news() {
    if (!keeper_ || told_) return {};
    if (keeper_->lost()) lost_.store(true);
    if (!lost_.load()) return {};
    const std::string how = keeper::how_it_ended(pid_);
    told_ = true;
    return "smt-keeper " + (how.empty() ? "no longer answers" : how) +
           ": what is mapped stays, new memory of tenants is the server's own, and ends with it";
}

}  // namespace smt::runtime::device
