// The control flow of a function: where the ways of a branch meet again, and which registers are
// alive where. Works on what the decoder noted of each instruction, not on the instructions.
#pragma once

#include <cstdint>
#include <vector>

namespace smt::runtime::device::simulated {

enum class Flow : uint8_t {
    kNext,    // to the next instruction
    kBranch,  // to the targets, and to the next one if guarded
    kLeave,   // nowhere: exit, trap
};

struct Note {
    std::vector<uint32_t> reads, writes;  // virtual registers
    std::vector<uint32_t> targets;        // of kBranch
    Flow flow = Flow::kNext;
    bool guarded = false;  // a guarded write keeps the old value of other threads
};

struct Virtual {
    int width = 32;  // 1: a predicate
};

inline constexpr uint32_t kNowhere = 0xffff'ffffu;

// For each instruction that branches: its immediate post-dominator, which may be the last instruction
// (the one that leaves the function); kNowhere for all others and where paths never meet.
std::vector<uint32_t> reconvergence(const std::vector<Note>& notes);

struct Allocation {
    std::vector<uint32_t> offsets;  // of each virtual register in the frame, in bytes
    std::vector<uint16_t> numbers;  // its place, for a scoreboard: equal exactly if offsets are
    uint32_t frame_bytes = 0;
    uint32_t live_words = 0;  // most 32-bit values alive at once
};

// Threads of a warp may be at different places, but each has its own lane of every register and never
// writes another's, so what is right for one thread's control flow is right for the warp's.
// `entry` are alive when the function begins, `leaving` when it ends.
Allocation allocate(const std::vector<Note>& notes, const std::vector<Virtual>& virtuals,
                    const std::vector<uint32_t>& entry, const std::vector<uint32_t>& leaving);

}  // namespace smt::runtime::device::simulated
