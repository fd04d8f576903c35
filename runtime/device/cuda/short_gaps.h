// Keeps the gaps between kernels short.
//
// Measured on an H100 and an H200 (tools/bench/probes/short_gaps.py): once executable graphs with some
// thousand nodes were instantiated, the GPU leaves longer gaps between any two kernels of the context that
// follow each other: on an H100 a small kernel takes 1.16 us with its gap, where it took 0.99, and a pass of
// GPT-2 1.17 of its time. The gaps are short again once another context was made on the GPU, by any process,
// also one that ends at once. Why is not known.
//
// So a process makes a context and ends, some time after graphs were instantiated.
//
// Any thread, unless something else is said.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "driver_api.gen.h"
#include "runtime/thread/thread.h"

namespace smt::runtime::device {

struct GapTimes {
    // Graphs come in rows, as a program captures them: the context is made behind the last one, or when some
    // have come for so long.
    std::chrono::milliseconds quiet{500}, longest{5000};
    std::chrono::milliseconds between{10000};  // two contexts
};

class ShortGaps {
public:
    // Makes a context in another process, and waits for its end, or until `over` returns true. False: it
    // cannot. After three failures in a row it is not tried again.
    using Over = std::function<bool()>;
    using MakeContext = std::function<bool(const Over& over)>;

    explicit ShortGaps(MakeContext make, const GapTimes& times = {})
        : make_(std::move(make)), times_(times) {}
    ~ShortGaps() { end(); }
    ShortGaps(const ShortGaps&) = delete;
    ShortGaps& operator=(const ShortGaps&) = delete;

    // Calls through the table tell it of graphs, once in a process; before any other thread is there. It
    // outlives such calls.
    void watch(DriverApi& driver);
    void instantiated();
    // No context is being made then, and none is made any more.
    void end();

private:
    void run();

    const MakeContext make_;
    const GapTimes times_;
    std::mutex mutex_;
    std::condition_variable changed_;
    uint64_t graphs_ = 0;
    bool over_ = false;
    Thread thread_;  // from the first graph on
};

// `smtd --make-context`, with `key`. Until it has ended, `over` returns true, or some seconds have passed;
// then the process is killed.
bool make_context_in_another_process(const std::string& key, const ShortGaps::Over& over);

}  // namespace smt::runtime::device
