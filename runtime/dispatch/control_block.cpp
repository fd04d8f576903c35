#include "runtime/dispatch/control_block.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace smt::runtime::dispatch {

namespace {

constexpr size_t kHighHalf = offsetof(smt::Control, word) + 4;
constexpr size_t kRefused = offsetof(smt::Control, refused);
static_assert(kRefused % 8 == 0 && offsetof(smt::Control, unused) == kRefused + 4);

CUstreamBatchMemOpParams write64(CUdeviceptr address, uint64_t value) {
    CUstreamBatchMemOpParams operation{};
    operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    operation.writeValue.address = address;
    operation.writeValue.value64 = value;
    return operation;
}

}  // namespace

ControlMemory::~ControlMemory() {
    for (const Piece& each : free_) {
        driver_.cuMemFree_v2(each.block);
        driver_.cuMemFree_v2(each.map);
    }
}

CUresult ControlMemory::take(Piece* piece) {
    {
        std::lock_guard lock(mutex_);
        if (!free_.empty()) {
            *piece = free_.back();
            free_.pop_back();
            return CUDA_SUCCESS;
        }
    }
    CUresult status = driver_.cuMemAlloc_v2(&piece->block, sizeof(smt::Control));
    if (status != CUDA_SUCCESS) return status;
    status = driver_.cuMemAlloc_v2(&piece->map, uint64_t{kMapEntries} * sizeof(smt::Mapping));
    if (status != CUDA_SUCCESS) driver_.cuMemFree_v2(std::exchange(piece->block, 0));
    return status;
}

void ControlMemory::give(const Piece& piece) {
    std::lock_guard lock(mutex_);
    free_.push_back(piece);
}

ControlBlock::~ControlBlock() {
    if (piece_.block) pieces_.give(piece_);
}

CUresult ControlBlock::open(CUstream control) {
    CUresult status = pieces_.take(&piece_);
    if (status != CUDA_SUCCESS) return status;
    smt::Control fresh{};
    fresh.map_mask = ControlMemory::kMapEntries - 1;
    fresh.map = reinterpret_cast<smt::Mapping*>(piece_.map);
    // cuMemcpyHtoD returns while a copy from pageable memory is still under way. One that arrived behind the first
    // launch would set the count of tickets back.
    status = driver_.cuMemcpyHtoDAsync_v2(piece_.block, &fresh, sizeof fresh, control);
    if (status == CUDA_SUCCESS) status = driver_.cuStreamSynchronize(control);
    return status;
}

CUresult ControlBlock::reset(CUstream stream) {
    change_ = said_ = 0;
    std::array operations{write64(at(kRefused), 0), write64(at(offsetof(smt::Control, word)), 0)};
    return driver_.cuStreamBatchMemOp_v2(stream, operations.size(), operations.data(), 0);
}

CUresult ControlBlock::set_quotas(CUstream stream, const QuotaTable& quotas) {
    std::array<uint8_t, smt::kMaxSms> table{};
    std::copy_n(quotas.begin(), std::min(quotas.size(), table.size()), table.begin());
    // From pageable memory: the driver has taken its copy when the call returns.
    return driver_.cuMemcpyHtoDAsync_v2(at(offsetof(smt::Control, quota)), table.data(), table.size(), stream);
}

CUresult ControlBlock::stop(CUstream control) {
    said_ = ++change_ | smt::kStopBit;
    return driver_.cuStreamWriteValue32_v2(control, at(kHighHalf), said_, 0);
}

CUresult ControlBlock::change_quotas(CUstream control, const QuotaTable& quotas) {
    if (CUresult status = set_quotas(control, quotas)) return status;
    said_ = ++change_;
    return driver_.cuStreamWriteValue32_v2(control, at(kHighHalf), said_, 0);
}

CUresult ControlBlock::report(CUstream stream, State* pinned) {
    static_assert(offsetof(smt::Control, word) == 0 && offsetof(smt::Control, refused) == 8 && sizeof(State) == 12);
    return driver_.cuMemcpyDtoHAsync_v2(pinned, piece_.block, sizeof(State), stream);
}

CUresult ControlBlock::read_mappings(CUstream control, std::vector<smt::Mapping>* mappings) {
    mappings->clear();
    if (!piece_.map) return CUDA_SUCCESS;
    uint32_t written = 0;
    CUresult status = driver_.cuMemcpyDtoHAsync_v2(&written, at(offsetof(smt::Control, mapped)), 4, control);
    if (status == CUDA_SUCCESS) status = driver_.cuStreamSynchronize(control);
    if (status != CUDA_SUCCESS || written == mapped_) return status;
    std::vector<smt::Mapping> ring(ControlMemory::kMapEntries);
    status = driver_.cuMemcpyDtoHAsync_v2(ring.data(), piece_.map, ring.size() * sizeof ring[0], control);
    if (status == CUDA_SUCCESS) status = driver_.cuStreamSynchronize(control);
    if (status != CUDA_SUCCESS) return status;
    if (written - mapped_ > ring.size()) mapped_ = written - ControlMemory::kMapEntries;
    for (; mapped_ != written; ++mapped_) mappings->push_back(ring[mapped_ & (ControlMemory::kMapEntries - 1)]);
    return CUDA_SUCCESS;
}

}  // namespace smt::runtime::dispatch
