#include "tools/ui/state.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

namespace smt::tools::ui {

namespace {

using Json = nlohmann::ordered_json;
using protocol::TargetState;
using protocol::TenantStatus;

Json quantiles_json(const Quantiles& quantiles) {
    return quantiles.count ? Json{quantiles.median_ns, quantiles.p99_ns} : Json();
}

const char* target_text(const TenantStatus& tenant) {
    if (!tenant.p99_us && !tenant.slowdown_thousandths) return "";
    switch (tenant.target_state) {
        case TargetState::kNone:
            break;
        case TargetState::kLearning:
            return "not known yet";
        case TargetState::kKept:
            return "kept";
        case TargetState::kNotKept:
            return "not kept";
    }
    return "not in force";
}

// Of all programs of a tenant.
Json now_json(const std::vector<const TenantStatus*>& programs) {
    const TenantStatus& first = *programs.front();
    uint64_t memory = 0, away = 0, seen = 0;
    Json waits;
    for (const TenantStatus* each : programs) {
        memory += each->device_bytes;
        away += each->away_bytes;
        seen = std::max(seen, each->seen_p99_us);
        if (each->waits_for[0]) waits = each->waits_for;
    }
    const auto any = [&](uint32_t TenantStatus::* of) {
        return std::any_of(programs.begin(), programs.end(),
                           [&](const TenantStatus* each) { return each->*of != 0; });
    };
    return {{"programs", programs.size()},
            {"program", first.program},
            {"priority", first.priority},
            {"weight", first.weight},
            {"memory", memory},
            {"away", away},
            {"limit", first.memory_limit},
            {"suspended", any(&TenantStatus::suspended)},
            {"out", any(&TenantStatus::out_of_turn)},
            {"waits_for", waits},
            {"p99_us", first.p99_us},
            {"seen_p99_us", seen},
            {"target", target_text(first)}};
}

Json server_json(const ServerStatus& status) {
    return {{"key", status.key},
            {"device", status.server.device},
            {"policy", status.server.policy},
            {"uptime_ms", status.server.uptime_ms},
            {"multiprocessors", status.server.multiprocessors}};
}

Json tenants_json(const Shown& shown, const Frame& frame) {
    std::map<uint32_t, std::vector<const TenantStatus*>> present;
    if (shown.status)
        for (const TenantStatus& each : shown.status->tenants)
            present[shown.timeline.number_of(each.tenant)].push_back(&each);
    Json tenants = Json::array();
    const std::vector<std::string>& names = shown.timeline.tenants();
    for (uint32_t id = 0; id < names.size(); ++id) {
        const auto figures = frame.tenants.find(id);
        const auto now = present.find(id);
        if (shown.live && figures == frame.tenants.end() && now == present.end()) continue;
        const Figures had = figures == frame.tenants.end() ? Figures{} : figures->second;
        tenants.push_back({{"id", id},
                           {"name", names[id]},
                           {"launches", had.launches},
                           {"run", quantiles_json(had.run)},
                           {"latency", quantiles_json(had.latency)},
                           {"stop", quantiles_json(had.stop)},
                           {"now", now == present.end() ? Json() : now_json(now->second)}});
    }
    return tenants;
}

Json sms_json(const Frame& frame) {
    Json all = Json::array();
    for (const std::vector<Part>& parts : frame.multiprocessors) {
        Json one = Json::array();
        for (const Part& each : parts) {
            one.push_back(each.tenant);
            one.push_back(std::lround(each.part * 100));
        }
        all.push_back(std::move(one));
    }
    return all;
}

Json decisions_json(const Frame& frame) {
    Json all = Json::array();
    for (const Decision& each : frame.decisions)
        all.push_back(
            {{"at", each.time_ns}, {"id", each.sequence}, {"tenant", each.tenant}, {"text", each.text}});
    return all;
}

}  // namespace

std::string state_json(const Shown& shown) {
    const Frame frame = shown.timeline.frame(shown.window, shown.multiprocessors);
    const Json state{{"live", shown.live},
                     {"clock", shown.timeline.is_virtual() ? "virtual" : "monotonic"},
                     {"over", shown.window.over},
                     {"from", shown.window.from},
                     {"to", shown.window.to},
                     {"begin", shown.timeline.begin_ns()},
                     {"end", shown.timeline.end_ns()},
                     {"server", shown.status ? server_json(*shown.status) : Json()},
                     {"placed", shown.timeline.is_placed()},
                     {"sms", sms_json(frame)},
                     {"tenants", tenants_json(shown, frame)},
                     {"decided", shown.timeline.decisions()},
                     {"decisions", decisions_json(frame)}};
    return state.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace smt::tools::ui
