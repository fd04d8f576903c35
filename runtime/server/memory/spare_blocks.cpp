// See spare_blocks.h.
#include "runtime/server/memory/spare_blocks.h"

#include <algorithm>
#include <new>
#include <utility>

namespace smt::runtime::server {

namespace {

constexpr auto kNoRoom = std::chrono::seconds(10);  // until helpers look for host memory again

}  // namespace

SpareBlocks::BlockPointer SpareBlocks::take(uint64_t bytes, const MemoryAccountPointer& account,
                                            uint64_t* missing) {
    Charge charge;
    *missing = 0;
    if (account && !charge.take(account, bytes)) {
        const uint64_t limit = account->limit(), left = limit - std::min(limit, account->held());
        *missing = bytes - std::min(left, bytes - 1);
        const Lock lock(mutex_);
        needed_ = 0;
        return nullptr;
    }
    const BlockPointer block = find(bytes, missing);
    if (!block) return nullptr;
    if (account) charge.take(account, std::min(bytes, block->bytes()));  // less than before
    return lend(block, std::move(charge));
}

// A spare one, or a new one, which is lent from then on. Where that has no room, but a helper makes one, that
// one.
SpareBlocks::BlockPointer SpareBlocks::find(uint64_t bytes, uint64_t* missing) {
    Lock lock(mutex_);
    used_ = now_();
    const uint64_t one = each_ ? each_ : std::min(bytes, HostBlock::kLargest);
    needed_ = bytes - std::min(bytes, one);
    if (needed_) changed_.notify_all();
    for (;;) {
        if (BlockPointer block = take_spare(bytes)) {
            lent_ += block->bytes();
            return block;
        }
        const uint64_t all = std::max(one, bytes - std::min(bytes, ahead_));  // with what helpers do not make
        const uint64_t left = most_ - std::min(most_, lent_ + making_);
        *missing = all - std::min(all, left);
        if (*missing == 0) {
            const uint64_t beside = begin_making(one);
            lock.unlock();
            BlockPointer block = make(all, beside, true, missing);
            lock.lock();
            end_making(one, block);
            if (block)
                lent_ += block->bytes();
            else
                needed_ = 0;
            return block;
        }
        if (ahead_ == 0) return needed_ = 0, nullptr;
        changed_.wait(lock, [this] { return ahead_ == 0 || !spare_.empty(); });
    }
}

SpareBlocks::BlockPointer SpareBlocks::take_spare(uint64_t bytes) {
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
    changed_.notify_all();
    return found;
}

// Without the lock. Null: there is no room for it beside what others are making, or for what is needed to say
// so.
SpareBlocks::BlockPointer SpareBlocks::make(uint64_t bytes, uint64_t beside, bool pageable,
                                            uint64_t* missing) const {
    try {
        HostBlock::Room room = HostBlock::room();
        room.pinned -= std::min(room.pinned, beside);
        room.pageable = pageable ? room.pageable - std::min(room.pageable, beside) : 0;
        return HostBlock::make(driver_, bytes, room, missing);
    } catch (const std::bad_alloc&) {
        *missing = bytes;
        return nullptr;
    }
}

// Bytes that others are making.
uint64_t SpareBlocks::begin_making(uint64_t bytes) {
    if (making_ == 0) begun_ = now_();
    return std::exchange(making_, making_ + bytes);
}

void SpareBlocks::end_making(uint64_t bytes, const BlockPointer& block) {
    making_ -= bytes;
    if (making_ == 0) figures_.making += now_() - begun_;
    if (!block || !block->pinned()) return;
    figures_.made_bytes += block->bytes();
    figures_.pinned_bytes += block->bytes();
}

void SpareBlocks::bound(uint64_t most, uint64_t each) {
    Lock lock(mutex_);
    most_ = most;
    each_ = each;
}

// The pointer's last copy brings the block back, or frees it if there is no place for it any more.
SpareBlocks::BlockPointer SpareBlocks::lend(const BlockPointer& block, Charge charge) {
    const auto charged = std::make_shared<Charge>(std::move(charge));
    return {block.get(), [block, charged, owner = weak_from_this()](HostBlock*) {
                if (const auto place = owner.lock()) place->take_back(block);
            }};
}

void SpareBlocks::take_back(const BlockPointer& block) {
    Lock lock(mutex_);
    lent_ -= block->bytes();
    spare_.push_back(block);
    used_ = now_();
    changed_.notify_all();
}

void SpareBlocks::want(uint64_t bytes, bool soon) {
    Lock lock(mutex_);
    if (wanted_ == bytes && soon_ == soon) return;
    wanted_ = bytes;
    soon_ = soon;
    changed_.notify_all();
}

// Bytes of the block that a helper makes next; 0: none.
uint64_t SpareBlocks::to_make(size_t helper) const {
    const uint64_t wanted = needed_ + (helper == 0 || soon_ ? wanted_ : 0), have = spare_now() + ahead_;
    if (now_() < no_room_until_ || have >= wanted) return 0;
    const uint64_t bytes = each_ ? each_ : std::min(wanted - have, HostBlock::kLargest);
    return lent_ + spare_now() + making_ + bytes <= most_ ? bytes : 0;
}

bool SpareBlocks::help(size_t helper) {
    Lock lock(mutex_);
    uint64_t bytes = 0;
    while (!leaves_ && (bytes = to_make(helper)) == 0) {
        changed_.wait_for(lock, kNoRoom);
    }
    if (leaves_) return false;
    spare_.reserve(spare_.size() + 1);
    const uint64_t beside = begin_making(bytes);
    ahead_ += bytes;
    lock.unlock();
    uint64_t missing = 0;
    const BlockPointer block = make(bytes, beside, false, &missing);
    lock.lock();
    ahead_ -= bytes;
    end_making(bytes, block);
    if (block)
        spare_.push_back(block);
    else
        no_room_until_ = now_() + kNoRoom;
    used_ = now_();
    changed_.notify_all();
    return true;
}

void SpareBlocks::leave() {
    Lock lock(mutex_);
    leaves_ = true;
    changed_.notify_all();
}

SpareBlocks::BlockPointer SpareBlocks::take_unused(Clock::duration longest) {
    Lock lock(mutex_);
    if (spare_.empty() || now_() < used_ + longest || spare_now() <= wanted_) return nullptr;
    BlockPointer block = std::move(spare_.back());
    spare_.pop_back();
    if (block->pinned()) figures_.pinned_bytes -= block->bytes();
    return block;
}

void SpareBlocks::use() {
    Lock lock(mutex_);
    used_ = now_();
}

uint64_t SpareBlocks::spare_now() const {
    uint64_t bytes = 0;
    for (const BlockPointer& each : spare_) bytes += each->bytes();
    return bytes;
}

uint64_t SpareBlocks::spare_bytes() const {
    Lock lock(mutex_);
    return spare_now();
}

SpareBlocks::Figures SpareBlocks::figures() const {
    Lock lock(mutex_);
    Figures figures = figures_;
    if (making_ != 0) figures.making += now_() - begun_;
    return figures;
}

}  // namespace smt::runtime::server
