// Host memory for chunks that leave the device: blocks that are free again are kept for the next ones, of
// whichever program, because to pin pages takes longer than to copy them, and to unpin them holds up the
// whole context. What has not been used for a while is freed in the background (unpinning.h).
//
// To make a block is to have its pages made and then pinned, one after the other; several blocks at once take
// hardly longer than one. So threads (pinning.h) make blocks while the taker makes its own: what a move under
// way still needs, and what want() says is to be spare for the next one.
//
//     take(1 GiB), of blocks of 128 MiB:   the taker makes 1, helpers 2 and 3; the taker gets 2, ...
//
// What a program has in a block counts as its host memory (host_memory in SMT_LIMITS); the rest of it, and
// spare blocks, are the server's.
//
// Any thread. Blocks may outlive this object.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/server/memory/host_block.h"
#include "runtime/server/memory/memory_account.h"

namespace smt::runtime::server {

class SpareBlocks : public std::enable_shared_from_this<SpareBlocks> {
public:
    using Clock = std::chrono::steady_clock;
    using BlockPointer = std::shared_ptr<HostBlock>;

    using Now = std::function<Clock::time_point()>;
    explicit SpareBlocks(const DriverApi& driver, Now now = Clock::now) : driver_(driver), now_(now) {}

    // Lent and spare blocks together take `most` bytes at most. `each`: bytes of each block from now on,
    // however many are asked for; 0: as many as are.
    void bound(uint64_t most, uint64_t each);

    // As HostBlock::make(): the smallest spare block that is large enough, else the largest one, or a new one
    // where none is spare. Without an account it is no program's.
    BlockPointer take(uint64_t bytes, const MemoryAccountPointer& account, uint64_t* missing);
    // So many bytes are to be spare from now on, as far as there is room for pinned memory; `soon`: all
    // helpers see to it, else one.
    void want(uint64_t bytes, bool soon);
    // For helpers, by their number from 0: waits for a block to make, and makes it. False: leave() was
    // called.
    bool help(size_t helper);
    void leave();
    // A spare block, for the caller to free, if none was used for so long; else null.
    BlockPointer take_unused(Clock::duration longest);
    void use();  // programs that take turns need them again
    uint64_t spare_bytes() const;

    struct Figures {
        uint64_t pinned_bytes = 0;  // of blocks that there are
        uint64_t made_bytes = 0;    // of pinned blocks, so far
        Clock::duration making{};   // time in which at least one was being made
    };
    Figures figures() const;

private:
    using Lock = std::unique_lock<std::mutex>;
    BlockPointer lend(const BlockPointer& block, Charge charge);
    void take_back(const BlockPointer& block);
    BlockPointer find(uint64_t bytes, uint64_t* missing);
    // The caller of these holds mutex_.
    BlockPointer take_spare(uint64_t bytes);
    BlockPointer make(uint64_t bytes, uint64_t beside, bool pageable, uint64_t* missing) const;
    uint64_t begin_making(uint64_t bytes);
    void end_making(uint64_t bytes, const BlockPointer& block);
    uint64_t to_make(size_t helper) const;
    uint64_t spare_now() const;

    const DriverApi& driver_;
    const Now now_;
    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    std::vector<BlockPointer> spare_;
    uint64_t lent_ = 0;                // bytes
    uint64_t making_ = 0, ahead_ = 0;  // bytes; ahead_ is the part of it that helpers make
    uint64_t needed_ = 0;              // bytes that the move under way will take
    uint64_t wanted_ = 0;
    bool soon_ = false, leaves_ = false;
    uint64_t most_ = ~uint64_t{0}, each_ = 0;
    Clock::time_point used_{}, begun_{}, no_room_until_{};
    Figures figures_;
};

}  // namespace smt::runtime::server
