// The session's fence: its beginning, and what a record in it ends.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runtime/protocol/server_key.h"
#include "runtime/server/code/code_table.h"
#include "runtime/server/memory/fence.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"
#include "runtime/server/users.h"

namespace smt::runtime::server {

namespace {

std::string text_of(const uint32_t (&place)[3]) {
    return fmt::format("({}, {}, {})", place[0], place[1], place[2]);
}

std::string describe_record(const FenceRecord& record, const std::string& where) {
    constexpr std::array kUses = {"load", "store", "atomic", ""};
    constexpr std::array kSpaces = {"global memory", "a generic address", "shared memory", ""};
    const FenceAccess access = fence_access(record.what);
    const std::string block =
        record.block[0] == kNoFenceBlock ? "" : fmt::format("block {}, ", text_of(record.block));
    const std::string place = fmt::format("{}{}thread {}", where, block, text_of(record.thread));
    if (access.use == FenceUse::kNone)
        return fmt::format("{} in {}", record.error == CUDA_ERROR_ASSERT ? "a failed assert" : "a trap",
                           place);
    return fmt::format("{} of {} bytes at 0x{:x} ({}), in {}", kUses[static_cast<size_t>(access.use)],
                       access.bytes, record.address, kSpaces[static_cast<size_t>(access.space)], place);
}

// The program can write the record: it gets an error that it could have had.
CUresult error_of(const FenceRecord& record) {
    constexpr CUresult kErrors[] = {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_MISALIGNED_ADDRESS,
                                    CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_ASSERT, CUDA_ERROR_NOT_SUPPORTED};
    const auto error = static_cast<CUresult>(record.error);
    const bool known = std::find(std::begin(kErrors), std::end(kErrors), error) != std::end(kErrors);
    return known ? error : CUDA_ERROR_LAUNCH_FAILED;
}

}  // namespace

bool Session::wants_fence() const {
    return !server_.serves_one_tenant() &&
           (hello_.fenced != 0 || protocol::has_to_be_fenced(tenant_) ||
            protocol::has_to_be_fenced(without_user(server_.users(), tenant_)));
}

CUresult Session::open_fence() {
    if (!wants_fence()) return CUDA_SUCCESS;
    uint64_t record = 0;
    if (const CUresult status = arena_.allocate(sizeof(FenceRecord), true, &record); status != CUDA_SUCCESS)
        return status;
    auto fence = std::make_unique<Fence>(device_, [this] { return streams_.idle(); });
    const CUresult status = fence->open(arena_.base(), AddressPlan::kSlotBytes,
                                        reinterpret_cast<FenceRecord*>(record), &arena_.header().fatal);
    if (status != CUDA_SUCCESS) return status;
    fence_ = std::move(fence);
    arena_.use_fence(fence_.get());
    note("its kernels are fenced");
    return CUDA_SUCCESS;
}

bool Session::look_at_fence() {
    if (!fence_ || !poisoned() || ended_with() != CUDA_SUCCESS) return ended_with() != CUDA_SUCCESS;
    const std::optional<FenceRecord> record = fence_->fault();
    if (!record) return false;
    std::string where;
    {
        std::lock_guard lock(mutex_);
        if (code_) where = code_->function_in(record->image, fence_access(record->what).function);
    }
    const CUresult error = error_of(*record);
    const std::string why =
        fmt::format("CUDA error {}: {}", static_cast<int>(error),
                    describe_record(*record, where.empty() ? "" : fmt::format("{}, ", where)));
    if (!fence_told_.exchange(true)) note(fmt::format("ended by its fence, other programs go on: {}", why));
    end_work(error, why);
    return true;
}

}  // namespace smt::runtime::server
