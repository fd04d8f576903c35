// See spare_blocks.h.
#include "runtime/server/memory/spare_blocks.h"

#include <algorithm>
#include <utility>

namespace smt::runtime::server {

std::shared_ptr<HostBlock> SpareBlocks::take(uint64_t bytes, uint64_t* missing) {
    {
        std::lock_guard lock(mutex_);
        auto best = spare_.end();
        for (auto each = spare_.begin(); each != spare_.end(); ++each)
            if ((*each)->block->bytes() >= bytes &&
                (best == spare_.end() || (*each)->block->bytes() < (*best)->block->bytes()))
                best = each;
        if (best != spare_.end()) {
            const BlockPointer found = *best;
            spare_.erase(best);
            return lend(found);
        }
    }
    drop();  // they are too small
    const auto made = std::make_shared<Block>();
    if (!made->charge.take(account_, bytes)) {
        const uint64_t limit = account_->limit(), left = limit - std::min(limit, account_->held());
        *missing = bytes - std::min(left, bytes - 1);
        return nullptr;
    }
    made->block = HostBlock::make(driver_, bytes, HostBlock::room(), missing);
    return made->block ? lend(made) : nullptr;
}

// The pointer's last copy brings the block back, or frees it if there is no place for it any more.
std::shared_ptr<HostBlock> SpareBlocks::lend(const BlockPointer& block) {
    return {block->block.get(), [block, owner = weak_from_this()](HostBlock*) {
                if (const auto place = owner.lock()) place->take_back(block);
            }};
}

void SpareBlocks::take_back(const BlockPointer& block) {
    std::lock_guard lock(mutex_);
    spare_.push_back(block);
}

void SpareBlocks::drop() {
    std::vector<BlockPointer> dropped;  // outlives the lock
    std::lock_guard lock(mutex_);
    dropped.swap(spare_);
}

uint64_t SpareBlocks::spare_bytes() const {
    std::lock_guard lock(mutex_);
    uint64_t bytes = 0;
    for (const BlockPointer& each : spare_) bytes += each->block->bytes();
    return bytes;
}

}  // namespace smt::runtime::server
