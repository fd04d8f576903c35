// Prediction of the time that stopping a managed kernel takes, before the first stop. FLEP (Wu et al.),
// section 4.2, takes the mean of fifty stops that were measured offline. This model needs only the kernel's
// time. Pure functions.
//
// Workers check for a stop between two tickets. With many workers, at all stages of their tickets, one
// has just begun a ticket. So a stop takes a ticket's time, plus the time to write the stop word, for the
// workers to see it, and for the server to learn of the last worker's end:
//
//     stop = notice + blocks_a_ticket * block
//
// A block takes longer the more of them share a multiprocessor: block = SMs * CTAs * (time that a block adds
// to the launch).
//
//     stop_ns({.block_ns = 605, .multiprocessors = 132, .ctas_per_sm = 8})    // blocks of 639 us: 0.65 ms
#pragma once

#include <cstdint>

namespace smt::profiler::models {

// The target time of a ticket. Tickets are then drawn so rarely that this costs nothing, and a stop still
// comes soon. A longer block is a ticket by itself.
inline constexpr uint64_t kTicketNs = 16'000;
inline constexpr uint64_t kMostTicketBlocks = 16;
uint32_t ticket_blocks(uint64_t block_ns);  // for blocks of this duration; at least 1

// For a long launch that cannot be stopped: tickets of twice the time.
uint32_t long_ticket_blocks(uint64_t block_ns);

// For a kernel that may be stopped: tickets of half the time, so that a stop takes no more than a block and
// 15 us. Two blocks stay two: the second is at most 11 us, and tickets of one block would cost more.
uint32_t preemptible_ticket_blocks(uint64_t block_ns);

// Measured: stops of kernels with short tickets (docs/results.md#stop-error).
inline constexpr double kNoticeNs = 12'000;

// A stop may end longer blocks before their end, where they can be begun anew (rewriter/ptx/persistent/
// inside.h). Between short ones a stop is as soon over, and loses nothing.
inline constexpr uint64_t kLongBlockNs = 100'000;

struct Stopped {
    double block_ns = 0;  // that a block adds to the launch
    int multiprocessors = 0;
    int ctas_per_sm = 0;
};

// 0: the time of a block is not known.
double stop_ns(const Stopped& kernel);

}  // namespace smt::profiler::models
