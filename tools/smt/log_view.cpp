// See log_view.h.
#include "tools/smt/log_view.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <memory>

#include "runtime/journal/printable.h"
#include "tools/smt/json.h"
#include "tools/smt/usage.h"

namespace smt::tools {

using runtime::journal::Entry;
using runtime::journal::Kind;

namespace {

// The journal's clock counts from boot; people want the time of day.
std::string time_of_day(uint64_t monotonic_ns) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    auto wall = static_cast<uint64_t>(now.tv_sec) * 1'000'000'000ull + static_cast<uint64_t>(now.tv_nsec);
    uint64_t at = wall - (runtime::journal::now_ns() - monotonic_ns);
    auto seconds = static_cast<time_t>(at / 1'000'000'000ull);
    tm local{};
    ::localtime_r(&seconds, &local);
    return fmt::format("{:02}:{:02}:{:02}.{:06}", local.tm_hour, local.tm_min, local.tm_sec,
                       at % 1'000'000'000ull / 1000);
}

std::string dimensions(const uint32_t (&size)[3]) {
    if (size[2] != 1) return fmt::format("{}x{}x{}", size[0], size[1], size[2]);
    return size[1] != 1 ? fmt::format("{}x{}", size[0], size[1]) : fmt::format("{}", size[0]);
}

// A simulated device's clock counts from its start.
std::string virtual_time(uint64_t nanoseconds) {
    return fmt::format("{:.3f} us", static_cast<double>(nanoseconds) / 1000);
}

std::string time_text(const Entry& entry) {
    return entry.virtual_time ? virtual_time(entry.time_ns) : time_of_day(entry.time_ns);
}

std::string microseconds(const Entry& entry) {
    return timed(entry) ? fmt::format("{:.2f}", static_cast<double>(entry.end_ns - entry.start_ns) / 1000)
                        : "-";
}

constexpr const char* kRow = "{:<16} {:<16} {:>6}  {:<40} {:>14} {:>12} {:>5} {:>8} {:>10}\n";
constexpr const char* kPlacedRow =
    "{:>16} {:<16} {:>6}  {:<40} {:>14} {:>12} {:>5} {:>8} {:>10} {:>10} {:>8} {:>16}\n";

// A system's server has the user in front of its tenants' names; a name without is all users'.
bool is_named(const std::string& tenant, const std::string& name) {
    return tenant == name || tenant.substr(tenant.find('/') + 1) == name;
}

}  // namespace

std::vector<int> placed_on(const Entry& entry) {
    std::vector<int> all;
    for (int i = 0; i < 64 * runtime::journal::kPlaceWords; ++i) {
        if (entry.multiprocessors[i / 64] >> i % 64 & 1) all.push_back(i);
    }
    return all;
}

std::string multiprocessors(const Entry& entry) {
    const std::vector<int> all = placed_on(entry);
    std::string text;
    for (size_t i = 0; i < all.size();) {
        size_t last = i;
        while (last + 1 < all.size() && all[last + 1] == all[last] + 1) ++last;
        if (!text.empty()) text += ",";
        text += last == i ? fmt::format("{}", all[i]) : fmt::format("{}-{}", all[i], all[last]);
        i = last + 1;
    }
    return text;
}

std::string demangle(const std::string& name) {
    int status = 0;
    std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
    return runtime::journal::printable(status == 0 && text ? text.get() : name);
}

const std::string& LogView::kernel(uint32_t index) {
    auto [found, fresh] = kernels_.try_emplace(index);
    if (fresh) found->second = demangle(text(index));
    return found->second;
}

const std::string& LogView::tenant_of(const Entry& entry) {
    static const std::string no_tenant;
    if (entry.kind == Kind::kNote && entry.session == 0) return no_tenant;
    auto [found, fresh] = tenant_by_session_.try_emplace(entry.session);
    if (entry.kind == Kind::kSessionOpened || entry.kind == Kind::kSessionClosed)
        found->second = text(entry.name);
    else if (fresh)  // its opening was overwritten by newer entries
        found->second = fmt::format("session {}", entry.session);
    return found->second;
}

void LogView::count(const Entry& entry, Tenant& tenant) {
    switch (entry.kind) {
        case Kind::kSessionOpened:
            ++tenant.sessions;
            break;
        case Kind::kSessionClosed:
            ++tenant.ended.sessions;
            tenant.ended.launches += uint64_t{entry.grid[1]} << 32 | entry.grid[0];
            tenant.ended.received_ns += entry.end_ns;
            break;
        case Kind::kLaunch:
            ++tenant.launches;
            if (timed(entry)) ++tenant.timed, tenant.gpu_ns += entry.end_ns - entry.start_ns;
            break;
        case Kind::kUnsupported: {
            uint64_t& calls = tenant.unsupported[text(entry.name)][entry.session];
            calls = std::max(calls, entry.value);
            break;
        }
        default:
            break;
    }
}

void LogView::show(const Entry& entry) {
    const std::string& tenant = tenant_of(entry);
    if (!shape_.tenant.empty() && !is_named(tenant, shape_.tenant)) return;
    ++shown_;
    if (!tenant.empty()) count(entry, tenants_[tenant]);
    if (shape_.kernels) return count_kernel(entry, tenant);
    if (shape_.totals) return;
    shape_.json ? show_json(entry, tenant) : show_text(entry, tenant);
}

void LogView::count_kernel(const Entry& entry, const std::string& tenant) {
    const bool times = entry.kind == Kind::kGpuTime;
    if (entry.kind != Kind::kLaunch && entry.kind != Kind::kIntoGraph && !times) return;
    const KernelTable::Key key{tenant, kernel(entry.name),
                               entry.value ? text(static_cast<uint32_t>(entry.value)) : ""};
    if (times) {
        const uint64_t launches = uint64_t{entry.grid[1]} << 32 | entry.grid[0];
        return table_.set_time(key, text(entry.name), entry.stream, {entry.end_ns, entry.start_ns, launches});
    }
    entry.kind == Kind::kLaunch ? table_.add_launch(key, text(entry.name))
                                : table_.add_into_graph(key, text(entry.name));
}

void LogView::show_title() {
    if (!shape_.title.empty() && !headed_) fmt::print("\n{}\n", shape_.title);
}

void LogView::show_text(const Entry& entry, const std::string& tenant) {
    const bool placed = entry.virtual_time != 0;
    show_title();
    if (!headed_ && placed)
        fmt::print(kPlacedRow, "start", "tenant", "stream", "kernel", "grid", "block", "regs", "shared B",
                   "us", "SMs", "CTAs/SM", "end");
    else if (!headed_)
        fmt::print(kRow, "time", "tenant", "stream", "kernel", "grid", "block", "regs", "shared B", "GPU us");
    headed_ = true;
    std::string time = time_text(entry);
    switch (entry.kind) {
        case Kind::kLaunch:
            if (placed) {
                fmt::print(kPlacedRow, virtual_time(entry.start_ns), tenant, entry.stream, kernel(entry.name),
                           dimensions(entry.grid), dimensions(entry.block), entry.registers,
                           entry.shared_bytes, microseconds(entry), multiprocessors(entry),
                           entry.blocks_together, virtual_time(entry.end_ns));
                return;
            }
            fmt::print(kRow, time, tenant, entry.stream, kernel(entry.name), dimensions(entry.grid),
                       dimensions(entry.block), entry.registers, entry.shared_bytes, microseconds(entry));
            return;
        case Kind::kSessionOpened:
            fmt::print("{:<16} {:<16} -- opened by {}, process {}\n", time, tenant, text(entry.text),
                       entry.value);
            return;
        case Kind::kSessionClosed:
            fmt::print("{:<16} {:<16} -- closed: {}\n", time, tenant, text(entry.text));
            return;
        case Kind::kUnsupported:
            fmt::print("{:<16} {:<16} -- called {}, which is not supported\n", time, tenant,
                       text(entry.name));
            return;
        case Kind::kMapping:
            if (!shape_.mapping) return;
            fmt::print("{:<16} {:<16} -- {} ran {} blocks in {} workers on SMs {}, {} us\n", time, tenant,
                       kernel(entry.text), entry.value, entry.blocks_together, multiprocessors(entry),
                       microseconds(entry));
            return;
        case Kind::kIntoGraph:
            fmt::print("{:<16} {:<16} -- {} becomes part of a graph\n", time, tenant, kernel(entry.name));
            return;
        case Kind::kStopped:
            fmt::print(
                "{:<16} {:<16} -- {} has stopped, {:.1f} us after the decision{}{}\n", time, tenant,
                kernel(entry.text), static_cast<double>(entry.value) / 1e3,
                timed(entry) ? fmt::format("; its longest ticket took {} us", microseconds(entry)) : "",
                entry.grid[0] ? fmt::format("; {} of its blocks are begun anew", entry.grid[0]) : "");
            return;
        case Kind::kGpuTime:
            return;
        case Kind::kDecision:
        case Kind::kNote:
            break;
    }
    fmt::print("{:<16} {:<16} -- {}\n", time, tenant, text(entry.text));
}

void LogView::show_json(const Entry& entry, const std::string& tenant) {
    static constexpr const char* kKinds[] = {"?",           "launch",     "opened",   "closed",
                                             "unsupported", "note",       "decision", "mapping",
                                             "stopped",     "into graph", "gpu time"};
    auto kind = static_cast<uint32_t>(entry.kind);
    fmt::print(R"({{"sequence":{},"kind":"{}","time_ns":{},"session":{},"tenant":{},"server":{})",
               entry.sequence, kKinds[kind < std::size(kKinds) ? kind : 0], entry.time_ns, entry.session,
               json_string(tenant), json_string(shape_.server));
    if (entry.kind == Kind::kLaunch || entry.kind == Kind::kIntoGraph) {
        fmt::print(R"(,"lane":{},"stream":{},"kernel":{},"symbol":{},"treatment":{},)"
                   R"("grid":[{},{},{}],"block":[{},{},{}],)"
                   R"("registers":{},"shared_bytes":{},"start_ns":{},"end_ns":{}{}}})",
                   entry.lane, entry.stream, json_string(kernel(entry.name)), json_string(text(entry.name)),
                   json_string(entry.value ? text(static_cast<uint32_t>(entry.value)) : ""), entry.grid[0],
                   entry.grid[1], entry.grid[2], entry.block[0], entry.block[1], entry.block[2],
                   entry.registers, entry.shared_bytes, entry.start_ns, entry.end_ns,
                   entry.virtual_time ? fmt::format(R"(,"clock":"virtual","sms":[{}],"ctas_per_sm":{})",
                                                    fmt::join(placed_on(entry), ","), entry.blocks_together)
                   : placed_on(entry).empty()
                       ? ""
                       : fmt::format(R"(,"sms":[{}])", fmt::join(placed_on(entry), ",")));  // confined to
    } else {
        fmt::print(
            R"(,"name":{},"text":{},"value":{}{}}})", json_string(text(entry.name)),
            json_string(text(entry.text)), entry.value,
            entry.kind == Kind::kMapping
                ? fmt::format(R"(,"workers":{},"sms":[{}],"start_ns":{},"end_ns":{})", entry.blocks_together,
                              fmt::join(placed_on(entry), ","), entry.start_ns, entry.end_ns)
            : entry.kind == Kind::kSessionClosed
                ? fmt::format(R"(,"gpu_ns":{},"fault":{})", entry.end_ns, entry.grid[2])
            : entry.kind == Kind::kGpuTime ? fmt::format(R"(,"stream":{},"gpu_ns":{},"gpu_ns_one_wave":{})",
                                                         entry.stream, entry.end_ns, entry.start_ns)
            : entry.kind == Kind::kStopped
                ? (timed(entry) ? fmt::format(R"(,"start_ns":{},"end_ns":{},"ticket_blocks":{})",
                                              entry.start_ns, entry.end_ns, entry.blocks_together)
                                : "") +
                      fmt::format(R"(,"blocks_begun_anew":{})", entry.grid[0])
                : "");
    }
    fmt::print("\n");
}

void LogView::show_totals() const {
    for (const auto& [name, tenant] : tenants_)
        fmt::print(R"({{"tenant":{},"server":{},"earlier":{},"sessions":{},"ended":{},"launches":{},)"
                   R"("gpu_ns":{}}})"
                   "\n",
                   json_string(name), json_string(shape_.server), shape_.of_earlier_server, tenant.sessions,
                   tenant.ended.sessions, tenant.ended.launches, tenant.ended.received_ns);
}

void LogView::show_summary() {
    if (shape_.kernels && !shape_.json) show_title();
    if (shape_.kernels) return fmt::print("{}", shape_.json ? table_.json() : table_.text());
    if (shape_.totals) return show_totals();
    if (shape_.json) return;  // a program counts for itself
    fmt::print("\n{:<24} {:>8} {:>10} {:>14}\n", "tenant", "sessions", "launches", "GPU ms");
    for (const auto& [name, tenant] : tenants_)
        fmt::print(
            "{:<24} {:>8} {:>10} {:>14}\n", name, tenant.sessions, tenant.launches,
            tenant.timed ? fmt::format("{:.3f}", static_cast<double>(tenant.gpu_ns) / 1e6) : "not timed");
    bool none = true;
    for (const auto& [name, tenant] : tenants_) {
        for (const auto& [function, sessions] : tenant.unsupported) {
            if (none) fmt::print("\ncalled, and not supported:\n");
            none = false;
            uint64_t calls = 0;
            for (const auto& [session, in_session] : sessions) calls += in_session;
            fmt::print("  {:<40} {:>8} times by {}\n", function, calls, name);
        }
    }
    if (none) fmt::print("\nno unsupported function was called\n");
}

}  // namespace smt::tools
