// See spare_blocks.h.
#include "runtime/server/memory/spare_blocks.h"

#include <algorithm>
#include <utility>

namespace smt::runtime::server {

SpareBlocks::BlockPointer SpareBlocks::take(uint64_t bytes, const MemoryAccountPointer& account,
                                            uint64_t* missing) {
    Charge charge;
    *missing = 0;
    if (account && !charge.take(account, bytes)) {
        const uint64_t limit = account->limit(), left = limit - std::min(limit, account->held());
        *missing = bytes - std::min(left, bytes - 1);
        return nullptr;
    }
    BlockPointer block = take_spare(bytes);
    if (!block) block = make(bytes, missing);
    if (!block) return nullptr;
    if (account) charge.take(account, std::min(bytes, block->bytes()));  // less than before
    return lend(block, std::move(charge));
}

SpareBlocks::BlockPointer SpareBlocks::take_spare(uint64_t bytes) {
    std::lock_guard lock(mutex_);
    used_ = Clock::now();
    const uint64_t wanted = std::min(bytes, HostBlock::kLargest);
    const auto better = [&](const BlockPointer& a, const BlockPointer& b) {
        const bool enough = a->bytes() >= wanted;
        if (enough != (b->bytes() >= wanted)) return enough;
        return enough ? a->bytes() < b->bytes() : a->bytes() > b->bytes();
    };
    const auto best = std::min_element(spare_.begin(), spare_.end(), better);
    if (best == spare_.end()) return nullptr;
    BlockPointer found = *best;
    spare_.erase(best);
    return found;
}

void SpareBlocks::bound(uint64_t most, uint64_t each) {
    std::lock_guard lock(mutex_);
    most_ = most;
    each_ = each;
}

// Two threads may go beyond the bound by a block, since none is made under the lock.
SpareBlocks::BlockPointer SpareBlocks::make(uint64_t bytes, uint64_t* missing) {
    {
        std::lock_guard lock(mutex_);
        if (each_) bytes = each_;
        uint64_t all = lent_;
        for (const BlockPointer& each : spare_) all += each->bytes();
        const uint64_t room = most_ - std::min(most_, all);
        *missing = bytes - std::min(bytes, room);
    }
    return *missing ? nullptr : HostBlock::make(driver_, bytes, HostBlock::room(), missing);
}

// The pointer's last copy brings the block back, or frees it if there is no place for it any more.
SpareBlocks::BlockPointer SpareBlocks::lend(const BlockPointer& block, Charge charge) {
    const auto charged = std::make_shared<Charge>(std::move(charge));
    {
        std::lock_guard lock(mutex_);
        lent_ += block->bytes();
    }
    return {block.get(), [block, charged, owner = weak_from_this()](HostBlock*) {
                if (const auto place = owner.lock()) place->take_back(block);
            }};
}

void SpareBlocks::take_back(const BlockPointer& block) {
    std::lock_guard lock(mutex_);
    lent_ -= block->bytes();
    spare_.push_back(block);
    used_ = Clock::now();
}

bool SpareBlocks::prepare(uint64_t bytes) {
    const uint64_t spare = spare_bytes();
    if (spare >= bytes) return true;
    uint64_t missing = 0;
    const BlockPointer block = make(bytes - spare, &missing);
    if (!block) return false;
    std::lock_guard lock(mutex_);
    spare_.push_back(block);
    used_ = Clock::now();
    return true;
}

SpareBlocks::BlockPointer SpareBlocks::take_unused(Clock::duration longest) {
    std::lock_guard lock(mutex_);
    if (spare_.empty() || Clock::now() < used_ + longest) return nullptr;
    BlockPointer block = std::move(spare_.back());
    spare_.pop_back();
    return block;
}

void SpareBlocks::note_use(Clock::time_point now) {
    std::lock_guard lock(mutex_);
    used_ = now;
}

uint64_t SpareBlocks::spare_bytes() const {
    std::lock_guard lock(mutex_);
    uint64_t bytes = 0;
    for (const BlockPointer& each : spare_) bytes += each->bytes();
    return bytes;
}

}  // namespace smt::runtime::server
