// smt suspend and smt resume: a tenant's device memory leaves the GPU, and comes back, while its programs
// wait.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tools/smt/command.h"
#include "tools/smt/control.h"
#include "tools/smt/places.h"

namespace smt::tools {
namespace {

constexpr double kPatience = 10, kLongestPatience = 24 * 3600;  // seconds

uint32_t parse_patience(const std::string* text) {
    if (!text) return static_cast<uint32_t>(kPatience * 1000);
    char* end = nullptr;
    const double seconds = std::strtod(text->c_str(), &end);
    if (text->empty() || *end || !std::isfinite(seconds) || seconds < 0 || seconds > kLongestPatience)
        throw Misuse(fmt::format("--timeout wants seconds, 0 to {}, not '{}'", kLongestPatience, *text));
    return static_cast<uint32_t>(std::lround(seconds * 1000));
}

// The servers where a program of the tenant runs.
std::vector<std::string> servers_of(const std::string& tenant) {
    std::vector<std::string> found;
    const std::vector<std::string> servers = keys_with(".sock");
    bool any = false;
    for (const std::string& key : servers) {
        const auto status = ask_tenants(key);
        any = any || status;
        if (status && std::any_of(status->tenants.begin(), status->tenants.end(),
                                  [&](const auto& each) { return each.tenant == tenant; }))
            found.push_back(key);
    }
    if (!any) throw Failure("no server is running (looked in " + runtime_directory() + ")");
    if (found.empty()) throw Failure("no program of tenant " + tenant + " runs");
    return found;
}

std::string size_text(uint64_t bytes) {
    return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string said(const std::string& tenant, bool suspends, const protocol::SuspendReply& reply) {
    const double seconds = static_cast<double>(reply.took_ns) / 1e9;
    if (!suspends)
        return fmt::format("tenant {} goes on: {} are on the GPU again, after {:.3f} s\n", tenant,
                           size_text(reply.moved_bytes), seconds);
    return fmt::format("tenant {} is suspended: {} in {} host memory, {} stay on the GPU, after {:.3f} s\n",
                       tenant, size_text(reply.moved_bytes), reply.pinned ? "pinned" : "pageable",
                       size_text(reply.stay_bytes), seconds);
}

std::string in_json(const std::string& key, const std::string& tenant, const protocol::SuspendReply& reply) {
    const nlohmann::ordered_json line{{"server", key},
                                      {"tenant", tenant},
                                      {"sessions", reply.sessions},
                                      {"moved_bytes", reply.moved_bytes},
                                      {"stay_bytes", reply.stay_bytes},
                                      {"pinned", reply.pinned != 0},
                                      {"copied_ns", reply.copied_ns},
                                      {"took_ns", reply.took_ns}};
    return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

int ask_for(const Options& options, bool suspends) {
    if (options.operands.size() != 1) throw Misuse("which tenant? One name; smt status shows them");
    const std::string& tenant = options.operands[0];
    protocol::SuspendRequest request;
    request.kind = suspends ? protocol::ControlKind::kSuspend : protocol::ControlKind::kResume;
    request.patience_ms = parse_patience(options.value("--timeout"));
    if (tenant.size() >= sizeof request.tenant) throw Misuse("no tenant has so long a name");
    std::memcpy(request.tenant, tenant.c_str(), tenant.size() + 1);
    for (const std::string& key : servers_of(tenant)) {
        const auto reply = ask_to_suspend(key, request);
        if (!reply) throw Failure("server " + key + " has left");
        if (!reply->ok) throw Failure(reply->message);
        fmt::print("{}",
                   options.has("--json") ? in_json(key, tenant, *reply) : said(tenant, suspends, *reply));
    }
    return 0;
}

int run_suspend(const Arguments& arguments) {
    return ask_for(parse_options(arguments, {"--json"}, {"--timeout"}, Operands::kMixed), true);
}

int run_resume(const Arguments& arguments) {
    return ask_for(parse_options(arguments, {"--json"}, {}, Operands::kMixed), false);
}

}  // namespace

const Command suspend_command = {
    "suspend",
    "smt suspend TENANT [--timeout SECONDS] [--json]\n"
    "\n"
    "  The tenant's device memory moves to host memory; calls of its programs wait until smt resume.\n"
    "\n"
    "  --timeout SECONDS  how long its work on the GPU may take to stop or to end (10)\n"
    "  --json             a line of JSON",
    "moves a tenant's device memory to host memory, while its programs wait", run_suspend};

const Command resume_command = {
    "resume",
    "smt resume TENANT [--json]\n"
    "\n"
    "  --json  a line of JSON",
    "moves the memory of a suspended tenant back to the GPU, and its programs go on", run_resume};

}  // namespace smt::tools
