// Writes a recording (record.h) while a server runs: SMT_JOURNAL=record=FILE.
//
// A decision becomes a line in memory, and lines go to the file many at a time: to the system's cache, nobody waits for
// a disk. When the file is full, or cannot be written, it says so once and does nothing from then on.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/schedule/policy.h"

namespace smt::runtime::schedule {

class Recorder {
public:
    // The file is made anew. `note` hears why it stopped, in the thread that wrote then.
    Recorder(std::string path, uint64_t most_bytes, std::function<void(const std::string&)> note);
    ~Recorder();   // writes what is left
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    const std::string& error() const { return error_; }   // not empty: there is no file
    // Whoever calls sees to it that nobody else does.
    void choose(std::string_view policy);   // it decides from now on
    void write(const Snapshot& snapshot, TimePoint now, const Decision& decision);

private:
    void add(const std::string& line);
    void flush();
    void stop(const std::string& why);

    const std::string path_;
    const uint64_t most_bytes_;
    const std::function<void(const std::string&)> note_;
    std::string error_;
    int file_ = -1;          // -1: stopped
    std::string lines_;      // not in the file yet
    TimePoint flushed_{};
    uint64_t bytes_ = 0;
    uint64_t decisions_ = 0;
};

}  // namespace smt::runtime::schedule
