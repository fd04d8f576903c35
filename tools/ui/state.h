// The state of a frame as JSON:
//
//   {"live":true, "clock":"virtual", "from":NS, "to":NS, "begin":NS, "end":NS,
//    "server":{"key":..., "device":..., "policy":..., "uptime_ms":..., "multiprocessors":132} | null,
//    "placed":true,                      whether it is known where something ran
//    "sms":[[TENANT,PERCENT, TENANT,PERCENT ...], ...]
//    "tenants":[{"id":0, "name":"alice", "launches":12, "run":[MEDIAN,P99] | null, "latency":..., "stop":...,
//                "now":{"programs":1, "priority":0, "weight":1, "memory":BYTES, "away":BYTES, "limit":BYTES,
//                       "suspended":false, "out":false, "waits_for":"...", "p99_us":..., "seen_p99_us":...,
//                       "target":"kept"} | null}, ...],
//    "decided":COUNT, "decisions":[{"at":NS, "id":SEQUENCE, "tenant":0, "text":"..."}, ...]}
//
// Times are ns of the journal's clock, durations ns.
#pragma once

#include <optional>
#include <string>

#include "tools/smt/control.h"
#include "tools/ui/timeline.h"

namespace smt::tools::ui {

struct Shown {
    Timeline& timeline;
    Window window;
    int multiprocessors = 0;
    bool live = false;
    const std::optional<ServerStatus>& status;
};

std::string state_json(const Shown& shown);

}  // namespace smt::tools::ui
