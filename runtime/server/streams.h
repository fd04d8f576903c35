// A session's streams, and the legacy default stream's order among them.
//
// All of the driver's streams are CU_STREAM_NON_BLOCKING, because the driver's own legacy stream would order
// tenants against each other. The tenant's legacy stream is an ordinary stream. Its rule (it waits for
// earlier work of the blocking streams, and their later work waits for it) is implemented with events, only
// where the program mixes both kinds:
//
//   legacy used:    for every blocking stream with work since the last join: record there, wait here
//   blocking used:  if the legacy stream was used since this stream's last wait: record there, wait here
//
// A host function runs in the client for an unbounded time. The GPU waits for it only if work is enqueued
// behind it: a stream that waits blocks its hardware queue, which another tenant's stream may share.
//
// A use is noted after the work is enqueued. Two threads that race have no order to keep. A thread that is
// ordered after the use finds the note, because its lane waited for that record (kWaitLane).
//
// A program that uses one kind only pays one atomic load per record. Capturing streams are left out.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/dispatch/launch_depth.h"
#include "runtime/dispatch/managed_stream.h"
#include "runtime/protocol/record.h"
#include "runtime/protocol/state.h"
#include "runtime/server/in_flight.h"
#include "runtime/server/kernel_watch.h"
#include "runtime/server/memory/arena.h"

namespace smt::runtime::server {

class Lane;

// One stream. Its users hold references, so a stream that another thread destroys exists until the record
// that uses it is done.
struct Stream : std::enable_shared_from_this<Stream> {
    Stream(const DriverApi& driver, Arena& arena, schedule::Duration ahead)
        : driver(driver), arena(arena), depth(driver, ahead) {}
    ~Stream();  // destroys the driver's stream; its pending work still completes
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    const DriverApi& driver;
    Arena& arena;
    CUstream handle = nullptr;
    dispatch::LaunchDepth depth;  // of launches that no dispatch::ManagedStream knows
    uint32_t reference = 0;
    int32_t priority = 0;                   // the program's; the driver's is Dispatcher::stream_priority()
    bool blocking = false;                  // ordered with the legacy stream
    std::atomic<uint64_t> uses{0};          // number of records that enqueued work
    std::atomic<uint64_t> synchronized{0};  // uses that are known to be complete
    InFlight in_flight;                     // the same records, for the report of a fault
    std::atomic<bool> unjoined{false};      // blocking: has work that the legacy stream does not wait for
    std::atomic<uint64_t> legacy_seen{0};   // blocking: the legacy generation that it waits for
    CUevent join = nullptr;                 // guarded by Streams::join_mutex_
    // Held while a host function is enqueued, or captured, and over what may begin a capture of the stream.
    std::mutex host_function_mutex;
    Arena::Word callback;  // guarded by host_function_mutex; its index is set once
    // The value of `callback` after the last host function, if the GPU does not wait for it yet; else 0.
    std::atomic<uint64_t> awaited_by_none{0};
    dispatch::LaunchQueue::Works kept;  // launches that no driver had, after Streams::stand_still()
    std::atomic<dispatch::ManagedStream*> managed{nullptr};  // null before the first managed launch; owned

    // To be called before work other than a managed launch is enqueued, and before a wait for the stream.
    CUresult guard() {
        dispatch::ManagedStream* stream = managed.load(std::memory_order_acquire);
        return stream ? stream->guard() : CUDA_SUCCESS;
    }
    // The same where the work need not stay behind launches that are stopped.
    CUresult come_home() {
        dispatch::ManagedStream* stream = managed.load(std::memory_order_acquire);
        return stream ? stream->come_home() : CUDA_SUCCESS;
    }
    // Waits while the last of the stream's waits is not over (dispatch/wait_list.h).
    dispatch::WaitWord pending_wait() const {
        dispatch::ManagedStream* stream = managed.load(std::memory_order_acquire);
        return stream ? stream->pending_wait() : dispatch::WaitWord{};
    }
    bool held_back() const {
        dispatch::ManagedStream* stream = managed.load(std::memory_order_acquire);
        return stream && stream->held_back();
    }

    bool busy() const { return uses.load() != synchronized.load(); }
    bool function_runs() const {
        uint64_t value = awaited_by_none.load();
        return value != 0 && arena.word(callback.index).load(std::memory_order_acquire) < value;
    }
};
using StreamPointer = std::shared_ptr<Stream>;

// In the state of a takeover.
struct SavedStream {
    uint32_t reference;
    uint32_t blocking;
    int32_t priority;
    uint32_t reserved;
    Arena::Word callback;
};

class Streams {
public:
    Streams(const DriverApi& driver, Arena& arena) : driver_(driver), arena_(arena) {}
    ~Streams();
    Streams(const Streams&) = delete;
    Streams& operator=(const Streams&) = delete;

    // Sets the dispatcher of managed launches and their tenant. To be called before open().
    void serve(dispatch::Dispatcher& dispatcher, std::shared_ptr<dispatch::Tenant> tenant);
    CUresult open();  // makes the legacy stream
    // The stream's dispatch::ManagedStream, made by the first call.
    CUresult manage(Stream& stream, dispatch::ManagedStream** managed);
    // To be called before an unmanaged launch: waits for its turn if another tenant may go first, and while
    // too much is ahead of it.
    CUresult enter(Stream& stream, Lane& lane, const dispatch::UnmanagedLaunch& launch,
                   dispatch::UnmanagedPass* pass);

    // OUT_OF_MEMORY if `most` streams exist.
    CUresult create(uint32_t flags, int32_t priority, size_t most, StreamPointer* stream);
    size_t count();  // created streams, and destroyed ones that have pending work
    CUresult destroy(uint32_t reference);
    // Makes the lane's own stream on its first use.
    CUresult find(uint32_t reference, Lane& lane, StreamPointer* stream);

    // prepare() is called before work is enqueued, note_use() after it. prepare() does three things: the
    // legacy order, the wait for a host function, and the guard that keeps the work behind earlier managed
    // launches. order() is the first part alone, for queries. prepare_launch() omits the guard, for launches
    // that the dispatcher takes over.
    CUresult prepare(Stream& stream);
    CUresult prepare_launch(Stream& stream);
    CUresult order(Stream& stream);
    CUresult wait_function(Stream& stream);
    // What `enqueue` enqueues on the prepared stream is a wait for a value, or a graph with `nodes` that
    // wait. What is behind it is no work for a policy while it waits.
    CUresult enqueue_wait(Stream& stream, const std::function<CUresult()>& enqueue,
                          dispatch::WaitWords nodes = {});
    // The same for cuStreamWaitEvent. `recorded`: Stream::pending_wait() at the event's record.
    CUresult wait_event(Stream& stream, CUevent event, unsigned flags, const dispatch::WaitWord& recorded);
    void note_use(Stream& stream);

    // Translation between the program's stream priorities and the driver's.
    int driver_priority(int priority) const;
    CUresult set_priority(CUstream stream, int priority);
    int priority_of(CUstream stream) const;

    CUresult synchronize(Stream& stream);
    CUresult query(const Stream& stream) const;  // SUCCESS, NOT_READY or the error
    // Waits for all work of the session that was enqueued before the call. Skips capturing streams.
    CUresult synchronize_all();
    // Waits until all managed launches are with the driver and not preemptible. Skips capturing streams.
    CUresult guard_all();
    void forget_code();  // the session's work is complete; its kernels may be unloaded
    // SUCCESS: all work is complete; NOT_READY; or the error.
    CUresult query_all();
    // The driver says now that it has nothing of any stream, whatever is noted of uses. False if one
    // captures, or in doubt.
    bool idle();
    UnderWay under_way() const;  // what may be incomplete; makes no driver call
    // The same of the streams that the driver has not come to the end of, whatever is held back. True: there
    // are none. Skips capturing streams. The session's lanes stand.
    bool driver_is_done(UnderWay* left);
    // Something of it may be under way, as the driver says now. Skips capturing streams. Any thread.
    bool work();
    UnderWay begun() const;  // of that, without launches of which no block has begun, or is under way
    // The first launch of each stream that runs, for the watch of endless kernels; and other work that the
    // driver has of a stream, as a launch without a limit.
    std::vector<KernelWatch::Seat> running() const;

    // Takeover. save(): the session's threads stand still, and its work is complete, so destroyed streams are
    // gone and the legacy order starts afresh. restore(): after open(). A lane's own stream is in the lane's
    // state.
    // stand_still(): threads that wait for their turn go on, and launches that the dispatcher keeps back are
    // in Stream::kept; may be repeated.
    void stand_still();
    // The same while the context is whole: what is under way ends, or is stopped between two blocks, first.
    // False: something does not yet.
    bool set_aside();
    std::vector<StreamPointer> every() const { return all(); }
    // Without a fault, from time to time: notes what is over, so that after one it does not count as under
    // way.
    void note_what_is_over();
    // The same where the driver is idle, and no lane of the session goes on: all but what is held back is
    // over.
    void note_rest();
    std::string why_not_carried() const;
    static SavedStream saved(const Stream& stream);
    void save(protocol::StateWriter& out) const;
    CUresult restore(protocol::Reader& in);
    CUresult restore_own(const SavedStream& saved, StreamPointer* stream);

    // Counts the session's active captures. If there are none, capturing() makes no driver call.
    void capture_begun() { captures_.fetch_add(1); }
    void capture_ended() { captures_.fetch_sub(1); }
    bool captures() const { return captures_.load(std::memory_order_relaxed) > 0; }
    bool capturing(CUstream stream) const;

    const StreamPointer& legacy() const { return legacy_; }
    void retire(const StreamPointer& stream);  // for a lane's own stream when the lane ends
    // Ends all captures, for teardown and reset. `ended` gets each stream and the graph that it captured.
    void end_captures(const std::function<void(CUstream, CUgraph)>& ended);
    // Destroys all created streams; their work must be complete. The legacy and the lanes' streams stay.
    void clear();
    void close();    // destroys those as well; the session's last use of this object
    void abandon();  // the client is gone: pending managed launches will not run

private:
    void await_depth(Stream& stream, const Lane& lane) const;
    CUresult make(bool blocking, int32_t priority, StreamPointer* stream);
    bool works(Stream& stream) const;
    CUresult join_blocking(Stream& legacy);
    CUresult wait_legacy(Stream& stream);
    void let_go(const StreamPointer& stream);  // caller holds mutex_
    void drop_idle();                          // cleans up retired_; caller holds mutex_
    std::vector<StreamPointer> all() const;

    const DriverApi& driver_;
    Arena& arena_;
    StreamPointer legacy_;
    std::atomic<int> captures_{0};
    dispatch::Dispatcher* dispatcher_ = nullptr;
    std::shared_ptr<dispatch::Tenant> tenant_;

    mutable std::mutex mutex_;  // guards the lists; never held over a wait for a program's work
    std::unordered_map<uint32_t, StreamPointer> created_;
    std::vector<StreamPointer> own_;       // the lanes' per-thread streams
    std::vector<StreamPointer> retired_;   // destroyed by the program, work pending
    std::vector<StreamPointer> unjoined_;  // streams with `unjoined` set
    uint32_t next_ = protocol::kFirstStream;

    std::mutex join_mutex_;                       // serialises joins; taken before mutex_
    std::atomic<uint32_t> unjoined_count_{0};     // decremented after the join is in place
    std::atomic<uint64_t> legacy_generation_{0};  // number of uses of the legacy stream
    uint64_t legacy_recorded_ = 0;    // generation that legacy_event_ covers; guarded by join_mutex_
    CUevent legacy_event_ = nullptr;  // guarded by join_mutex_
};

}  // namespace smt::runtime::server
