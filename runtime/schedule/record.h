// A recording: what the policies of a server saw and decided, as text. `smt replay` passes it to any policy
// without a GPU.
//
//   recording := line, { line }
//   line      := {"recording":2,"policy":NAME}                    policy from here on; the first line is one
//              | {"now":NS,"snapshot":{...},"decision":{...}}     a call of Policy::decide()
//
// Each line is a complete JSON object. Fields have the names of the structs' members (snapshot.h,
// resources.h, profile.h, policy.h); a field with the default value is omitted. Times are nanoseconds of the
// server's steady clock. Infinite numbers and NaN are null. Version 1 is read, too: services' requests are
// not in it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runtime/schedule/policy.h"

namespace smt::runtime::schedule {

struct Record {
    std::string policy;    // that decided
    bool requests = true;  // services' are in it, so that a policy that goes by them can be asked
    TimePoint now{};
    Snapshot snapshot;
    Decision decision;
};

// Without the end of line.
std::string policy_line(std::string_view policy);
std::string record_line(const Snapshot& snapshot, TimePoint now, const Decision& decision);

// Reads a line into the record. False: a policy line; only `policy` has changed. True: a decision line.
// Throws std::runtime_error with the reason if the line is malformed.
bool read_line(std::string_view line, Record& record);

// Visits each decision of a recording in order. Throws std::runtime_error with the file name and line number.
void read_recording(const std::string& path, const std::function<void(const Record&)>& visit);

}  // namespace smt::runtime::schedule
