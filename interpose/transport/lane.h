// A lane: the producer end of one client thread's ring in the arena.
//
// A thread opens its lane at its first remote call and returns it when it ends. A returned lane waits for the
// next new thread, so short-lived threads cost no handshake. A new thread gets it only once all of its
// records are executed, and no error of them. Beyond kIdleLanes returned lanes are closed, and so is one with
// an open capture of the thread's default stream, which ends with it. A later lane may have the same index;
// its positions continue where the closed one's ended. Lane i is Lanes::table[i] for the whole life of the
// session, so another thread may always read `posted`.
//
// Rules: only the owning thread writes a Lane. The path of a record takes no lock and no system call, unless
// the ring is full or the server sleeps.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "interpose/process/session.h"
#include "runtime/protocol/call_times.h"
#include "runtime/protocol/layout.h"
#include "runtime/protocol/record.h"

namespace smt::interpose {

inline constexpr uint32_t kMaxLanes = 65535;  // lane + 1 fits the 16 bits that LastUse has for it
inline constexpr uint32_t kIdleLanes = 64;

// The lane's staging for pageable copies, managed by driver/staging.cpp. All zero until the slots are opened
// (Op::kOpenStaging). Stays with the lane when another thread takes it over.
struct LaneStaging {
    char* slots;  // nullptr: not opened
    uint32_t first_word;
    uint32_t next;
    uint64_t values[protocol::kStagingSlots];  // done_value of the last use of each slot
    uint64_t filled[protocol::kStagingSlots];  // bytes that the uses since it was free have taken
};

struct alignas(64) Lane {
    protocol::LaneHeader* header;
    char* ring;
    char* reply;
    Session* session;
    protocol::SessionHeader* shared;  // the session's
    uint64_t tail;                    // position of the next record
    uint64_t known_head;              // lower bound of the server's position
    uint32_t reply_seq;               // of the last call with a reply
    uint32_t index;
    std::atomic<uint32_t> live;  // 0: never opened, or closed
    uint32_t next_idle;          // index + 1 in the list of idle lanes
    uint32_t capture;            // Lanes::captures_era + 1 if the thread's default stream began one, else 0
    std::atomic<uint64_t> capture_number;  // of that one (driver/capture.cpp); 0: over
    Lane* next_of_thread;                  // its lane in another session
    protocol::LaneTimes* times;            // null: calls are not timed
    LaneStaging staging;
    // Position after the last record for which other lanes may wait. A synchronous call counts once it is
    // answered, because it may block the server's thread.
    alignas(64) std::atomic<uint64_t> posted;
};

// The calling thread's lane of this_session(), or nullptr. Set by open_lane().
extern constinit thread_local Lane* thread_lane;

// Opens the thread's lane, and the session where there is none. nullptr: `status` holds the error.
Lane* open_lane(CUresult& status);
inline Lane* this_lane(CUresult& status) { return thread_lane ? thread_lane : open_lane(status); }

// Makes the session the calling thread's, and its lane there the thread's lane.
void use_session(Session& session);

// Makes a session the calling thread's for a scope. Null: that it has.
class InSession {
public:
    explicit InSession(Session* session) : before_(this_session()) {
        if (session && session != &before_) use_session(*session);
    }
    ~InSession() {
        if (thread_session != &before_) use_session(before_);
    }
    InSession(const InSession&) = delete;
    InSession& operator=(const InSession&) = delete;

private:
    Session& before_;
};

// Space for a record of `bytes` (a multiple of kRecordAlignment, at most kMaxRecordBytes) that does not wrap.
// Waits while the ring is full. nullptr: the server is gone.
char* reserve(Lane& lane, uint32_t bytes);
// Hands the record at the last reserve() to the server.
void publish(Lane& lane, uint32_t bytes);

// Takes and returns the late error, that of an earlier fire-and-forget record of this thread; else SUCCESS.
CUresult late_error();
// The sticky error; else the late error; else SUCCESS. For calls that promise completion of earlier work, or
// that send nothing themselves.
CUresult pending_error();
// Of a call that was made: its own error, else the late one. NOT_READY is no error.
inline CUresult or_late_error(CUresult status) {
    if (status != CUDA_SUCCESS && status != CUDA_ERROR_NOT_READY) return status;
    const CUresult late = late_error();
    return late == CUDA_SUCCESS ? status : late;
}

// A session's lanes.
struct Lanes {
    // How many were ever opened. While it is 1 there is nothing to order.
    std::atomic<uint32_t> count;
    std::atomic<Lane*> table;  // kMaxLanes of them, mapped at the first open
    // Active captures, and how often the session forgot all of them (driver/capture.h).
    std::atomic<uint32_t> captures, captures_era;
    Lane& at(uint32_t index) { return table.load(std::memory_order_acquire)[index]; }
};
extern constinit PerSession<Lanes> session_lanes;

void note_capture_end(Lanes& lanes);

// In the child of a fork: forgets every lane without touching the ring.
void forget_lanes();

}  // namespace smt::interpose
