#include "runtime/server/memory/fence.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <vector>

#include "runtime/protocol/try.h"

namespace smt::runtime::server {

Fence::~Fence() {
    const DriverApi& driver = device_.driver();
    if (stream_) driver.cuStreamDestroy_v2(stream_);
    if (!block_) return;
    device_.freed(block_, block_bytes_);
    driver.cuMemUnmap(block_, block_bytes_);  // cuMemFree would wait for the whole context
    driver.cuMemAddressFree(block_, block_bytes_);
}

CUstream Fence::stream() {
    if (!device_.properties().keeps_sessions_apart) return device_.errands();
    if (!stream_) device_.driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING);
    return stream_;
}

CUresult Fence::open(uint64_t window, uint64_t bytes, FenceRecord* record, void* told) {
    const DriverApi& driver = device_.driver();
    window_ = window;
    window_bytes_ = bytes;
    record_ = record;
    const uint64_t table = bytes >> kFenceGranuleShift;
    block_bytes_ = (sizeof(FenceBlock) + table + kFenceGranule - 1) / kFenceGranule * kFenceGranule;
    CUdeviceptr base = 0;
    SMT_TRY(driver.cuMemAddressReserve(&base, block_bytes_, kFenceGranule, 0, 0));
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_.device()};
    CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle memory = 0;
    CUresult status = driver.cuMemCreate(&memory, block_bytes_, &properties, 0);
    if (status == CUDA_SUCCESS) {
        status = driver.cuMemMap(base, block_bytes_, 0, memory, 0);
        driver.cuMemRelease(memory);  // the mapping keeps the memory
        if (status == CUDA_SUCCESS) status = driver.cuMemSetAccess(base, block_bytes_, &access, 1);
    }
    if (status != CUDA_SUCCESS) return driver.cuMemAddressFree(base, block_bytes_), status;
    block_ = base;
    device_.allocated(block_, block_bytes_);
    device_.allocated(reinterpret_cast<uint64_t>(record), sizeof *record);
    device_.allocated(reinterpret_cast<uint64_t>(told), sizeof(uint32_t));
    FenceBlock block{};
    block.window = window;
    block.window_bytes = bytes;
    block.record = reinterpret_cast<uint64_t>(record);
    block.told = reinterpret_cast<uint64_t>(told);
    SMT_TRY(driver.cuMemsetD8Async(block_, 0, block_bytes_, stream()));
    return write(block_, &block, sizeof block);
}

CUresult Fence::write(CUdeviceptr to, const void* from, uint64_t bytes) {
    SMT_TRY(device_.driver().cuMemcpyHtoDAsync_v2(to, from, bytes, stream()));
    return device_.driver().cuStreamSynchronize(stream());
}

CUresult Fence::give_constant(CUdeviceptr constant, uint64_t image) {
    const FenceConstant value{block_, image};
    std::lock_guard lock(mutex_);
    return write(constant, &value, sizeof value);
}

CUresult Fence::mark(uint64_t base, uint64_t bytes, bool open) {
    // A copy: a fill may need an SM, and kernels of others may have all of them.
    const std::vector<char> marks(bytes >> kFenceGranuleShift, open ? 1 : 0);
    const uint64_t first = (base - window_) >> kFenceGranuleShift;
    return write(block_ + sizeof(FenceBlock) + first, marks.data(), marks.size());
}

// A kernel may read both words between any two of these.
CUresult Fence::write_run() {
    const auto longest = std::max_element(runs_.begin(), runs_.end(), [](const auto& a, const auto& b) {
        return a.second - a.first < b.second - b.first;
    });
    const uint64_t run = longest == runs_.end() ? 0 : longest->first;
    const uint64_t bytes = longest == runs_.end() ? 0 : longest->second - longest->first;
    constexpr uint64_t kNone = 0;
    const CUdeviceptr bytes_at = block_ + offsetof(FenceBlock, run_bytes);
    if (run != run_) {
        SMT_TRY(write(bytes_at, &kNone, sizeof kNone));
        SMT_TRY(write(block_ + offsetof(FenceBlock, run), &run, sizeof run));
        run_ = run;
    }
    return write(bytes_at, &bytes, sizeof bytes);
}

CUresult Fence::open_to(uint64_t base, uint64_t bytes) {
    std::lock_guard lock(mutex_);
    if (base - window_ >= window_bytes_ || bytes > window_bytes_ - (base - window_)) return CUDA_SUCCESS;
    if (const CUresult status = mark(base, bytes, true); status != CUDA_SUCCESS)
        return mark(base, bytes, false), status;
    auto run = runs_.insert_or_assign(base, base + bytes).first;
    if (const auto next = std::next(run); next != runs_.end() && next->first == run->second) {
        run->second = next->second;
        runs_.erase(next);
    }
    if (run != runs_.begin()) {
        if (const auto before = std::prev(run); before->second == run->first) {
            before->second = run->second;
            runs_.erase(run);
        }
    }
    return write_run();
}

void Fence::close_to(uint64_t base, uint64_t bytes) {
    std::lock_guard lock(mutex_);
    auto run = runs_.upper_bound(base);
    if (run == runs_.begin() || (--run)->second < base + bytes) return;
    const auto [first, end] = *run;
    runs_.erase(run);
    if (first < base) runs_[first] = base;
    if (base + bytes < end) runs_[base + bytes] = end;
    write_run();
    mark(base, bytes, false);
}

std::optional<FenceRecord> Fence::fault() const {
    FenceRecord record;
    std::memcpy(&record, record_, sizeof record);
    return record.error ? std::optional(record) : std::nullopt;
}

}  // namespace smt::runtime::server
