// Where the time of CUDA calls goes (SMT_CALLS, `smt bench calls`): what a lane's thread measures, joined
// with what its client thread measured (protocol/call_times.h).
//
// A record's life, as its lane sees it:
//
//   published --ring--> taken --thread, driver, waits--> done
//
// `done`: the reply is about to be published, or the record without reply is executed. The time of the lane's
// thread that belongs to no record is polling, sleep, or the rest.
//
// The file gets one line of JSON for each lane that ends. Times in it are nanoseconds:
//
//   {"pid", "tenant", "lane", "wall", "client": between its first and last call, "records", "polling",
//    "asleep", "sleeps", "busy",
//    "calls": [{"name", "calls", "total", "reply", "word", "room",        the client's (CallTimes)
//               "records", "awaited", "ring", "thread", "driver", "waits", "most", "answered"}],
//    "driver": [{"name", "calls", "total"}]}
//
// "awaited" counts the records with a reply, and "answered" is their time from published to done, so that
// reply - answered is the way back. "most" is the longest time from taken to done.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/call_clock.h"
#include "runtime/protocol/call_times.h"

namespace smt::runtime::server {

// The server's: the file, and the rate of the time stamp counter. Any thread.
class CallTrace {
public:
    static std::unique_ptr<CallTrace> wanted();  // by SMT_CALLS; null: it has no file
    // `after`: nanoseconds of each lane that do not count; a lane that is shorter gets no line.
    explicit CallTrace(std::string path, uint64_t after = 0);

    uint64_t after() const { return after_; }

    double nanoseconds_per_tick() const;        // measured since the constructor
    void write(const std::string& line) const;  // appends it at once

private:
    const std::string path_;
    const uint64_t after_;
    const uint64_t ticks_;
    const uint64_t nanoseconds_;
};

// One lane's. Its thread only.
class LaneTrace {
public:
    struct About {
        int32_t pid = 0;
        std::string tenant;
        uint32_t lane = 0;
    };
    // `client`: in the arena, and not trusted.
    LaneTrace(const CallTrace& trace, const protocol::LaneTimes* client);

    void begin();                                                  // on the thread whose records these are
    void taken(const protocol::RecordStamp& stamp, bool awaited);  // a record; null stamp: all 0
    void done();                                                   // the record; again without effect
    void polled(uint64_t since) { polling_ += protocol::ticks() - since; }
    void slept(uint64_t since) { asleep_ += protocol::ticks() - since, ++sleeps_; }
    void end(const About& about);  // writes the line; on the same thread
    std::string line(const About& about, uint64_t now, double nanoseconds_per_tick) const;

private:
    void count_from_now();
    protocol::CallTimes client_times(uint32_t call) const;

    struct Served {
        uint64_t records = 0, awaited = 0, ring = 0, thread = 0, driver = 0, waits = 0, most = 0,
                 answered = 0;
    };

    const CallTrace& trace_;
    const protocol::LaneTimes* const client_;
    device::CallClock clock_;
    std::vector<Served> served_;                   // by RecordStamp::call
    uint64_t ignored_until_ = 0;                   // of journal::now_ns(); 0: everything counts from now on
    std::unique_ptr<protocol::LaneTimes> before_;  // the client's, when it began to count; null: at once
    protocol::RecordStamp stamp_{};
    bool awaited_ = false, under_way_ = false;
    uint64_t begun_ = 0, taken_ = 0, driver_ = 0, waits_ = 0;
    uint64_t polling_ = 0, asleep_ = 0, sleeps_ = 0, busy_ = 0;
};

}  // namespace smt::runtime::server
