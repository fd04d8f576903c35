// A session's streams, and the legacy default stream's ordering among them.
//
// Every stream of the driver is CU_STREAM_NON_BLOCKING, because the driver's own legacy stream
// would order tenants against each other. The tenant's legacy stream is one more stream, and its
// rule (it waits for the blocking streams' earlier work, their later work waits for it) is kept
// with events, only where the program really mixes the two:
//
//   legacy used:    every blocking stream with work since the last join: record there, wait here
//   blocking used:  if the legacy stream worked since this one last waited: record there, wait here
//
// A host function runs in the client, for as long as it likes. The GPU is made to wait for it only when
// something is enqueued behind it: a waiting stream stops its hardware queue, which it may share with
// another tenant's stream.
//
// A use is noted after its record was enqueued. Two threads that race have no order to keep; a
// thread that comes later finds the note, because its lane waited for that record (kWaitLane).
//
// A program that uses one kind only pays one relaxed load a record. A capturing stream takes no part.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/dispatch/managed_stream.h"
#include "runtime/protocol/record.h"
#include "runtime/server/arena.h"

namespace smt::runtime::server {

class Lane;

// One stream. Who uses it holds a reference, so a stream destroyed by another thread lives until
// the record that uses it is done.
struct Stream : std::enable_shared_from_this<Stream> {
    Stream(const DriverApi& driver, Arena& arena) : driver(driver), arena(arena) {}
    ~Stream();   // destroys the driver's stream, which finishes its work first
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    const DriverApi& driver;
    Arena& arena;
    CUstream handle = nullptr;
    uint32_t reference = 0;
    int32_t priority = 0;                    // the program's; the driver's is Dispatcher::stream_priority()
    bool blocking = false;                   // orders with the legacy stream
    std::atomic<uint64_t> uses{0};           // records that enqueued work on it
    std::atomic<uint64_t> synchronized{0};   // so many of them are known to be complete
    std::atomic<bool> unjoined{false};       // blocking: work the legacy stream has not waited for
    std::atomic<uint64_t> legacy_seen{0};    // blocking: legacy generation it has waited for
    CUevent join = nullptr;                  // guarded by Streams::join_mutex_
    std::mutex callback_mutex;               // one host function at a time is enqueued
    Arena::Word callback;                    // guarded by callback_mutex; the index never changes again
    std::atomic<uint64_t> awaited_by_none{0};   // the word's value when the last host function has
                                                  // returned; 0: the stream's work waits for it, or none
    std::atomic<dispatch::ManagedStream*> managed{nullptr};   // once a managed kernel is launched; owned

    // Before anything but a managed launch is enqueued, or the stream's end is waited for.
    CUresult guard() {
        dispatch::ManagedStream* stream = managed.load(std::memory_order_acquire);
        return stream ? stream->guard() : CUDA_SUCCESS;
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

class Streams {
public:
    Streams(const DriverApi& driver, Arena& arena) : driver_(driver), arena_(arena) {}
    ~Streams();
    Streams(const Streams&) = delete;
    Streams& operator=(const Streams&) = delete;

    // Before open(): who dispatches managed launches, and whose they are.
    void serve(dispatch::Dispatcher& dispatcher, std::shared_ptr<dispatch::Tenant> tenant);
    CUresult open();   // the legacy stream
    // The stream's dispatch::ManagedStream, made the first time.
    CUresult manage(Stream& stream, dispatch::ManagedStream** managed);
    // Before something unmanaged is launched: waits for its turn, where somebody may go first.
    CUresult enter(Stream& stream, const dispatch::UnmanagedLaunch& launch, dispatch::UnmanagedPass* pass);

    // OUT_OF_MEMORY where there are `most`.
    CUresult create(uint32_t flags, int32_t priority, size_t most, StreamPointer* stream);
    size_t count();   // created ones, and those that were destroyed and have work
    CUresult destroy(uint32_t reference);
    CUresult find(uint32_t reference, Lane& lane, StreamPointer* stream);   // makes the lane's own one

    // Before work is enqueued: the legacy ordering, the wait for a host function, and that managed launches
    // in front are not overtaken. After it was: the note. order() is the first part, for those who only ask;
    // prepare_launch() leaves the last one out, for launches that the stream's dispatcher takes.
    CUresult prepare(Stream& stream);
    CUresult prepare_launch(Stream& stream);
    CUresult order(Stream& stream);
    CUresult wait_function(Stream& stream);
    void note_use(Stream& stream);

    // The program's priorities and the driver's.
    int driver_priority(int priority) const;
    CUresult set_priority(CUstream stream, int priority);
    int priority_of(CUstream stream) const;

    CUresult synchronize(Stream& stream);
    CUresult query(const Stream& stream) const;   // SUCCESS, NOT_READY or the error
    // Waits for all work of the session that was enqueued before the call. Skips capturing streams.
    CUresult synchronize_all();
    CUresult guard_all();   // until the driver has all managed launches and none can be stopped; skips capturing streams
    void forget_code();   // the session's work is over, and its kernels may go
    // Whether work is under way: SUCCESS, NOT_READY or the error.
    CUresult query_all();
    bool busy() const;   // whether any is not known to be over; no driver call

    // Captures under way in the session. While there are none nobody asks the driver.
    void capture_begun() { captures_.fetch_add(1); }
    void capture_ended() { captures_.fetch_sub(1); }
    bool capturing(CUstream stream) const;

    const StreamPointer& legacy() const { return legacy_; }
    void retire(const StreamPointer& stream);   // a lane's own stream, when the lane ends
    // Of a client that is gone, or that resets: `ended` is told what each stream has captured.
    void end_captures(const std::function<void(CUstream, CUgraph)>& ended);
    // Destroys every created stream, whose work is over; the legacy and the lanes' streams stay.
    void clear();
    void close();   // destroys those too; the session's last use of this object
    void abandon();   // the client is gone: managed launches that wait will not run

private:
    CUresult make(bool blocking, int32_t priority, StreamPointer* stream);
    CUresult join_blocking(Stream& legacy);
    CUresult wait_legacy(Stream& stream);
    void let_go(const StreamPointer& stream);   // with mutex_ held
    void drop_idle();                           // of retired_; with mutex_ held
    std::vector<StreamPointer> all() const;

    const DriverApi& driver_;
    Arena& arena_;
    StreamPointer legacy_;
    std::atomic<int> captures_{0};
    dispatch::Dispatcher* dispatcher_ = nullptr;
    std::shared_ptr<dispatch::Tenant> tenant_;

    mutable std::mutex mutex_;               // the lists; never held over a wait for a program's work
    std::unordered_map<uint32_t, StreamPointer> created_;
    std::vector<StreamPointer> own_;         // the lanes' per-thread streams
    std::vector<StreamPointer> retired_;     // destroyed by the program, their work is not over
    std::vector<StreamPointer> unjoined_;    // those whose `unjoined` is set
    uint32_t next_ = protocol::kFirstStream;

    std::mutex join_mutex_;                  // one join at a time; taken before mutex_
    std::atomic<uint32_t> unjoined_count_{0};         // drops after the join is in place
    std::atomic<uint64_t> legacy_generation_{0};      // grows with each use of the legacy stream
    uint64_t legacy_recorded_ = 0;           // generation legacy_event_ covers; under join_mutex_
    CUevent legacy_event_ = nullptr;         // under join_mutex_
};

}  // namespace smt::runtime::server
