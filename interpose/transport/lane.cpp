#include "interpose/transport/lane.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/process/state.h"
#include "interpose/transport/call_timer.h"
#include "interpose/transport/connect.h"
#include "interpose/transport/connection.h"
#include "interpose/transport/waiting.h"

namespace smt::interpose {

using protocol::CallTimes;
using protocol::kRingBytes;
using protocol::LaneHeader;
using protocol::Op;
using protocol::RecordHeader;

constinit thread_local Lane* thread_lane = nullptr;
constinit PerSession<Lanes> session_lanes;

namespace {

struct IdleLanes {
    // Guards the session's list of idle lanes and the opening of new ones. While it is held, the only wait is
    // for the server's reply to OpenLane.
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    uint32_t head;  // index + 1
    uint32_t count;
};
constinit PerSession<IdleLanes> idle_lanes;
constinit thread_local Lane* lanes_of_thread = nullptr;  // one for each session that the thread has used
constinit pthread_mutex_t key_lock = PTHREAD_MUTEX_INITIALIZER;
constinit bool key_made = false;
constinit pthread_key_t thread_end;

uint64_t head_of(Lane& lane) { return lane.known_head = lane.header->head.load(std::memory_order_acquire); }

bool drained(Lane& lane) { return head_of(lane) >= lane.tail; }

void write_bare_record(Lane& lane, Op op) {
    char* at = reserve(lane, sizeof(RecordHeader));
    if (!at) return;
    *reinterpret_cast<RecordHeader*>(at) = {sizeof(RecordHeader), static_cast<uint16_t>(op), 0, 0, 0};
    publish(lane, sizeof(RecordHeader));
}

// Waits until everything that the thread sent is executed, or the server is gone. Closing a lane only then
// means that no lane ever waits for a closed one.
bool drain(Lane& lane) {
    Session& session = *lane.session;
    uint64_t end = now_nanoseconds() + spin_nanoseconds();
    while (!drained(lane)) {
        if (now_nanoseconds() < end) {
            pause_cpu();
            continue;
        }
        if (session.sticky_error() != CUDA_SUCCESS || !session.server_lives_sometimes()) return false;
        usleep(100);
    }
    return true;
}

// Called with the session's lock held.
void add_idle(Lane& lane, IdleLanes& idle) {
    lane.next_idle = idle.head;
    idle.head = lane.index + 1;
    ++idle.count;
}

// The lane waits for another thread, or is closed when enough lanes wait.
void leave_lane(Lane* lane) {
    Lanes& lanes = session_lanes.of(*lane->session);
    const bool captures = lane->capture == lanes.captures_era.load() + 1;
    if (captures) note_capture_end(lanes);
    lane->capture_number.store(0, std::memory_order_release);
    IdleLanes& idle = idle_lanes.of(*lane->session);
    pthread_mutex_lock(&idle.lock);
    bool keep = !captures && idle.count < kIdleLanes;
    if (keep) add_idle(*lane, idle);
    pthread_mutex_unlock(&idle.lock);
    if (keep || !drain(*lane)) return;
    // Once the server receives the request, the next thread may get a lane of this index.
    pthread_mutex_lock(&idle.lock);
    lane->live.store(0, std::memory_order_release);
    write_bare_record(*lane, Op::kCloseLane);
    pthread_mutex_unlock(&idle.lock);
}

// Runs when the thread ends.
void leave_lanes(void* value) {
    Lane* lane = static_cast<Lane*>(value);
    if (lane != lanes_of_thread) return;  // a fork came between
    thread_lane = lanes_of_thread = nullptr;
    while (lane) {
        Lane* const next = lane->next_of_thread;  // another thread may have the lane then
        leave_lane(lane);
        lane = next;
    }
}

// Everything that the last thread sent is executed. Its errors are not the next thread's, nor is the work of
// its default stream, which may be in the lane's slots.
Lane* renew(Lane& lane) {
    lane.header->async_error.exchange(0, std::memory_order_acq_rel);
    write_bare_record(lane, Op::kNewThread);
    for (uint64_t& filled : lane.staging.filled) filled = protocol::kStagingSlotBytes;
    return &lane;
}

// A lane on which everything is executed that its last thread sent. Called with the session's lock held.
Lane* take_idle(const Session& session, IdleLanes& idle) {
    Lanes& lanes = session_lanes.of(session);
    for (uint32_t* link = &idle.head; *link != 0; link = &lanes.at(*link - 1).next_idle) {
        Lane& lane = lanes.at(*link - 1);
        if (!drained(lane)) continue;
        *link = lane.next_idle;
        --idle.count;
        return renew(lane);
    }
    return nullptr;
}

// No lane can be opened: waits for an idle one. Called with the session's lock held, which it gives up
// meanwhile.
Lane* await_idle(const Session& session, IdleLanes& idle) {
    if (idle.head == 0) return nullptr;
    Lane& lane = session_lanes.of(session).at(idle.head - 1);
    idle.head = lane.next_idle;
    --idle.count;
    pthread_mutex_unlock(&idle.lock);
    const bool is_drained = drain(lane);
    pthread_mutex_lock(&idle.lock);
    if (is_drained) return renew(lane);
    add_idle(lane, idle);
    return nullptr;
}

// `base`: of the lane's memory.
protocol::LaneTimes* times_of(char* base) {
    const uint32_t offset = reinterpret_cast<LaneHeader*>(base)->times;
    if (offset == 0) return nullptr;
    times_calls.store(true, std::memory_order_relaxed);
    return reinterpret_cast<protocol::LaneTimes*>(base + offset);
}

// Called with the session's lock held.
Lane* open_new(Session& session, CUresult& status) {
    Lanes& lanes = session_lanes.of(session);
    if (!lanes.table.load(std::memory_order_relaxed)) {
        void* table = mmap(nullptr, kMaxLanes * sizeof(Lane), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (table == MAP_FAILED) return status = CUDA_ERROR_OUT_OF_MEMORY, nullptr;
        lanes.table.store(static_cast<Lane*>(table), std::memory_order_release);
    }
    uint32_t index = 0;
    uint64_t offset = 0;
    status = request_lane(session, static_cast<int32_t>(syscall(SYS_gettid)), index, offset);
    if (status != CUDA_SUCCESS) return nullptr;
    if (index >= kMaxLanes || offset > protocol::kArenaBytes - protocol::kLaneBytes) {
        return status = CUDA_ERROR_OUT_OF_MEMORY, nullptr;
    }
    Lane& lane = lanes.at(index);
    char* base = session.arena_base() + offset;
    lane.header = reinterpret_cast<LaneHeader*>(base);
    lane.ring = base + protocol::kLaneRingOffset;
    lane.reply = base + protocol::kLaneReplyOffset;
    lane.session = &session;
    lane.shared = session.header();
    lane.index = index;
    // Positions continue where the index's last lane ended.
    lane.tail = lane.known_head = lane.header->tail.load(std::memory_order_acquire);
    lane.reply_seq = 0;
    lane.capture = 0;
    lane.capture_number.store(0, std::memory_order_relaxed);
    lane.staging = {};
    lane.times = times_of(base);
    lane.posted.store(lane.tail, std::memory_order_relaxed);
    lane.live.store(1, std::memory_order_release);
    if (index >= lanes.count.load(std::memory_order_relaxed)) {
        lanes.count.store(index + 1, std::memory_order_seq_cst);
    }
    return &lane;
}

// Sleeps until half of the ring is free, so that a client that sends continuously is woken seldom.
bool wait_for_space(Lane& lane, uint32_t bytes) {
    const TimedWait timed(&CallTimes::room);
    uint64_t end = now_nanoseconds() + spin_nanoseconds();
    auto fits = [&](uint64_t room) { return head_of(lane) + kRingBytes >= lane.tail + room; };
    while (now_nanoseconds() < end) {
        if (fits(bytes)) return true;
        for (int i = 0; i < 16; ++i) pause_cpu();
    }
    LaneHeader& header = *lane.header;
    while (true) {
        header.space_wanted.store(1, std::memory_order_seq_cst);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (fits(bytes)) break;
        futex_wait(header.space_wanted, 1, kLivenessMs);
        if (fits(bytes)) break;
        if (lane.session->sticky_error() != CUDA_SUCCESS || !lane.session->server_lives()) return false;
    }
    header.space_wanted.store(0, std::memory_order_relaxed);
    return true;
}

}  // namespace

Lane* open_lane(CUresult& status) {
    Session& session = this_session();
    status = connected() ? session.sticky_error() : connect();
    if (status != CUDA_SUCCESS) return nullptr;
    if (!session.header()) return status = CUDA_ERROR_SYSTEM_NOT_READY, nullptr;  // the process turned native
    pthread_mutex_lock(&key_lock);
    if (!key_made) key_made = pthread_key_create(&thread_end, leave_lanes) == 0;
    const bool leaves = key_made;
    pthread_mutex_unlock(&key_lock);
    IdleLanes& idle = idle_lanes.of(session);
    pthread_mutex_lock(&idle.lock);
    Lane* lane = take_idle(session, idle);
    if (!lane) lane = open_new(session, status);
    if (!lane) lane = await_idle(session, idle);
    pthread_mutex_unlock(&idle.lock);
    if (!lane) return nullptr;
    status = CUDA_SUCCESS;
    lane->next_of_thread = lanes_of_thread;
    thread_lane = lanes_of_thread = lane;
    if (leaves) pthread_setspecific(thread_end, lane);
    return lane;
}

void use_session(Session& session) {
    Lane* lane = lanes_of_thread;
    while (lane && lane->session != &session) lane = lane->next_of_thread;
    thread_session = &session;
    thread_lane = lane;
}

char* reserve(Lane& lane, uint32_t bytes) {
    uint64_t at = lane.tail % kRingBytes;
    uint64_t pad = at + bytes > kRingBytes ? kRingBytes - at : 0;
    if (lane.tail + pad + bytes > lane.known_head + kRingBytes) [[unlikely]] {
        if (head_of(lane) + kRingBytes < lane.tail + pad + bytes &&
            !wait_for_space(lane, static_cast<uint32_t>(pad + bytes))) {
            return nullptr;
        }
    }
    if (pad != 0) {
        *reinterpret_cast<RecordHeader*>(lane.ring + at) = {static_cast<uint32_t>(pad),
                                                            static_cast<uint16_t>(Op::kPad), 0, 0, 0};
        lane.tail += pad;
        at = 0;
    }
    return lane.ring + at;
}

void publish(Lane& lane, uint32_t bytes) {
    lane.tail += bytes;
    LaneHeader& header = *lane.header;
    header.tail.store(lane.tail, std::memory_order_release);
    // Either the server sees the new tail before it sleeps, or this thread sees that the server sleeps.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (header.server_asleep.load(std::memory_order_relaxed) != 0 &&
        header.server_asleep.exchange(0, std::memory_order_acq_rel) != 0) {
        futex_wake(header.server_asleep);
    }
}

CUresult late_error() {
    if (!thread_lane) return CUDA_SUCCESS;
    std::atomic<int32_t>& waiting = thread_lane->header->async_error;
    if (waiting.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
    return static_cast<CUresult>(waiting.exchange(0, std::memory_order_acq_rel));
}

CUresult pending_error() {
    CUresult status = this_session().sticky_error();
    return status == CUDA_SUCCESS ? late_error() : status;
}

void note_capture_end(Lanes& lanes) {
    uint32_t count = lanes.captures.load();
    while (count && !lanes.captures.compare_exchange_weak(count, count - 1)) {
    }
}

void forget_lanes() { thread_lane = lanes_of_thread = nullptr; }

}  // namespace smt::interpose
