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

CUresult PhysicalMemory::make(uint64_t bytes, uint64_t address, Made* made) {
    if (kept()) {
        keeper::Client::Given given;
        const int status = keeper_->create(bytes, address, &given);
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
        one.address = each.chunk.address;
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
