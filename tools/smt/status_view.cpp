// See status_view.h.
#include "tools/smt/status_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "runtime/journal/fault_record.h"
#include "runtime/journal/journal.h"
#include "runtime/protocol/server_key.h"
#include "tools/smt/places.h"

namespace smt::tools {

using runtime::journal::Entry;

namespace {

constexpr uint64_t kWindow = 5'000'000'000;  // long enough to see more than one step of most programs

constexpr const char* kTenantRow =
    "  {:<20} {:>7} {:>8} {:>8} {:>7} {:>12} {:>12} {:>12} {:>10} {:>10} {:>6} {:>6}\n";

constexpr const char* kMemoryRow =
    "  {:<20} {:>8} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8}\n";

std::string in_mebibytes(uint64_t bytes) {
    return fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 20));
}
std::string mebibytes(uint64_t bytes) { return in_mebibytes(bytes) + " MiB"; }

std::string age(std::chrono::seconds seconds) {
    const auto count = seconds.count();
    if (count < 120) return fmt::format("{} s ago", count);
    if (count < 2 * 3600) return fmt::format("{} min ago", count / 60);
    return fmt::format("{} h ago", count / 3600);
}

std::string percent(const std::optional<double>& part) {
    return part ? fmt::format("{:.1f}", *part * 100) : "-";
}

std::string part_text(int thousandths) { return fmt::format("{:.0f} %", thousandths / 10.0); }

std::string no_server() { return "no server is running (looked in " + runtime_directory() + ")\n"; }

const char* isolation_text(const std::string& key) {
    return protocol::is_strict_key(key) ? ", strict: a context of one tenant" : "";
}

// "target 8 ms at the 99th percentile: 6.53 ms seen, 18 % headroom; ..."; empty: it has none.
std::string target_text(const protocol::TenantStatus& tenant, std::string_view policy) {
    using protocol::TargetState;
    std::string wants;
    if (tenant.p99_us) wants = fmt::format("{:.4g} ms", static_cast<double>(tenant.p99_us) / 1000);
    if (tenant.slowdown_thousandths)
        wants += fmt::format("{}{:.4g} times what it has by itself", wants.empty() ? "" : " and ",
                             tenant.slowdown_thousandths / 1000.0);
    if (wants.empty()) return "";
    const std::string seen = tenant.seen_p99_us ? fmt::format("{:.4g} ms seen, {} headroom",
                                                              static_cast<double>(tenant.seen_p99_us) / 1000,
                                                              part_text(tenant.headroom_thousandths))
                                                : "no requests seen yet";
    const std::string others =
        tenant.beside ? fmt::format("others have {} multiprocessors beside its requests", tenant.beside)
                      : "others are stopped for its requests";
    const std::string target = "target " + wants + " at the 99th percentile: ";
    switch (tenant.target_state) {
        case TargetState::kNone:
            return target +
                   (policy == "slo" ? "no requests beside other tenants yet" : "policy slo alone goes by it");
        case TargetState::kLearning:
            return fmt::format("{}its requests are not known yet; {}", target, others);
        case TargetState::kKept:
            return fmt::format("{}{}; {}", target, seen, others);
        case TargetState::kNotKept:
            break;
    }
    return fmt::format("{}{}; it cannot be kept: {}", target, seen, others);
}

// What a user sees of the others on a system's server.
std::string others_text(const protocol::StatusReply& server) {
    if (server.others == 0) return "";
    return fmt::format("  other users: {} sessions, {}\n", server.others, mebibytes(server.other_bytes));
}

// Empty: nothing was pinned for moves.
std::string pinned_text(const protocol::StatusReply& server) {
    if (server.made_bytes == 0) return "";
    return fmt::format("  host memory for moves: {} pinned now; {} were pinned so far, in {:.3f} s\n",
                       mebibytes(server.pinned_bytes), mebibytes(server.made_bytes),
                       static_cast<double>(server.making_us) / 1e6);
}

std::string limited_text(const protocol::TenantStatus& tenant) {
    std::string what;
    const auto add = [&](uint32_t which, const char* name) {
        if (tenant.limited & which) what += (what.empty() ? "" : ", ") + std::string(name);
    };
    add(protocol::kLimitedPriority, "priority");
    add(protocol::kLimitedWeight, "weight");
    add(protocol::kLimitedMemory, "memory");
    add(protocol::kLimitedTarget, "target");
    return fmt::format("  {} asked for more than its user is granted: {}\n", tenant.tenant, what);
}

// Where that is what is not on the device.
std::string away_text(const protocol::TenantStatus& tenant) {
    const std::string memory = mebibytes(tenant.away_bytes - tenant.file_bytes) + " in host memory";
    return tenant.file_bytes ? fmt::format("{} and {} in files", memory, mebibytes(tenant.file_bytes))
                             : memory;
}

// Empty: nothing of it has moved.
std::string turns_text(const protocol::TenantStatus& tenant) {
    const protocol::TurnFigures& turns = tenant.turns;
    if (turns.moves == 0) return "";
    return fmt::format("  {} {}: {} moved out in {:.3f} s, {} in in {:.3f} s, {} turns\n", tenant.tenant,
                       tenant.out_of_turn ? fmt::format("is out, with {}", mebibytes(tenant.away_bytes))
                                          : "is on the device",
                       mebibytes(turns.out_bytes), static_cast<double>(turns.out_us) / 1e6,
                       mebibytes(turns.in_bytes), static_cast<double>(turns.in_us) / 1e6, turns.turns);
}

}  // namespace

std::string status_text(const ServerStatus& status, const RecentUse& use) {
    const protocol::StatusReply& server = status.server;
    std::string text =
        fmt::format("server {}: {}, policy {}, up {:.1f} s, {} sessions{}", status.key, server.device,
                    server.policy[0] ? server.policy : "-", static_cast<double>(server.uptime_ms) / 1000,
                    status.tenants.size() + server.others, isolation_text(status.key));
    if (use.seconds > 0) text += fmt::format("; busy and SMs in % of the last {:.3g} s", use.seconds);
    text += "\n" + fmt::format(kTenantRow, "tenant", "session", "process", "priority", "weight", "memory",
                               "limit", "host", "launches", "a second", "busy", "SMs");
    for (const protocol::TenantStatus& tenant : status.tenants) {
        const auto found = use.by_session.find(tenant.session);
        const Usage usage = found == use.by_session.end() ? Usage{} : found->second;
        text += fmt::format(
            kTenantRow, tenant.tenant, tenant.session, tenant.gone ? "gone" : fmt::format("{}", tenant.pid),
            tenant.priority, fmt::format("{:.3g}", tenant.weight), mebibytes(tenant.device_bytes),
            tenant.memory_limit ? mebibytes(tenant.memory_limit) : "-", mebibytes(tenant.host_bytes),
            tenant.launches, fmt::format("{:.1f}", usage.launches_per_second), percent(usage.busy),
            percent(usage.multiprocessors));
    }
    text += others_text(server);
    for (const protocol::TenantStatus& tenant : status.tenants) {
        if (tenant.fenced)
            text +=
                fmt::format("  {} is fenced: a fault of its kernels ends no other tenant\n", tenant.tenant);
        if (tenant.quarantine)
            text += fmt::format("  {} is in quarantine: nothing of it is under way with others' work\n",
                                tenant.tenant);
        if (tenant.limited) text += limited_text(tenant);
        if (const std::string target = target_text(tenant, server.policy); !target.empty())
            text += fmt::format("  {}: {}\n", tenant.tenant, target);
        if (tenant.waits_for[0])
            text += fmt::format("  {} waits {:.1f} s for {}\n", tenant.tenant, tenant.waited_ms / 1000.0,
                                tenant.waits_for);
        if (tenant.suspended)
            text += fmt::format("  {} is suspended, {}\n", tenant.tenant, away_text(tenant));
        if (tenant.out_of_turn && tenant.turns.missing_bytes)
            text += fmt::format(
                "  {} is out, {}, and cannot come in: {} are missing that cannot "
                "be moved; smt log says whose, end or suspend one of them\n",
                tenant.tenant, away_text(tenant), mebibytes(tenant.turns.missing_bytes));
        else if (tenant.out_of_turn)
            text += fmt::format("  {} is out until its next turn, {}\n", tenant.tenant, away_text(tenant));
        if (tenant.gone)
            text += fmt::format("  {} is gone: its program has ended, and its work on the GPU has not\n",
                                tenant.tenant);
    }
    return text;
}

std::string memory_text(const ServerStatus& status) {
    std::string text =
        fmt::format("server {}: {}, device memory in MiB, {} held{}\n", status.key, status.server.device,
                    in_mebibytes(status.server.device_bytes), isolation_text(status.key));
    text += fmt::format(kMemoryRow, "tenant", "process", "held", "asked", "lost", "idle", "other", "tenant's",
                        "limit", "zeroed", "in s", "refused");
    for (const protocol::TenantStatus& tenant : status.tenants) {
        const protocol::MemoryFigures& memory = tenant.memory;
        text += fmt::format(
            kMemoryRow, tenant.tenant, tenant.pid, in_mebibytes(tenant.device_bytes),
            in_mebibytes(memory.asked), in_mebibytes(memory.lost), in_mebibytes(memory.idle),
            in_mebibytes(memory.other), in_mebibytes(memory.tenant_held),
            tenant.memory_limit ? in_mebibytes(tenant.memory_limit) : "-", in_mebibytes(memory.zeroed),
            fmt::format("{:.3f}", static_cast<double>(memory.zeroing_us) / 1e6), memory.refused);
    }
    text += others_text(status.server) + pinned_text(status.server);
    for (const protocol::TenantStatus& tenant : status.tenants) {
        text += turns_text(tenant);
        if (tenant.file_bytes) text += fmt::format("  {} has {}\n", tenant.tenant, away_text(tenant));
    }
    return text;
}

RecentUse StatusView::use_of(const ServerStatus& status) {
    const runtime::journal::Reader journal(path_of(status.key, ".journal"));
    if (!journal.error().empty()) return {};  // the rest is worth showing without it
    Place& place = read_[status.key];
    if (place.server_pid != status.server.server_pid) place = {status.server.server_pid, 0};
    std::vector<Entry> entries;
    uint64_t newest = 0;
    journal.read(place.sequence, [&](const Entry& entry) {
        entries.push_back(entry);
        newest = std::max({newest, entry.time_ns, entry.end_ns});
    });
    // A kernel's times are added to its entry when it is over, so the same entries are read again.
    const auto counts = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
        return entry.time_ns + 2 * kWindow > newest;
    });
    if (counts != entries.end()) place.sequence = counts->sequence;
    return recent_use(entries, kWindow, runtime::journal::now_ns(),
                      static_cast<int>(status.server.multiprocessors));
}

// Of each GPU's last one, also when its server has left.
std::string fault_text(const std::string& key) {
    const auto fault = runtime::journal::read_fault(path_of(key, ".fault"));
    return fault ? fmt::format("last fault of {}, {}: {}\n", key, age(fault->ago), fault->text) : "";
}

std::string StatusView::text() {
    std::string all, faults;
    for (const std::string& key : keys_with(".fault")) faults += fault_text(key);
    for (const std::string& key : keys_with(".sock")) {
        const auto status = ask_tenants(key);
        if (status) all += status_text(*status, use_of(*status));
    }
    return (all.empty() ? no_server() : all) + faults;
}

std::string StatusView::memory_text() {
    std::string all;
    for (const std::string& key : keys_with(".sock")) {
        if (const auto status = ask_tenants(key)) all += tools::memory_text(*status);
    }
    return all.empty() ? no_server() : all;
}

}  // namespace smt::tools
