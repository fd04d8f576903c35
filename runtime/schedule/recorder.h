// Writes a recording (record.h) while a server runs: SMT_JOURNAL=record=FILE.
//
// A decision becomes a line in memory. Lines go to the file in batches, into the page cache; no write waits
// for a disk. If the file reaches its limit or a write fails, the recorder notes it once and then does
// nothing. Not thread-safe: the caller serialises all calls.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/schedule/policy.h"

namespace smt::runtime::schedule {

class Recorder {
public:
    // Creates or truncates the file. `note` receives why recording stopped, on the thread of the call that
    // failed.
    Recorder(std::string path, uint64_t most_bytes, std::function<void(const std::string&)> note);
    ~Recorder();  // writes what is left
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    const std::string& error() const { return error_; }  // not empty: there is no file
    void choose(std::string_view policy);                // the policy that decides from now on
    void write(const Snapshot& snapshot, TimePoint now, const Decision& decision);

private:
    void add(const std::string& line);
    void flush();
    void stop(const std::string& why);

    const std::string path_;
    const uint64_t most_bytes_;
    const std::function<void(const std::string&)> note_;
    std::string error_;
    int file_ = -1;      // -1: stopped
    std::string lines_;  // not yet in the file
    TimePoint flushed_{};
    uint64_t bytes_ = 0;
    uint64_t decisions_ = 0;
};

}  // namespace smt::runtime::schedule
