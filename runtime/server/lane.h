// The server's counterpart of one client thread: executes the records of one lane, in order.
//
// Functions below "Lane's thread only" are for the lane's own thread. The session's thread starts, stops
// and joins the lane. The lane holds no lock of its own while it executes a record.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/protocol/layout.h"
#include "runtime/protocol/record.h"
#include "runtime/server/call_trace.h"
#include "runtime/server/memory/arena.h"
#include "runtime/server/objects/events.h"
#include "runtime/server/streams.h"
#include "runtime/server/takeover/marks.h"
#include "runtime/thread/thread.h"

namespace smt::runtime::server {

class Session;

class Lane {
public:
    // `address`: kLaneBytes, and a LaneTimes behind them if the server times calls.
    // `position`: where the previous lane of this index ended; ring positions continue from there.
    Lane(Session& session, uint32_t index, uint64_t address, uint64_t position);
    // Of a session that is taken over: the lane goes on at its position.
    struct Saved {
        uint64_t index;
        uint64_t address;
        uint64_t position;
        Arena::Staging staging;
        uint64_t has_own_stream;
        SavedStream own_stream;
    };
    Lane(Session& session, const Saved& saved);
    ~Lane();
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;

    uint32_t index() const { return index_; }
    uint64_t address() const { return address_; }

    std::string start();  // empty, or why no thread could be started
    void stop();          // requests the end after the current record; does not block
    // Takeover. halt(): stops after the current record until the session's fate is decided (Session::hold()).
    // wake(): again, because the client may write server_asleep, too.
    void halt();
    void wake();
    // Suspension: waits in front of the session's gate, unless the lane has to stop. On the lane's thread.
    void stand() const;
    bool pending() const;                 // its client has written a record that is not done; any thread
    std::string why_not_carried() const;  // of a lane that stands still; empty: nothing
    Saved saved() const;
    CUresult take_own_stream(const SavedStream& saved);  // before start()
    // The record is executed again, here or in another process, so what its client waits for stays undone.
    // Called by the handler of a record that fails, on the lane's thread.
    bool leaves_open(CUresult status);
    // Executes a record without a client, with what it takes of the upload buffer. Before start().
    CUresult replay(protocol::Op op, const std::string& payload, std::vector<char> upload);
    bool ended() const { return ended_.load(std::memory_order_acquire); }
    void join();
    uint64_t position() const { return head_; }  // valid after ended()

    // Blocks until the lane has executed all records before `position`, or `waiter` must stop.
    void wait_reached(uint64_t position, const Lane& waiter);
    uint64_t reached() const { return reached_.load(); }  // by all that it has executed
    bool stopping() const { return stopping_.load(); }

    // Lane's thread only.

    // Keeps an object alive until the current record is done.
    void hold(const StreamPointer& stream) { held_streams_.push_back(stream); }
    void hold(const EventPointer& event) { held_events_.push_back(event); }
    StreamPointer held(CUstream stream) const;  // null: the current record holds none with this handle
    // The current record enqueues work on the stream: noted when the record is done.
    void uses(Stream& stream) {
        number_ = stream.in_flight.begin();
        used_.push_back({&stream, number_});
    }
    // What the last use is: the launch of a kernel, or of a graph, by its name in the journal.
    void launches(Stream& stream, uint32_t name) { stream.in_flight.name(number_, name); }
    // Before an unmanaged launch: whether all of the lane's, or many in a row, are on this stream. If so the
    // lane may wait for what is ahead there; else launches on other streams would wait behind it.
    bool keeps_to(const Stream& stream) {
        if (std::exchange(launched_on_, &stream) != &stream) in_a_row_ = in_a_row_ ? 0 : kManyInARow;
        return ++in_a_row_ > kManyInARow;
    }
    // Notes the uses now instead of at the end of the record: for handlers that let other threads proceed
    // before that.
    void note_uses();
    void let_go();  // end of the record: notes its uses, drops the held objects

    StreamPointer& own_stream() { return own_stream_; }  // null until the first use
    void new_thread();  // which gets a stream of its own if that of the last one has something to do
    const Arena::Staging& staging() const { return staging_; }  // address 0: not opened
    CUresult open_staging();
    // Slot `slot` of the staging block and its word; false: no such slot, or staging is not open.
    bool staging_slot(uint32_t slot, uint64_t* address, uint32_t* word) const;
    // The same where the slot is used, and its word gets a value then.
    bool use_slot(uint32_t slot, uint64_t done_value, uint64_t* address, uint32_t* word);

    std::vector<char>& upload() { return upload_; }      // kUploadBegin, kUploadSlot, kModuleLoad
    Charge& upload_charge() { return upload_charge_; }   // what upload() takes of the client's host memory
    std::vector<char>& download() { return download_; }  // kLinkComplete, kDownload

private:
    enum class Step { kDone, kEnd, kCorrupt };
    static constexpr uint64_t kManyInARow = 1024;

    void leave_own_stream();
    void run();
    Step next_record(uint64_t tail);
    CUresult execute(const protocol::RecordHeader& record, uint32_t* reply_bytes);
    CUresult call_handler(const protocol::RecordHeader& record, uint32_t* reply_bytes);
    void note_launch(const protocol::RecordHeader& record, CUresult status);
    CUresult wait_lane(const protocol::RecordHeader& record);
    void mark(const protocol::RecordHeader& record);
    void mark_done();
    void make_room(const protocol::RecordHeader& record, CUresult* status, uint32_t* reply_bytes);
    void await_room(const protocol::RecordHeader& record, CUresult* status, uint32_t* reply_bytes);
    void execute_again(const protocol::RecordHeader& record, CUresult* status, uint32_t* reply_bytes);
    void await_fate();
    void finish(const protocol::RecordHeader& record, CUresult status, uint32_t reply_bytes);
    void publish(uint64_t head);
    void wait_for_records();
    void note_taken(const protocol::RecordHeader& record, const char* end);
    void close();
    void fail(const std::string& why);
    protocol::LaneHeader& header() const { return *reinterpret_cast<protocol::LaneHeader*>(address_); }

    Session& session_;
    const uint32_t index_;
    const uint64_t address_;
    Thread thread_;
    Marks::Lane* const mark_;  // null: no other process could take the session over
    std::atomic<bool> stopping_{false};
    std::atomic<bool> halted_{false};  // stopping_ is set for that reason
    std::atomic<bool> told_to_stop_{false};
    std::atomic<bool> ended_{false};
    std::atomic<uint64_t> reached_;      // copy of head_ that other lanes read; not in shared memory
    std::atomic<uint32_t> progress_{0};  // futex word of wait_reached()
    std::atomic<uint32_t> waiters_{0};

    uint64_t head_;
    uint64_t tail_;                       // as last read
    std::unique_ptr<uint64_t[]> record_;  // private copy of the current record's payload
    std::unique_ptr<LaneTrace> trace_;    // null: calls are not timed
    std::vector<StreamPointer> held_streams_;
    std::vector<EventPointer> held_events_;
    struct Use {
        Stream* stream;
        uint64_t number;  // on its stream (in_flight.h)
    };
    std::vector<Use> used_;
    uint64_t number_ = 0;                // of the last use on its stream (in_flight.h)
    const void* launched_on_ = nullptr;  // the stream of the last unmanaged launch
    uint64_t in_a_row_ = 0;              // of them on this stream; the first is as if many were
    StreamPointer own_stream_;
    Arena::Staging staging_;
    std::vector<char> upload_;
    Charge upload_charge_;
    bool left_open_ = false;     // leaves_open() was true for the current record
    bool final_ = false;         // the current record is not executed again
    bool unrepeatable_ = false;  // the lane stands at a record that cannot be executed again
    std::vector<char> download_;
};

}  // namespace smt::runtime::server
