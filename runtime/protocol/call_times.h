// Where the time of CUDA calls goes (`smt bench calls`): what a client thread measures of its own calls.
//
// All times are ticks of the processor's time stamp counter, which client and server read alike. A lane whose
// LaneHeader::times is not 0 has a LaneTimes there, which its client thread writes and the server reads at
// the lane's end. Each record that such a lane carries ends with a RecordStamp (kStamped in record.h).
//
// A CUDA call is known by the index of its entry point in kCoverage, plus one; 0: smt's own threads, and the
// call that opened the lane.
#pragma once

#include <cstdint>

namespace smt::protocol {

inline uint64_t ticks() { return __builtin_ia32_rdtsc(); }

inline constexpr uint32_t kTimedCalls = 1024;

struct CallTimes {
    uint64_t calls;
    uint64_t total;  // from the call's entry to its return
    // Of these, waits: for the reply to a record, for a completion word, for room in the ring.
    uint64_t reply, word, room;
};

struct LaneTimes {
    uint64_t first;  // entry of the first call
    uint64_t last;   // return of the last one
    CallTimes calls[kTimedCalls];
};

struct RecordStamp {
    uint64_t published;
    uint32_t call;
    uint32_t reserved;
};
static_assert(sizeof(RecordStamp) == 16);

}  // namespace smt::protocol
