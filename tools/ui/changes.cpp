#include "tools/ui/changes.h"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/schedule/policy.h"
#include "tools/smt/command.h"
#include "tools/smt/control.h"
#include "tools/smt/settings.h"

namespace smt::tools::ui {

namespace {

using Wish = nlohmann::json;

constexpr uint32_t kPatienceMs = 10'000;  // as smt suspend's

std::string field(const Wish& wish, const char* name) {
    const auto found = wish.is_object() ? wish.find(name) : wish.end();
    if (found == wish.end() || !found->is_string()) throw Misuse(fmt::format("\"{}\" is missing", name));
    return found->get<std::string>();
}

template <typename Reply>
void expect_done(const std::optional<Reply>& reply) {
    if (!reply) throw Failure("the server is not there any more");
    if (!reply->ok) throw Failure(reply->message);
}

std::string set_policy(const std::string& key, const Wish& wish) {
    const std::string name = field(wish, "policy");
    if (const std::string problem = runtime::schedule::policy_problem(name); !problem.empty())
        throw Misuse(problem);
    expect_done(ask_for_policy(key, name));
    return fmt::format("policy {} from now on", name);
}

std::string set_memory(const std::string& key, const Wish& wish) {
    const std::string tenant = field(wish, "tenant"), limit = field(wish, "limit");
    expect_done(ask_for_memory_limit(key, tenant, limit == "all" ? 0 : parse_bytes(limit)));
    return fmt::format("{} may hold {} from now on", tenant, limit);
}

std::string set_terms(const std::string& key, const Wish& wish) {
    const std::string tenant = field(wish, "tenant");
    Terms terms;
    if (wish.contains("priority")) terms.priority = parse_priority(field(wish, "priority"));
    if (wish.contains("weight")) terms.weight = std::stod(parse_weight(field(wish, "weight")));
    if (!terms.priority && !terms.weight) throw Misuse("\"priority\" or \"weight\" is missing");
    expect_done(ask_for_terms(key, tenant, terms));
    return fmt::format("{} has{}{} from now on", tenant,
                       terms.priority ? fmt::format(" priority {}", *terms.priority) : "",
                       terms.weight ? fmt::format(" weight {}", *terms.weight) : "");
}

std::string suspend(const std::string& key, const Wish& wish, bool back) {
    const std::string tenant = field(wish, "tenant");
    protocol::SuspendRequest request;
    request.kind = back ? protocol::ControlKind::kResume : protocol::ControlKind::kSuspend;
    request.patience_ms = kPatienceMs;
    if (tenant.size() >= sizeof(request.tenant)) throw Misuse("there is no tenant of so long a name");
    std::memcpy(request.tenant, tenant.c_str(), tenant.size() + 1);
    expect_done(ask_to_suspend(key, request));
    return fmt::format("{} {}", tenant, back ? "goes on" : "is suspended");
}

std::optional<std::string> done(const std::string& key, const std::string& what, const Wish& wish) {
    if (what == "policy") return set_policy(key, wish);
    if (what == "memory") return set_memory(key, wish);
    if (what == "terms") return set_terms(key, wish);
    if (what == "suspend" || what == "resume") return suspend(key, wish, what == "resume");
    return std::nullopt;
}

}  // namespace

http::Answer carry_out(const std::string& key, const std::string& what, const std::string& wish) {
    try {
        const Wish read = Wish::parse(wish, nullptr, false);
        if (read.is_discarded()) throw Misuse("this is no JSON");
        const auto text = done(key, what, read);
        if (!text) return {.status = 404, .text = "there is no such change\n"};
        return {.text = *text + "\n"};
    } catch (const Misuse& misuse) {
        return {.status = 400, .text = std::string(misuse.what()) + "\n"};
    } catch (const Failure& failure) {
        return {.status = 409, .text = std::string(failure.what()) + "\n"};
    }
}

}  // namespace smt::tools::ui
