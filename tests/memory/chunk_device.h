// A device whose driver has memory in chunks only: the contents of each mapping are bytes of the test's.
// Calls of a function can be told to fail.
#pragma once

#include <atomic>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "runtime/device/device.h"

namespace smt::tests {

class ChunkDevice final : public runtime::device::Device {
public:
    static constexpr uint64_t kReserved = 0x7000000000;  // what a reservation gets
    std::map<uint64_t, std::vector<char>> mapped;        // by address
    uint64_t free_bytes = ~uint64_t{0};
    uint64_t held_bytes = 0;              // by handles and mappings
    std::map<std::string, int> fails_at;  // function -> which of its next calls fails, from 1
    std::atomic<int> pinned = 0;          // that exist
    int streams = 0;                      // likewise
    std::function<void()> pins;           // when memory is

    ChunkDevice() {
        the() = this;
        driver_.cuMemCreate = [](CUmemGenericAllocationHandle* handle, size_t bytes,
                                 const CUmemAllocationProp*, unsigned long long) {
            if (the()->fails("cuMemCreate") || bytes > the()->free_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
            *handle = ++the()->last_;
            the()->handles_[*handle] = bytes;
            return the()->take(bytes);
        };
        driver_.cuMemRelease = [](CUmemGenericAllocationHandle handle) {
            const auto found = the()->handles_.extract(handle);
            return the()->maps_.contains(handle) ? CUDA_SUCCESS : the()->give(found.mapped());
        };
        driver_.cuMemRetainAllocationHandle = [](CUmemGenericAllocationHandle* handle, void* address) {
            for (const auto& [each, base] : the()->maps_) {
                if (base != reinterpret_cast<uint64_t>(address)) continue;
                the()->handles_[each] = the()->mapped.at(base).size();
                return *handle = each, CUDA_SUCCESS;
            }
            return CUDA_ERROR_INVALID_VALUE;
        };
        driver_.cuMemGetInfo_v2 = [](size_t* free, size_t* total) {
            return *free = the()->free_bytes, *total = ~size_t{0}, CUDA_SUCCESS;
        };
        driver_.cuMemMap = [](CUdeviceptr base, size_t bytes, size_t, CUmemGenericAllocationHandle handle,
                              unsigned long long) {
            if (the()->fails("cuMemMap") || the()->mapped.contains(base)) return CUDA_ERROR_INVALID_VALUE;
            the()->maps_[handle] = base;
            the()->mapped[base] = std::vector<char>(bytes, char(0xa5));  // whatever it had before
            return CUDA_SUCCESS;
        };
        driver_.cuMemSetAccess = [](CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) {
            return the()->fails("cuMemSetAccess") ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
        };
        driver_.cuMemUnmap = [](CUdeviceptr base, size_t bytes) {
            if (the()->fails("cuMemUnmap") || the()->mapped.erase(base) == 0) return CUDA_ERROR_INVALID_VALUE;
            bool handle = false;  // which keeps the memory
            std::erase_if(the()->maps_, [&](const auto& each) {
                if (each.second != base) return false;
                handle = the()->handles_.contains(each.first);
                return true;
            });
            return handle ? CUDA_SUCCESS : the()->give(bytes);
        };
        driver_.cuMemcpyDtoHAsync_v2 = [](void* to, CUdeviceptr from, size_t bytes, CUstream) {
            if (the()->fails("cuMemcpyDtoHAsync")) return CUDA_ERROR_LAUNCH_FAILED;
            std::memcpy(to, the()->at(from, bytes), bytes);
            return CUDA_SUCCESS;
        };
        driver_.cuMemcpyHtoDAsync_v2 = [](CUdeviceptr to, const void* from, size_t bytes, CUstream) {
            if (the()->fails("cuMemcpyHtoDAsync")) return CUDA_ERROR_LAUNCH_FAILED;
            std::memcpy(the()->at(to, bytes), from, bytes);
            return CUDA_SUCCESS;
        };
        driver_.cuMemAddressReserve = [](CUdeviceptr* base, size_t, size_t, CUdeviceptr, unsigned long long) {
            *base = kReserved;
            return the()->fails("cuMemAddressReserve") ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
        };
        driver_.cuMemAddressFree = [](CUdeviceptr, size_t) { return CUDA_SUCCESS; };
        driver_.cuMemsetD8Async = [](CUdeviceptr to, unsigned char value, size_t bytes, CUstream) {
            if (the()->fails("cuMemsetD8Async")) return CUDA_ERROR_LAUNCH_FAILED;
            std::memset(the()->at(to, bytes), value, bytes);
            return CUDA_SUCCESS;
        };
        driver_.cuCtxGetStreamPriorityRange = [](int*, int*) { return CUDA_ERROR_NOT_SUPPORTED; };
        driver_.cuStreamCreate = [](CUstream* stream, unsigned) {
            if (the()->fails("cuStreamCreate")) return CUDA_ERROR_OUT_OF_MEMORY;
            ++the()->streams;
            *stream = nullptr;
            return CUDA_SUCCESS;
        };
        driver_.cuStreamSynchronize = [](CUstream) {
            return the()->fails("cuStreamSynchronize") ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
        };
        driver_.cuStreamDestroy_v2 = [](CUstream) { return --the()->streams, CUDA_SUCCESS; };
        driver_.cuMemHostRegister_v2 = [](void*, size_t, unsigned) {
            if (the()->fails("cuMemHostRegister")) return CUDA_ERROR_OUT_OF_MEMORY;
            if (the()->pins) the()->pins();
            return ++the()->pinned, CUDA_SUCCESS;
        };
        driver_.cuMemHostUnregister = [](void*) {
            // What the table's gate says while a stream waits (device/cuda/context_wide.h).
            if (the()->fails("cuMemHostUnregister")) return CUDA_ERROR_NOT_READY;
            return --the()->pinned, CUDA_SUCCESS;
        };
    }
    ~ChunkDevice() override { the() = nullptr; }
    CUresult enter_thread(runtime::device::Guest*, uint32_t) override { return CUDA_SUCCESS; }

    // A mapping with contents of its own, as the memory's owner makes it.
    void make(uint64_t base, uint64_t bytes) {
        mapped[base] = contents(base, bytes);
        take(bytes);
    }
    static std::vector<char> contents(uint64_t base, uint64_t bytes) {
        std::vector<char> all(bytes);
        for (uint64_t i = 0; i < bytes; ++i) all[i] = static_cast<char>((base >> 20) * 31 + i * 7 + (i >> 9));
        return all;
    }

private:
    static ChunkDevice*& the() {
        static ChunkDevice* device = nullptr;
        return device;
    }
    char* at(uint64_t address, uint64_t bytes) {
        auto& [base, contents] = *std::prev(mapped.upper_bound(address));
        return address + bytes <= base + contents.size() ? &contents.at(address - base) : nullptr;
    }
    bool fails(const char* name) {
        const auto found = fails_at.find(name);
        return found != fails_at.end() && --found->second == 0;
    }
    CUresult take(uint64_t bytes) {
        free_bytes -= bytes;
        held_bytes += bytes;
        return CUDA_SUCCESS;
    }
    CUresult give(uint64_t bytes) {
        free_bytes += bytes;
        held_bytes -= bytes;
        return CUDA_SUCCESS;
    }

    uint64_t last_ = 0;
    std::map<CUmemGenericAllocationHandle, uint64_t> handles_;  // -> bytes
    std::map<CUmemGenericAllocationHandle, uint64_t> maps_;     // of cuMemMap -> address
};

}  // namespace smt::tests
