// What `smt replay` prints, apart from the command so that tests can read it: what each policy would have
// decided in each situation of a recording, beside what was decided.
//
// The situations are the recorded ones. A policy that would have stopped another tenant would soon have met
// others, so this shows single decisions side by side, not how a policy would have done. What counts is what
// holds after a decision, not what is said: a policy says only what changes. Each policy keeps what it
// remembers through the recording.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/schedule/record.h"

namespace smt::tools {

class ReplayView {
public:
    // Of policies by name, all of which exist.
    explicit ReplayView(const std::vector<std::string>& policies);

    // Text for the next decision. Empty, if `only_differences` and all policies agree with what was decided.
    std::string show(const runtime::schedule::Record& record, bool only_differences);
    std::string summary() const;

private:
    // What holds for each kernel, in words, by its id.
    using Standing = std::map<uint64_t, std::string>;
    struct Side {
        std::string name;
        std::unique_ptr<runtime::schedule::Policy> policy;  // null: what was recorded
        Standing runs;
        Standing confined;
        uint64_t differ = 0;
    };
    static void take(Side& side, const runtime::schedule::Record& record,
                     const runtime::schedule::Decision& decision);
    static std::string standing(const Side& side, const runtime::schedule::Record& record);

    Side recorded_;
    std::vector<Side> sides_;
    uint64_t decisions_ = 0;
    runtime::schedule::TimePoint begin_{}, end_{};
};

}  // namespace smt::tools
