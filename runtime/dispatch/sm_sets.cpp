#include "runtime/dispatch/sm_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>

#include "runtime/device/cores.h"

namespace smt::runtime::dispatch {

namespace {

using namespace std::chrono_literals;

// Each block of the probe sets a bit for its SM and stays there for `spin` ns. All blocks together fill the
// set, so if other work leaves no place some blocks wait for one.
constexpr const char* kWhere = R"(.version 8.0
.target sm_70
.address_size 64
.visible .entry smt_where(.param .u64 seen, .param .u64 spin)
{
    .reg .pred %p;
    .reg .b32 %r<2>;
    .reg .b64 %a<8>;
    mov.u64 %a5, %globaltimer;
    ld.param.u64 %a0, [seen];
    ld.param.u64 %a6, [spin];
    mov.u32 %r0, %smid;
    shr.u32 %r1, %r0, 6;
    mul.wide.u32 %a1, %r1, 8;
    add.s64 %a2, %a0, %a1;
    and.b32 %r0, %r0, 63;
    mov.u64 %a3, 1;
    shl.b64 %a4, %a3, %r0;
    red.global.or.b64 [%a2], %a4;
again:
    mov.u64 %a7, %globaltimer;
    sub.s64 %a7, %a7, %a5;
    setp.lt.u64 %p, %a7, %a6;
    @%p bra again;
    ret;
}
)";
using SeenSms = std::array<uint64_t, 4>;
constexpr unsigned kBlocksEach = 32;  // per SM, of one warp
constexpr unsigned kMostMultiprocessors = 64 * std::tuple_size_v<SeenSms>;
constexpr int kMostUrgent = -100;       // clamped by the driver: the next free places go to the probe
constexpr uint64_t kFirstSpin = 2'000;  // ns; four times as long each time that not all SMs were seen
constexpr std::chrono::milliseconds kGreenContextTimeout = 200ms;  // on a busy device
constexpr std::chrono::milliseconds kSimulatedTimeout = 5s;

}  // namespace

std::string ranges(const std::vector<uint32_t>& numbers) {
    std::string text;
    for (size_t i = 0; i < numbers.size();) {
        size_t last = i;
        while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
        if (!text.empty()) text += ", ";
        text += last == i ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]);
        i = last + 1;
    }
    return text;
}

std::string SmSet::text() const {
    if (multiprocessors_.empty())
        return fmt::format("{} multiprocessors (the device was too busy to say which)", count_);
    return fmt::format("{} multiprocessors ({}{})", count_, multiprocessors_.size() < count_ ? "seen: " : "",
                       ranges(multiprocessors_));
}

SmSetPointer SmSets::take(unsigned least, std::string* why) {
    std::lock_guard lock(mutex_);
    if (!open(why)) return nullptr;
    const size_t groups = (least + group_size_ - 1) / group_size_;
    if (groups > groups_.size()) {
        *why = "that is all there are";
        return nullptr;
    }
    const Row row = least_used(groups);
    std::shared_ptr<SmSet> set = find(row, why);
    if (!set) return nullptr;
    for (size_t i = row.first; i < row.first + row.second; ++i) ++users_[i];
    return {set.get(), [this, set, row](const SmSet*) {
                std::lock_guard inner(mutex_);
                for (size_t i = row.first; i < row.first + row.second; ++i) --users_[i];
            }};
}

SmSetPointer SmSets::first(unsigned most, std::string* why) {
    std::lock_guard lock(mutex_);
    if (!open(why)) return nullptr;
    const size_t groups = std::min<size_t>(most / group_size_, groups_.size());
    if (groups == 0) {
        *why = fmt::format("the driver makes no set of fewer than {} multiprocessors", group_size_);
        return nullptr;
    }
    return find({0, groups}, why);
}

SmSetPointer SmSets::first_made(unsigned most) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || group_size_ == 0) return nullptr;
    const auto found = sets_.find({0, std::min<size_t>(most / group_size_, groups_.size())});
    return found == sets_.end() ? nullptr : found->second;
}

CUresult SmSets::make_stream(const SmSet* set, int priority, CUstream* stream) const {
    return set ? driver_.cuGreenCtxStreamCreate(stream, set->context_, CU_STREAM_NON_BLOCKING, priority)
               : driver_.cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, priority);
}

// The row with the fewest users of its most used group, then with the fewest users in total, then the first.
SmSets::Row SmSets::least_used(size_t groups) const {
    std::pair<int, int> fewest{};
    Row best{0, groups};
    for (size_t first = 0; first + groups <= groups_.size(); ++first) {
        const auto begin = users_.begin() + static_cast<std::ptrdiff_t>(first),
                   end = begin + static_cast<std::ptrdiff_t>(groups);
        const std::pair<int, int> users{*std::max_element(begin, end), std::accumulate(begin, end, 0)};
        if (first > 0 && users >= fewest) continue;
        fewest = users;
        best.first = first;
    }
    return best;
}

bool SmSets::open(std::string* why) {
    if (!opened_) {
        opened_ = true;
        CUdevResource all{}, rest{};
        unsigned count = 0;
        if (!driver_.cuDeviceGetDevResource || !driver_.cuDevSmResourceSplitByCount ||
            !driver_.cuDevResourceGenerateDesc || !driver_.cuGreenCtxCreate ||
            !driver_.cuGreenCtxStreamCreate) {
            problem_ = "the driver has no green contexts";
        } else if (CUresult status =
                       driver_.cuDeviceGetDevResource(device_.device(), &all, CU_DEV_RESOURCE_TYPE_SM)) {
            problem_ =
                fmt::format("the driver does not say what it can divide: error {}", static_cast<int>(status));
        } else if (status = driver_.cuDevSmResourceSplitByCount(nullptr, &count, &all, nullptr, 0,
                                                                all.sm.minSmPartitionSize);
                   status == CUDA_SUCCESS && count > 0) {
            groups_.resize(count);
            status = driver_.cuDevSmResourceSplitByCount(groups_.data(), &count, &all, &rest, 0,
                                                         all.sm.minSmPartitionSize);
            groups_.resize(status == CUDA_SUCCESS ? count : 0);
            if (!groups_.empty()) group_size_ = groups_[0].sm.smCount;
        }
        if (problem_.empty() && group_size_ == 0) problem_ = "the device cannot be divided";
        users_.resize(groups_.size());
    }
    if (!problem_.empty()) *why = problem_;
    return problem_.empty();
}

std::shared_ptr<SmSet> SmSets::find(Row row, std::string* why) {
    std::shared_ptr<SmSet>& set = sets_[row];
    if (set) return set;
    auto made = std::make_shared<SmSet>();
    if (CUresult status = make(row, made.get())) {
        *why = fmt::format("the driver makes no green context of {} multiprocessors: error {}",
                           row.second * group_size_, static_cast<int>(status));
        return nullptr;
    }
    calibrate(*made);
    return set = made;
}

CUresult SmSets::make(Row row, SmSet* set) {
    CUdevResourceDesc description = nullptr;
    CUresult status = driver_.cuDevResourceGenerateDesc(&description, &groups_[row.first],
                                                        static_cast<unsigned>(row.second));
    if (status == CUDA_SUCCESS)
        status = driver_.cuGreenCtxCreate(&set->context_, description, device_.device(),
                                          CU_GREEN_CTX_DEFAULT_STREAM);
    set->count_ = static_cast<unsigned>(row.second) * group_size_;
    return status;
}

bool SmSets::open_probe() {
    CUmodule module = nullptr;
    if (where_) return true;
    return driver_.cuModuleLoadDataEx(&module, kWhere, 0, nullptr, nullptr) == CUDA_SUCCESS &&
           driver_.cuMemAlloc_v2(&seen_, sizeof(SeenSms)) == CUDA_SUCCESS &&
           driver_.cuModuleGetFunction(&where_, module, "smt_where") == CUDA_SUCCESS;
}

// Does not wait for the end of other work: what is not seen in time is not known. A probe that comes late
// must not write to memory that the next one reads, so the next one gets other memory.
void SmSets::calibrate(SmSet& set) {
    CUstream stream = nullptr;
    if (!open_probe() || make_stream(&set, kMostUrgent, &stream) != CUDA_SUCCESS) return;
    const auto timeout = device_.properties().keeps_sessions_apart ? kSimulatedTimeout : kGreenContextTimeout;
    const auto end = std::chrono::steady_clock::now() + timeout;
    SeenSms seen{};
    driver_.cuMemsetD8Async(seen_, 0, sizeof seen, stream);
    device_.waits_for_others(true);
    for (uint64_t spin = kFirstSpin; set.multiprocessors_.size() < set.count_; spin *= 4) {
        void* parameters[] = {&seen_, &spin};
        CUresult status = driver_.cuLaunchKernel(where_, kBlocksEach * set.count_, 1, 1, 32, 1, 1, 0, stream,
                                                 parameters, nullptr);
        if (status == CUDA_SUCCESS) status = await(stream, end);
        if (status == CUDA_ERROR_NOT_READY) where_ = nullptr, seen_ = 0;
        if (status != CUDA_SUCCESS) break;
        if (driver_.cuMemcpyDtoHAsync_v2(seen.data(), seen_, sizeof seen, stream) != CUDA_SUCCESS) break;
        if (driver_.cuStreamSynchronize(stream) != CUDA_SUCCESS) break;
        set.multiprocessors_.clear();
        for (uint32_t i = 0; i < kMostMultiprocessors; ++i) {
            if (seen[i / 64] >> i % 64 & 1) set.multiprocessors_.push_back(i);
        }
    }
    device_.waits_for_others(false);
    driver_.cuStreamDestroy_v2(stream);
}

CUresult SmSets::await(CUstream stream, std::chrono::steady_clock::time_point end) const {
    while (std::chrono::steady_clock::now() < end) {
        if (CUresult status = driver_.cuStreamQuery(stream); status != CUDA_ERROR_NOT_READY) return status;
        device::nap();
    }
    return CUDA_ERROR_NOT_READY;
}

}  // namespace smt::runtime::dispatch
