// A recording: what the policies of a server saw and decided, as text, for `smt replay`, which asks any policy again
// without a GPU.
//
//   recording := line, { line }
//   line      := {"recording":1,"policy":NAME}                    who decides from here on; the first line is one
//              | {"now":NS,"snapshot":{...},"decision":{...}}     a call of Policy::decide()
//
// A line is an object of JSON and stands by itself. Fields have the names of the structs' members (snapshot.h,
// resources.h, profile.h, policy.h); one that has its default is left out. Times are nanoseconds of the server's steady
// clock. Numbers that are none (infinite, NaN) are null.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runtime/schedule/policy.h"

namespace smt::runtime::schedule {

struct Record {
    std::string policy;   // whose decision it is
    TimePoint now{};
    Snapshot snapshot;
    Decision decision;
};

// Without their end of line.
std::string policy_line(std::string_view policy);
std::string record_line(const Snapshot& snapshot, TimePoint now, const Decision& decision);

// Takes a line into the record: a policy's name alone (false), or what it decided, and what it saw (true). Throws
// std::runtime_error: it is no such line, and why.
bool read_line(std::string_view line, Record& record);

// Every decision of a recording in its order. Throws std::runtime_error with the file's name and the line's number.
void read_recording(const std::string& path, const std::function<void(const Record&)>& visit);

}  // namespace smt::runtime::schedule
