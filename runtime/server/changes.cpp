// What smt policy set and smt set change while programs run.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/server/server.h"
#include "runtime/server/session.h"

namespace smt::runtime::server {

std::string Server::set_memory_limit(const std::string& tenant, uint64_t limit) {
    bool any = false;
    {
        std::lock_guard lock(mutex_);
        for (const Session* session : sessions_) {
            if (session->tenant() != tenant) continue;
            tenant_accounts_.set_limit(session->tenant_memory_account(), limit);
            any = true;
        }
    }
    if (!any) return fmt::format("no program of tenant {} is there", tenant);
    note(limit ? fmt::format("tenant {} may hold {} MiB from now on", tenant, limit >> 20)
               : fmt::format("tenant {} may hold all of the device's memory from now on", tenant));
    return "";
}

std::string Server::set_terms(const std::string& name, const protocol::TermsRequest& request) {
    std::vector<std::shared_ptr<dispatch::Tenant>> programs;
    {
        std::lock_guard lock(mutex_);
        for (const Session* session : sessions_) {
            if (session->tenant() == name) programs.push_back(session->dispatched_tenant());
        }
    }
    if (programs.empty()) return fmt::format("no program of tenant {} is there", name);
    for (const auto& each : programs) {
        // A service's launches go first where the hardware decides, too (session.cpp).
        const int least = each->target.any() ? 1 : std::numeric_limits<int>::min();
        dispatcher_.set_terms(
            *each, request.sets_priority ? std::max(request.priority, least) : each->priority.load(),
            request.weight_thousandths ? request.weight_thousandths / 1000.0 : each->weight.load());
    }
    each_session([&](Session& session) {
        if (session.tenant() == name) session.changed();
    });
    note(fmt::format("tenant {} has priority {} and weight {} from now on", name,
                     programs.front()->priority.load(), programs.front()->weight.load()));
    return "";
}

std::string Server::set_policy(const std::string& name) {
    std::string problem = schedule::policy_problem(name);
    if (problem.empty()) dispatcher_.set_policy(schedule::make_policy(name));
    return problem;
}

}  // namespace smt::runtime::server
