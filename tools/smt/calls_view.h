// What `smt bench calls` shows: the times that a server wrote of its lanes (runtime/server/call_trace.h),
// summed over all threads by CUDA call, and where each thread's time went.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace smt::tools {

// Times in nanoseconds, summed over the calls of one function.
struct CallSums {
    uint64_t calls = 0;                      // in the program; "other" has none
    uint64_t total = 0;                      // in the program, from entry to return
    uint64_t reply = 0, word = 0, room = 0;  // of that, waits
    uint64_t records = 0, awaited = 0;
    uint64_t ring = 0, thread = 0, driver = 0, waits = 0, answered = 0;
    uint64_t most = 0;  // the longest record

    uint64_t client() const;  // libsmt.so itself, without waits
    uint64_t back() const;    // from a reply to the program's going on
};

// A client thread and the server's thread of its lane.
struct LaneSums {
    int pid = 0;
    std::string tenant;
    uint32_t lane = 0;
    uint64_t client = 0;   // from its first call to its last
    uint64_t calls = 0;    // time in CUDA calls
    uint64_t waiting = 0;  // of that, for the server or the GPU
    uint64_t wall = 0, busy = 0, polling = 0, asleep = 0, sleeps = 0, records = 0;
};

struct FunctionSums {
    uint64_t calls = 0, total = 0;
};

struct CallsReport {
    std::map<std::string, CallSums> calls;
    std::map<std::string, FunctionSums> driver;
    std::vector<LaneSums> lanes;
};

// Throws Failure: it is not such a file's text.
CallsReport read_calls(std::string_view text);

struct CallsWall {
    double under_smt = 0;  // seconds
    double native = 0;     // 0: not run
};
// `most`: rows of a table; 0: all.
std::string calls_text(const CallsReport& report, const CallsWall& wall, size_t most);
std::string calls_json(const CallsReport& report, const CallsWall& wall);

}  // namespace smt::tools
