// A launch of a kernel that has a managed form, from the moment the program asked for it until its last
// block has run: what to launch, and how far it is.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rewriter/device/reuse.h"
#include "runtime/dispatch/saturating_ctas.h"
#include "runtime/journal/journal.h"
#include "runtime/profiles/known_kernel.h"

namespace smt::runtime::dispatch {

// The managed form of a kernel. Belongs to the image that holds it, which is not unloaded before the work
// of its session is settled.
struct ManagedFunction {
    CUfunction function = nullptr;   // null: there is none
    uint32_t launch_offset = 0;      // of smt::Launch among its parameters
    Reuse reuse = Reuse::kAlways;    // of a worker, for further blocks
    uint32_t registers = 0;          // of a thread; 0: not known
    uint32_t static_shared = 0;      // bytes
    std::shared_ptr<profiles::KnownKernel> known;   // what was and is learnt of it; null: nobody keeps it

    // CTAs that fit on a multiprocessor, for the shape that was asked for last: they are asked for often.
    uint32_t fitting(uint32_t threads, uint32_t shared_bytes) const {
        const uint64_t known = fitting_.load(std::memory_order_relaxed);
        return known >> 16 == shape(threads, shared_bytes) ? static_cast<uint32_t>(known & 0xffff) : 0;
    }
    void set_fitting(uint32_t threads, uint32_t shared_bytes, uint32_t ctas) {
        fitting_.store(shape(threads, shared_bytes) << 16 | ctas, std::memory_order_relaxed);
    }

    // Of a whole launch: by what launches took that were alone; else by the time of a block in the first large one, which may have had company and was off by
    // a fifth then. `together`: blocks that the device runs at once.
    std::optional<std::chrono::nanoseconds> time_alone(const profiles::Shape& shape, uint64_t together) const {
        if (const auto ns = known ? known->predict(shape) : std::nullopt) return std::chrono::nanoseconds(static_cast<int64_t>(*ns));
        const uint64_t block = block_ns.load(std::memory_order_relaxed);
        if (block == 0 || together == 0) return std::nullopt;
        return std::chrono::nanoseconds(block * ((shape.blocks + together - 1) / together));
    }

    // ns of a block beside as many as run at once, `together` on the whole device; while none of this program's has told, by what launches took that were alone, of
    // whichever program, whose input may have been another: the first launch that tells corrects it. 0: not known.
    uint64_t expected_block_ns(const profiles::Shape& shape, uint64_t together) const {
        if (const uint64_t told = block_ns.load(std::memory_order_relaxed)) return told;
        const auto ns = known && together ? known->predict(shape) : std::nullopt;
        return ns ? std::max<uint64_t>(1, static_cast<uint64_t>(*ns) / ((shape.blocks + together - 1) / together)) : 0;
    }

    void forget() { fitting_.store(0), block_ns.store(0), stop_ns.store(0), block_cost_ps.store(0), enough.forget(); }

    // How long a block took, when its kernel had the device for itself: says how many a ticket stands for. 0: not known.
    std::atomic<uint64_t> block_ns{0};
    // From the decision to stop it until its last worker had left, lately. 0: never stopped.
    std::atomic<uint64_t> stop_ns{0};
    // What a block cost of the device's time, launches being in a row. 0: not known.
    std::atomic<uint64_t> block_cost_ps{0};
    SaturatingCtas enough;   // CTAs, where somebody may want it stopped

private:
    static uint64_t shape(uint32_t threads, uint32_t shared_bytes) { return uint64_t{threads} << 32 | shared_bytes; }
    std::atomic<uint64_t> fitting_{0};
};

// Of the tickets that a stop had to wait for, the one that took longest, by the GPU's timer. No end: not known.
struct LongestTicket {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    uint32_t blocks = 0;   // that a ticket stood for
};

// One smt::Launch covers at most so many blocks: tickets and counts are 32 bits wide.
inline constexpr uint64_t kMostBlocks = 1u << 30;

struct Work {
    ManagedFunction* function = nullptr;
    journal::Entry entry;              // what the journal says about it
    uint32_t grid[3] = {1, 1, 1};
    uint32_t block[3] = {1, 1, 1};
    uint32_t shared_bytes = 0;         // dynamic
    std::vector<char> parameters;      // the program's
    uint64_t number = 0;               // of the stream's launches
    uint32_t fits = 0;                 // CTAs on a multiprocessor
    uint64_t total = 0;                // blocks
    uint64_t done = 0;                 // of those, in their order
    std::chrono::nanoseconds cost{};   // of the device's time, as far as it was known when the driver got it (launch_ahead.h)

    // Of its launch under way: tickets [ticket, ticket + tickets) are for blocks [done, done + covered).
    uint32_t ticket = 0;
    uint32_t tickets = 0;
    uint32_t chunk = 1;
    uint32_t covered = 0;
    uint32_t ctas = 0;                 // of its workers on a multiprocessor, where quotas do not say; 0: that is being tried
    uint32_t launch = 0;               // ManagedStream's count of them
    uint64_t marker = 0;               // when the stream's word says so much, the launch is over

    uint32_t threads() const { return block[0] * block[1] * block[2]; }
    profiles::Shape shape() const { return {{block[0], block[1], block[2]}, total}; }
    uint64_t left() const { return total - done; }
    // What does not go with the launch under way, as work of its own; nothing: all does.
    std::optional<Work> cut() {
        if (covered == left()) return std::nullopt;
        std::optional<Work> rest(*this);
        total = rest->done = done + covered;
        return rest;
    }
    // What is known when a launch has ended in which `run` tickets of the stream's count were run.
    void settle(uint32_t run) {
        const uint32_t mine = std::min(run > ticket ? run - ticket : 0, tickets);
        done += std::min<uint64_t>(uint64_t{mine} * chunk, covered);
        tickets = covered = 0;
    }
};

}  // namespace smt::runtime::dispatch
