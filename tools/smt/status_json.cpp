// smt status --json: see status_view.h.
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "runtime/protocol/server_key.h"
#include "tools/smt/places.h"
#include "tools/smt/status_view.h"

namespace smt::tools {

namespace {

using StatusJson = nlohmann::ordered_json;

StatusJson part_of(const std::optional<double>& part) { return part ? StatusJson(*part) : StatusJson(); }

const char* state_of(protocol::TargetState state) {
    switch (state) {
        case protocol::TargetState::kNone:
            break;
        case protocol::TargetState::kLearning:
            return "learning";
        case protocol::TargetState::kKept:
            return "kept";
        case protocol::TargetState::kNotKept:
            return "not_kept";
    }
    return "not_in_force";
}

// Null: it has none.
StatusJson target_of(const protocol::TenantStatus& tenant) {
    if (!tenant.p99_us && !tenant.slowdown_thousandths) return nullptr;
    StatusJson target;
    target["p99_ms"] = tenant.p99_us ? StatusJson(static_cast<double>(tenant.p99_us) / 1000) : StatusJson();
    target["slowdown"] =
        tenant.slowdown_thousandths ? StatusJson(tenant.slowdown_thousandths / 1000.0) : StatusJson();
    target["state"] = state_of(tenant.target_state);
    const bool seen = tenant.target_state != protocol::TargetState::kNone && tenant.seen_p99_us;
    target["seen_p99_ms"] = seen ? StatusJson(static_cast<double>(tenant.seen_p99_us) / 1000) : StatusJson();
    target["headroom"] = seen ? StatusJson(tenant.headroom_thousandths / 1000.0) : StatusJson();
    target["others_multiprocessors"] = tenant.beside;
    return target;
}

StatusJson memory_of(const protocol::MemoryFigures& memory) {
    return {{"asked_bytes", memory.asked},
            {"lost_bytes", memory.lost},
            {"idle_bytes", memory.idle},
            {"other_bytes", memory.other},
            {"zeroed_bytes", memory.zeroed},
            {"zeroing_us", memory.zeroing_us},
            {"tenant_held_bytes", memory.tenant_held},
            {"refused", memory.refused}};
}

StatusJson turns_of(const protocol::TurnFigures& turns) {
    return {{"turns", turns.turns},
            {"moves", turns.moves},
            {"out_bytes", turns.out_bytes},
            {"out_us", turns.out_us},
            {"in_bytes", turns.in_bytes},
            {"in_us", turns.in_us},
            {"rest_us", turns.rest_us},
            {"pin_us", turns.pin_us},
            {"copy_us", turns.copy_us},
            {"map_us", turns.map_us},
            {"missing_bytes", turns.missing_bytes}};
}

// What its user is granted less of than it asked for.
StatusJson limited_of(uint32_t limited) {
    StatusJson names = StatusJson::array();
    for (const auto& [bit, name] : {std::pair{protocol::kLimitedPriority, "priority"},
                                    {protocol::kLimitedWeight, "weight"},
                                    {protocol::kLimitedMemory, "memory"},
                                    {protocol::kLimitedTarget, "target"}})
        if (limited & bit) names.push_back(name);
    return names;
}

StatusJson tenant_of(const protocol::TenantStatus& tenant, const Usage& usage) {
    return {{"tenant", tenant.tenant},
            {"session", tenant.session},
            {"pid", tenant.pid},
            {"gone", tenant.gone != 0},
            {"limited", limited_of(tenant.limited)},
            {"fenced", tenant.fenced != 0},
            {"quarantine", tenant.quarantine != 0},
            {"priority", tenant.priority},
            {"weight", tenant.weight},
            {"device_bytes", tenant.device_bytes},
            {"suspended", tenant.suspended != 0},
            {"out_of_turn", tenant.out_of_turn != 0},
            {"away_bytes", tenant.away_bytes},
            {"file_bytes", tenant.file_bytes},
            {"turns", turns_of(tenant.turns)},
            {"memory_limit", tenant.memory_limit},
            {"memory", memory_of(tenant.memory)},
            {"host_bytes", tenant.host_bytes},
            {"launches", tenant.launches},
            {"gpu_time_ns", tenant.gpu_time_ns},
            {"launches_per_second", usage.launches_per_second},
            {"busy", part_of(usage.busy)},
            {"multiprocessors", part_of(usage.multiprocessors)},
            {"waits_for", tenant.waits_for[0] ? StatusJson(tenant.waits_for) : StatusJson()},
            {"waited_ms", tenant.waited_ms},
            {"waits",
             std::accumulate(std::begin(tenant.waits.counts), std::end(tenant.waits.counts), uint64_t{0})},
            {"waits_ns", tenant.waits.ns},
            {"target", target_of(tenant)}};
}

}  // namespace

std::string status_json(const ServerStatus& status, const RecentUse& use) {
    StatusJson server{{"server", status.key},
                      {"device", status.server.device},
                      {"policy", status.server.policy},
                      {"isolation", protocol::is_strict_key(status.key) ? "strict" : "shared"},
                      {"pid", status.server.server_pid},
                      {"uptime_ms", status.server.uptime_ms},
                      {"use_seconds", use.seconds},
                      {"other_users_sessions", status.server.others},
                      {"other_users_bytes", status.server.other_bytes},
                      {"moves_pinned_bytes", status.server.pinned_bytes},
                      {"moves_made_bytes", status.server.made_bytes},
                      {"moves_making_us", status.server.making_us},
                      {"tenants", StatusJson::array()}};
    for (const protocol::TenantStatus& tenant : status.tenants) {
        const auto found = use.by_session.find(tenant.session);
        server["tenants"].push_back(
            tenant_of(tenant, found == use.by_session.end() ? Usage{} : found->second));
    }
    return server.dump(-1, ' ', false, StatusJson::error_handler_t::replace) + "\n";
}

std::string StatusView::json() {
    std::string all;
    for (const std::string& key : keys_with(".sock"))
        if (const auto status = ask_tenants(key)) all += status_json(*status, use_of(*status));
    return all;
}

}  // namespace smt::tools
