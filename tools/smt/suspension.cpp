// See suspension.h.
#include "tools/smt/suspension.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "tools/smt/control.h"
#include "tools/smt/places.h"

namespace smt::tools {
namespace {

constexpr std::string_view kNoneRuns = "no program of tenant ";  // as the server says it, too

// Those where a program of the tenant runs.
struct Servers {
    std::vector<std::string> keys;
    std::string full_name;  // the tenant's with a user in front, such as "alice/train"
};

Servers servers_of(const std::string& tenant) {
    Servers found;
    const std::vector<std::string> servers = keys_with(".sock");
    bool any = false;
    for (const std::string& key : servers) {
        const auto status = ask_tenants(key);
        any = any || status;
        // A system's server puts the user's name in front.
        const auto is_it = [&](const protocol::TenantStatus& each) {
            const std::string name = each.tenant;
            const bool with_user = is_of_system(key) && name.ends_with("/" + tenant);
            if (with_user) found.full_name = name;
            return name == tenant || with_user;
        };
        if (status && std::any_of(status->tenants.begin(), status->tenants.end(), is_it))
            found.keys.push_back(key);
    }
    if (!any) throw Failure("no server is running (looked in " + runtime_directory() + ")");
    if (found.keys.empty()) throw Failure(std::string(kNoneRuns) + tenant + " runs");
    return found;
}

std::string in_json(const std::string& key, const std::string& tenant, const protocol::SuspendReply& reply) {
    const nlohmann::ordered_json line{{"server", key},
                                      {"tenant", tenant},
                                      {"sessions", reply.sessions},
                                      {"moved_bytes", reply.moved_bytes},
                                      {"stay_bytes", reply.stay_bytes},
                                      {"pinned", reply.pinned != 0},
                                      {"file_bytes", reply.file_bytes},
                                      {"copied_ns", reply.copied_ns},
                                      {"took_ns", reply.took_ns}};
    return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string size_text(uint64_t bytes) {
    return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

int ask_for_tenant(const Options& options, protocol::SuspendRequest request,
                   std::string (*line)(const std::string& tenant, const protocol::SuspendReply& reply)) {
    if (options.operands.size() != 1) throw Misuse("which tenant? One name; smt status shows them");
    const std::string& tenant = options.operands[0];
    if (tenant.size() >= sizeof request.tenant) throw Misuse("no tenant has so long a name");
    std::memcpy(request.tenant, tenant.c_str(), tenant.size() + 1);
    const Servers servers = servers_of(tenant);
    bool any = false;
    for (const std::string& key : servers.keys) {
        const auto reply = ask_to_suspend(key, request);
        if (!reply) throw Failure("server " + key + " has left");
        // To an administrator a name without a user is its own tenant's, too, and others may run there.
        if (!reply->ok && is_of_system(key) && std::string_view(reply->message).starts_with(kNoneRuns))
            continue;
        if (!reply->ok) throw Failure(reply->message);
        any = true;
        fmt::print("{}", options.has("--json") ? in_json(key, tenant, *reply) : line(tenant, *reply));
    }
    if (any) return 0;
    const std::string hint = servers.full_name.empty() ? "" : "; smt status shows " + servers.full_name;
    throw Failure(std::string(kNoneRuns) + tenant + " runs" + hint);
}

}  // namespace smt::tools
