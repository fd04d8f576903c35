// One thread's way to the server: the producer end of a ring in the arena.
//
// A thread opens its lane at its first remote call and gives it back when it ends. Lanes given back
// wait for the next new thread, so short-lived threads cost no handshake; beyond kIdleLanes they are
// closed, and a later lane may have the same index: its positions go on where the closed one's ended.
// Lane i is lanes[i] for the whole life of the session, so another thread may always read `posted`.
//
// Rules of the place: only the owning thread writes a Lane; no locks, no system calls on the path
// of a record, unless the ring is full or the server sleeps.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "runtime/protocol/layout.h"
#include "runtime/protocol/record.h"

namespace smt::interpose {

inline constexpr uint32_t kMaxLanes = 65535;  // lane + 1 must fit the 16 bits LastUse has for it
inline constexpr uint32_t kIdleLanes = 64;

// The lane's part of staging for pageable copies. Belongs to driver/staging.cpp; all zero until it
// opens the slots (Op::kOpenStaging). Goes with the lane from thread to thread.
struct LaneStaging {
    char* slots;  // nullptr: not opened
    uint32_t first_word;
    uint32_t next;
    uint64_t values[protocol::kStagingSlots];  // done_value of the last use of each slot
};

struct alignas(64) Lane {
    protocol::LaneHeader* header;
    char* ring;
    char* reply;
    protocol::SessionHeader* session;
    uint64_t tail;        // where the next record goes
    uint64_t known_head;  // the server was at least here
    uint32_t reply_seq;   // of the last call with a reply
    uint32_t index;
    std::atomic<uint32_t> live;  // 0: never opened, or closed
    uint32_t next_idle;          // index + 1 in the list of idle lanes
    LaneStaging staging;
    // Position after the last record that nothing keeps the server from reaching soon: a
    // synchronous call counts once it is answered. This is what other lanes wait for.
    alignas(64) std::atomic<uint64_t> posted;
};

// The calling thread's lane, or nullptr. Set by open_lane().
extern constinit thread_local Lane* thread_lane;

// Connects if need be and opens the thread's lane. nullptr: `status` says why.
Lane* open_lane(CUresult& status);
inline Lane* this_lane(CUresult& status) { return thread_lane ? thread_lane : open_lane(status); }

// Room for a record of `bytes` (a multiple of kRecordAlignment, at most kMaxRecordBytes) that does
// not wrap; waits while the ring is full. nullptr: the server is gone.
char* reserve(Lane& lane, uint32_t bytes);
// Hands the record at the last reserve() to the server.
void publish(Lane& lane, uint32_t bytes);

// The error of a record of this thread that nobody waits for, taken; else the sticky error; else
// SUCCESS. For calls that promise that what went before is done, or that send nothing themselves.
CUresult pending_error();

// How many lanes were ever opened. While it is 1 there is nothing to order.
extern std::atomic<uint32_t> lane_count;
Lane& lane_at(uint32_t index);

// In the child of a fork: forgets every lane without touching the ring.
void forget_lanes();

}  // namespace smt::interpose
