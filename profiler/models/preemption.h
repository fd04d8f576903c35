// How long it takes to stop a managed kernel, before it was ever stopped: FLEP (Wu et al.), section 4.2, takes the mean of fifty stops that
// were measured offline; this is for a kernel of which only the time is known.
//
// Workers look at the word between two tickets. With many of them at work, at all stages of their tickets, somebody has just
// begun one: so a stop takes a ticket's time, and what it takes to write the word, to be seen, and to hear of the last worker's end:
//
//     stop = notice + blocks_a_ticket * block
//
// where a block takes the longer the more of them share a multiprocessor: block = SMs * CTAs * (time that a block adds to the launch).
//
//     stop_ns({.block_ns = 605, .multiprocessors = 132, .ctas_per_sm = 8})    // 639 us a block, a ticket each: 0.65 ms
#pragma once

#include <cstdint>

namespace smt::profiler::models {

// A ticket's blocks take about so long: the word is then taken so rarely that it costs nothing, and a stop
// still comes soon. One block that takes longer is a ticket by itself.
inline constexpr uint64_t kTicketNs = 16'000;
inline constexpr uint64_t kMostTicketBlocks = 16;
uint32_t ticket_blocks(uint64_t block_ns);   // of which each takes so long, 1 at least

// In a long launch that nobody may stop: twice as long.
uint32_t long_ticket_blocks(uint64_t block_ns);

// Where somebody may stop the kernel: half as long, so that a stop takes no more than a block and 15 us. Two blocks stay two: the second
// is at most 11 us, and one by one they would cost more.
uint32_t preemptible_ticket_blocks(uint64_t block_ns);

// Measured on an H200: stops of kernels whose tickets are short (docs/results.md#stop-error).
inline constexpr double kNoticeNs = 12'000;

struct Stopped {
    double block_ns = 0;   // that a block adds to the launch
    int multiprocessors = 0;
    int ctas_per_sm = 0;
};

// 0: not known.
double stop_ns(const Stopped& kernel);

}  // namespace smt::profiler::models
