#include "tools/metrics/collector.h"

#include <sys/stat.h>

#include <algorithm>

#include "tools/smt/command.h"
#include "tools/smt/kernels_view.h"
#include "tools/smt/places.h"

namespace smt::tools::metrics {

using protocol::TenantStatus;
using runtime::journal::Entry;
using runtime::journal::Kind;
using runtime::journal::Reader;

namespace {

constexpr double kNs = 1e-9;

ino_t identity(const std::string& path) {
    struct stat status{};
    return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

}  // namespace

uint64_t BySession::sum() const {
    uint64_t all = 0;
    for (const auto& [session, value] : last_) all += value;
    return all;
}

void BySession::restart() { last_ = {{0, sum()}}; }

// ---- Journals

void JournalCount::restart() {
    tenant_by_session_.clear();
    next_.reset();
    for (auto& [name, tally] : tenants_) {
        for (auto& [function, calls] : tally.unsupported) calls.restart();
        tally.sm_time.restart();
    }
}

void JournalCount::add(const Reader& reader, const Entry& entry) {
    if (next_ && entry.sequence > *next_) lost_ += entry.sequence - *next_;
    next_ = entry.sequence + 1;
    if (entry.kind == Kind::kSessionOpened) tenant_by_session_[entry.session] = reader.name(entry.name);
    if (entry.session == 0) return;  // the server's own
    const auto tenant = tenant_by_session_.find(entry.session);
    Tally& tally = tenants_[tenant == tenant_by_session_.end() ? "unknown" : tenant->second];
    switch (entry.kind) {
        case Kind::kSessionOpened:
            ++tally.sessions;
            break;
        case Kind::kSessionClosed:
            if (entry.grid[2]) ++tally.faults[entry.grid[2]];
            break;
        case Kind::kLaunch:
            // A simulated device alone knows where a launch ran; elsewhere its mapping does.
            if (entry.virtual_time) tally.sm_time.add(entry.multiprocessors, entry.start_ns, entry.end_ns);
            ++tally.launches[treatment_of(reader.name(static_cast<uint32_t>(entry.value))).how];
            break;
        case Kind::kMapping:
            if (!entry.virtual_time) tally.sm_time.add(entry.multiprocessors, entry.start_ns, entry.end_ns);
            break;
        case Kind::kUnsupported:
            tally.unsupported[reader.name(entry.name)].set(entry.session, entry.value);
            break;
        case Kind::kDecision:
            ++tally.decisions;
            break;
        case Kind::kStopped:
            tally.stops.add(static_cast<double>(entry.value) * kNs);
            tally.begun_anew += entry.grid[0];
            break;
        default:
            break;
    }
}

void Collector::follow() {
    std::lock_guard lock(mutex_);
    for (const std::string& key : keys_with(".journal")) read(key, servers_[key]);
    for (const std::string& key : keys_with(".sock")) servers_[key];
    for (auto& [key, server] : servers_) ask(key, server);
}

void Collector::read(const std::string& key, Server& server) {
    const std::string path = path_of(key, ".journal");
    const ino_t file = identity(path);
    auto reader = std::make_unique<Reader>(path);
    if (!file || !reader->error().empty()) return;
    if (file != server.journal) {
        if (server.reader) server.read();  // the end of the journal before, which has another name now
        server.journal = file;
        server.next = 0;
        server.count.restart();
    }
    server.reader = std::move(reader);
    server.read();
}

void Collector::Server::read() {
    next = reader->read(next, [this](const Entry& entry) { count.add(*reader, entry); });
}

// ---- Answers

void Collector::Totals::restart() {
    for (BySession* each : {&gpu_time_ns, &zeroed_bytes, &refused, &waited_ns}) each->restart();
    for (BySession& each : waits) each.restart();
}

void Collector::ask(const std::string& key, Server& server) {
    try {
        server.status = ask_tenants(key);
    } catch (const Failure&) {
        server.status.reset();
    }
    if (!server.status) return;
    if (const pid_t now = server.status->server.server_pid; now != server.process) {
        server.process = now;
        for (auto& [tenant, totals] : server.totals) totals.restart();
    }
    for (const TenantStatus& each : server.status->tenants) {
        Totals& totals = server.totals[each.tenant];
        totals.gpu_time_ns.set(each.session, each.gpu_time_ns);
        totals.zeroed_bytes.set(each.session, each.memory.zeroed);
        totals.refused.set(each.session, each.memory.refused);
        totals.waited_ns.set(each.session, each.waits.ns);
        for (size_t i = 0; i < totals.waits.size(); ++i)
            totals.waits[i].set(each.session, each.waits.counts[i]);
    }
}

// ---- Text

std::string Collector::collect() {
    follow();
    std::lock_guard lock(mutex_);
    Exposition out;
    expose_servers(out);
    expose_tenants(out);
    expose_totals(out);
    expose_journals(out);
    return out.text();
}

void Collector::expose_servers(Exposition& out) const {
    out.family("smt_server_up", Type::kGauge, "Whether the server answers.");
    for (const auto& [key, server] : servers_) out.sample("", {{"server", key}}, server.status.has_value());
    out.family("smt_server", Type::kInfo, "Device and policy.");
    for (const auto& [key, server] : servers_) {
        if (server.status)
            out.sample("_info",
                       {{"server", key},
                        {"device", server.status->server.device},
                        {"policy", server.status->server.policy}},
                       1);
    }
    out.family("smt_server_uptime_seconds", Type::kGauge, "Since the server began.");
    for (const auto& [key, server] : servers_) {
        if (server.status)
            out.sample("", {{"server", key}}, static_cast<double>(server.status->server.uptime_ms) / 1000);
    }
    out.family("smt_server_multiprocessors", Type::kGauge, "Of the device.");
    for (const auto& [key, server] : servers_) {
        if (server.status) out.sample("", {{"server", key}}, server.status->server.multiprocessors);
    }
}

void Collector::expose_tenants(Exposition& out) const {
    const auto each_program = [&](std::string_view name, std::string_view help, auto value) {
        out.family(name, Type::kGauge, help);
        for (const auto& [key, server] : servers_) {
            if (!server.status) continue;
            for (const TenantStatus& tenant : server.status->tenants)
                value(tenant, Labels{{"server", key},
                                     {"tenant", tenant.tenant},
                                     {"program", tenant.program},
                                     {"pid", std::to_string(tenant.pid)}});
        }
    };
    const auto one = [&](auto value) {
        return [&out, value](const TenantStatus& tenant, const Labels& labels) {
            out.sample("", labels, static_cast<double>(value(tenant)));
        };
    };
    each_program("smt_program_weight", "Its share beside others, where the policy goes by shares.",
                 one([](const TenantStatus& tenant) { return tenant.weight; }));
    each_program("smt_program_priority", "Higher is more urgent.",
                 one([](const TenantStatus& tenant) { return tenant.priority; }));
    each_program("smt_program_device_memory_bytes", "Device memory held, by what it is used for.",
                 [&](const TenantStatus& tenant, Labels labels) {
                     const auto& memory = tenant.memory;
                     labels.emplace_back("use", "");
                     for (const auto& [use, bytes] : {std::pair{"asked", memory.asked},
                                                      {"lost", memory.lost},
                                                      {"idle", memory.idle},
                                                      {"other", memory.other}}) {
                         labels.back().second = use;
                         out.sample("", labels, static_cast<double>(bytes));
                     }
                 });
    each_program("smt_program_memory_limit_bytes", "Of all programs of its tenant; 0: the device's memory.",
                 one([](const TenantStatus& tenant) { return tenant.memory_limit; }));
    each_program("smt_program_host_memory_bytes", "Pinned and managed memory, and images in transfer.",
                 one([](const TenantStatus& tenant) { return tenant.host_bytes; }));
    each_program(
        "smt_program_away_memory_bytes",
        "Its device memory that is not on the device now, as it is suspended or others have their turn.",
        [&](const TenantStatus& tenant, Labels labels) {
            labels.emplace_back("where", "host");
            out.sample("", labels, static_cast<double>(tenant.away_bytes - tenant.file_bytes));
            labels.back().second = "file";
            out.sample("", labels, static_cast<double>(tenant.file_bytes));
        });
    each_program("smt_program_wait_seconds", "The longest current wait for another program; 0: none.",
                 one([](const TenantStatus& tenant) { return tenant.waited_ms / 1000.0; }));
    each_program("smt_program_target_p99_seconds", "What its requests may take under slo; 0: no such target.",
                 one([](const TenantStatus& tenant) { return static_cast<double>(tenant.p99_us) * 1e-6; }));
    each_program(
        "smt_program_seen_p99_seconds", "What its last requests took; 0: none was seen.",
        one([](const TenantStatus& tenant) { return static_cast<double>(tenant.seen_p99_us) * 1e-6; }));
}

void Collector::expose_totals(Exposition& out) const {
    const auto each_tenant = [&](std::string_view name, std::string_view help, BySession Totals::* of,
                                 double unit) {
        out.family(name, Type::kCounter, help);
        for (const auto& [key, server] : servers_) {
            for (const auto& [tenant, totals] : server.totals)
                out.sample("_total", {{"server", key}, {"tenant", tenant}},
                           static_cast<double>((totals.*of).sum()) * unit);
        }
    };
    each_tenant("smt_tenant_gpu_time_seconds", "GPU time received: what its completed work takes alone.",
                &Totals::gpu_time_ns, kNs);
    each_tenant("smt_tenant_zeroed_bytes", "Device memory that was zeroed for it.", &Totals::zeroed_bytes, 1);
    each_tenant("smt_tenant_memory_refusals", "How often memory was refused at a limit.", &Totals::refused,
                1);
    expose_waits(out);
}

void Collector::expose_waits(Exposition& out) const {
    out.family(
        "smt_tenant_wait_seconds", Type::kHistogram,
        "Waits of its programs' threads for other programs, and for the driver where that waits for all "
        "work, when they are over.");
    std::vector<double> bounds;
    for (const uint64_t bound : protocol::kWaitBoundsUs) bounds.push_back(static_cast<double>(bound) / 1e6);
    for (const auto& [key, server] : servers_) {
        for (const auto& [tenant, totals] : server.totals) {
            Histogram waits(bounds);
            for (size_t i = 0; i < totals.waits.size(); ++i) waits.add(i, totals.waits[i].sum());
            waits.add_sum(static_cast<double>(totals.waited_ns.sum()) * kNs);
            out.histogram({{"server", key}, {"tenant", tenant}}, waits);
        }
    }
}

void Collector::expose_journals(Exposition& out) const {
    const auto each_tally = [&](std::string_view name, Type type, std::string_view help, auto value) {
        out.family(name, type, help);
        for (const auto& [key, server] : servers_) {
            for (const auto& [tenant, tally] : server.count.tenants())
                value(tally, Labels{{"server", key}, {"tenant", tenant}});
        }
    };
    const auto with = [](Labels labels, std::string_view name, const std::string& text) {
        labels.emplace_back(name, text);
        return labels;
    };
    each_tally("smt_tenant_sessions", Type::kCounter, "Programs that began.",
               [&](const Tally& tally, const Labels& labels) {
                   out.sample("_total", labels, static_cast<double>(tally.sessions));
               });
    each_tally("smt_tenant_launches", Type::kCounter, "Launches of kernels and graphs, by how they were run.",
               [&](const Tally& tally, const Labels& labels) {
                   for (const auto& [how, count] : tally.launches)
                       out.sample("_total", with(labels, "form", how), static_cast<double>(count));
               });
    each_tally("smt_tenant_decisions", Type::kCounter, "Decisions of the policy about its kernels.",
               [&](const Tally& tally, const Labels& labels) {
                   out.sample("_total", labels, static_cast<double>(tally.decisions));
               });
    each_tally(
        "smt_tenant_sm_seconds", Type::kCounter,
        "Time that multiprocessors ran blocks of it, added up over them; where blocks ran is known on a "
        "simulated device, and with SMT_JOURNAL=mapping.",
        [&](const Tally& tally, const Labels& labels) {
            out.sample("_total", labels, static_cast<double>(tally.sm_time.ns()) * kNs);
        });
    each_tally("smt_tenant_faults", Type::kCounter,
               "Programs that ended with a fault, their own or another's, by CUDA's error.",
               [&](const Tally& tally, const Labels& labels) {
                   for (const auto& [error, count] : tally.faults)
                       out.sample("_total", with(labels, "error", std::to_string(error)),
                                  static_cast<double>(count));
               });
    each_tally(
        "smt_tenant_unsupported_calls", Type::kCounter, "Calls of functions that smt does not support.",
        [&](const Tally& tally, const Labels& labels) {
            for (const auto& [function, calls] : tally.unsupported)
                out.sample("_total", with(labels, "function", function), static_cast<double>(calls.sum()));
        });
    each_tally("smt_tenant_stop_seconds", Type::kHistogram,
               "From the decision to stop its kernel to the end of the kernel's last block.",
               [&](const Tally& tally, const Labels& labels) { out.histogram(labels, tally.stops); });
    each_tally("smt_tenant_blocks_begun_anew", Type::kCounter,
               "Blocks that a stop ended before their end, and those over behind them, which are run again.",
               [&](const Tally& tally, const Labels& labels) {
                   out.sample("_total", labels, static_cast<double>(tally.begun_anew));
               });
    out.family("smt_journal_lost_entries", Type::kCounter,
               "Entries that were overwritten before they were read.");
    for (const auto& [key, server] : servers_)
        out.sample("_total", {{"server", key}}, static_cast<double>(server.count.lost()));
}

}  // namespace smt::tools::metrics
