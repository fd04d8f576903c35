// Kernels, devices and decisions as tables.
#pragma once

#define CATCH_CONFIG_ENABLE_PAIR_STRINGMAKER  // in every file that includes Catch
#include <catch2/catch.hpp>
#include <map>

#include "runtime/schedule/policies/policies.h"
#include "tools/fleet/worked.h"

namespace smt::tests {

using namespace runtime::schedule;  // the words of the tables
using namespace std::chrono_literals;
using State = Kernel::State;
using Action = Assignment::Action;

inline constexpr TimePoint kBegin = TimePoint{} + std::chrono::hours(1);

// `parts` of it fill an SM, whatever is counted.
inline Resources nth_of(const Resources& sm, uint32_t parts) {
    return {sm.threads / parts, sm.registers / parts, sm.shared_bytes / parts, sm.warps / parts, 1};
}

inline constexpr Resources kSm{2048, 65536, 228 << 10, 64, 32};

inline Device device(int sms, const Resources& sm = kSm) { return {sms, sm}; }

inline Kernel kernel(uint64_t id, uint64_t blocks, const Resources& cta = {}) {
    Kernel made;
    made.id = id;
    made.tenant = "t" + std::to_string(id);
    made.blocks = blocks;
    made.cta = cta;
    return made;
}

inline Kernel waiting(Kernel kernel, TimePoint since = kBegin) {
    kernel.state = State::kWaiting;
    kernel.since = since;
    return kernel;
}

// What a decision says of each kernel, short: "wait", "run", "run 5" (on each SM), "run 2 0" (by SM), and
// ", slice 400" if there is one.
inline std::map<uint64_t, std::string> said(const Decision& decision) {
    std::map<uint64_t, std::string> all;
    for (const Assignment& each : decision.assignments) {
        std::string& text = all[each.kernel];
        text = each.action == Action::kWait ? "wait" : "run";
        for (const int ctas : each.quota) text += " " + std::to_string(ctas);
        if (each.slice) text += ", slice " + std::to_string(each.slice);
        if (each.reason.empty()) text += " without a reason";
    }
    return all;
}

using Said = std::map<uint64_t, std::string>;

using fleet::Worked;

}  // namespace smt::tests
