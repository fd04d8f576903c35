#include "runtime/dispatch/control_block.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <utility>

#include "runtime/protocol/try.h"

namespace smt::runtime::dispatch {

namespace {

constexpr size_t kHighHalf = offsetof(smt::Control, word) + 4;
constexpr size_t kRefused = offsetof(smt::Control, refused);
static_assert(kRefused % 8 == 0 && offsetof(smt::Control, verdict) == kRefused + 4);

CUstreamBatchMemOpParams clear(CUdeviceptr address, CUstreamBatchMemOpType write) {
    CUstreamBatchMemOpParams operation{};
    operation.writeValue.operation = write;
    operation.writeValue.address = address;
    return operation;
}

}  // namespace

ControlBlock::~ControlBlock() {
    if (base_) memory_.give(base_);
}

CUresult ControlBlock::open(CUstream control) {
    SMT_TRY(memory_.take(&base_));
    smt::Control fresh{};
    fresh.map_mask = memory_.map_entries() - 1;
    fresh.map = reinterpret_cast<smt::Mapping*>(at(sizeof(smt::Control)));
    // cuMemcpyHtoD returns while a copy from pageable memory is still under way. If such a copy arrived
    // behind the first launch, it would set the count of tickets back.
    CUresult status = driver_.cuMemcpyHtoDAsync_v2(base_, &fresh, sizeof fresh, control);
    return status == CUDA_SUCCESS ? driver_.cuStreamSynchronize(control) : status;
}

CUresult ControlBlock::reset(CUstream stream) {
    change_ = said_ = 0;
    std::array operations{clear(at(kRefused), CU_STREAM_MEM_OP_WRITE_VALUE_64),
                          clear(at(offsetof(smt::Control, word)), CU_STREAM_MEM_OP_WRITE_VALUE_64),
                          clear(at(offsetof(smt::Control, abandoned)), CU_STREAM_MEM_OP_WRITE_VALUE_32)};
    const bool abandoned = std::exchange(inside_, false);
    return driver_.cuStreamBatchMemOp_v2(stream, abandoned ? operations.size() : operations.size() - 1,
                                         operations.data(), 0);
}

CUresult ControlBlock::set_quotas(CUstream stream, const QuotaTable& quotas) {
    std::array<uint8_t, smt::kMaxSms> table{};
    std::copy_n(quotas.begin(), std::min(quotas.size(), table.size()), table.begin());
    // From pageable memory: the driver has taken its copy when the call returns.
    return driver_.cuMemcpyHtoDAsync_v2(at(offsetof(smt::Control, quota)), table.data(), table.size(),
                                        stream);
}

CUresult ControlBlock::stop(CUstream control, bool inside) {
    said_ = ++change_ | (inside ? smt::kStopInside : smt::kStopBit);
    inside_ |= inside;
    return driver_.cuStreamWriteValue32_v2(control, at(kHighHalf), said_, 0);
}

CUresult ControlBlock::change_quotas(CUstream control, const QuotaTable& quotas) {
    SMT_TRY(set_quotas(control, quotas));
    said_ = ++change_;
    return driver_.cuStreamWriteValue32_v2(control, at(kHighHalf), said_, 0);
}

CUresult ControlBlock::report(CUstream stream, State* pinned) {
    static_assert(offsetof(smt::Control, word) == 0 && offsetof(smt::Control, refused) == 8 &&
                  sizeof(State) == 12);
    return driver_.cuMemcpyDtoHAsync_v2(pinned, base_, sizeof(State), stream);
}

CUresult ControlBlock::read(CUstream control, size_t offset, void* to, size_t bytes) const {
    SMT_TRY(driver_.cuMemcpyDtoHAsync_v2(to, at(offset), bytes, control));
    return driver_.cuStreamSynchronize(control);
}

CUresult ControlBlock::read_abandoned(CUstream control, uint32_t* first) {
    *first = ~0u;
    if (!inside_) return CUDA_SUCCESS;
    uint32_t word = 0;
    SMT_TRY(read(control, offsetof(smt::Control, abandoned), &word, sizeof word));
    *first = ~word;
    return CUDA_SUCCESS;
}

CUresult ControlBlock::read_residents(CUstream control, uint64_t* workers) {
    std::array<uint32_t, smt::kMaxSms> on_each{};
    SMT_TRY(read(control, offsetof(smt::Control, resident), on_each.data(), sizeof on_each));
    *workers = std::accumulate(on_each.begin(), on_each.end(), uint64_t{0});
    return CUDA_SUCCESS;
}

CUresult ControlBlock::read_mappings(CUstream control, std::vector<smt::Mapping>* mappings, uint64_t* lost) {
    mappings->clear();
    *lost = 0;
    uint32_t written = 0;
    SMT_TRY(read(control, offsetof(smt::Control, mapped), &written, sizeof written));
    if (written == mapped_) return CUDA_SUCCESS;
    const uint32_t entries = memory_.map_entries();
    const uint32_t kept = std::min(written - mapped_, entries);
    const uint32_t first = (written - kept) & (entries - 1), before_end = std::min(kept, entries - first);
    std::vector<smt::Mapping> found(kept);
    const auto read_part = [&](uint32_t to, uint32_t from, uint32_t count) {
        if (count == 0) return CUDA_SUCCESS;
        return read(control, sizeof(smt::Control) + uint64_t{from} * sizeof found[0], found.data() + to,
                    count * sizeof found[0]);
    };
    SMT_TRY(read_part(0, first, before_end));
    SMT_TRY(read_part(before_end, 0, kept - before_end));
    *lost = written - mapped_ - kept;
    mapped_ = written;
    *mappings = std::move(found);
    return CUDA_SUCCESS;
}

}  // namespace smt::runtime::dispatch
