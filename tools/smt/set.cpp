// smt set: what a tenant may have, while its programs run.
#include <fmt/core.h>

#include <functional>
#include <optional>
#include <string>

#include "tools/smt/command.h"
#include "tools/smt/control.h"
#include "tools/smt/settings.h"

namespace smt::tools {
namespace {

using Asked = std::function<std::optional<protocol::ChangeReply>(const std::string& key)>;

// At the server, or the servers, where the tenant has programs. `what`: what it has then.
void change(const std::string& tenant, const std::string& what, const Asked& ask) {
    bool any = false;
    std::string problem;
    at_servers([&](const std::string& key) {
        const auto reply = ask(key);
        if (reply && reply->ok) fmt::print("server {}: {} {} from now on\n", key, tenant, what);
        if (reply && !reply->ok) problem = "server " + key + ": " + reply->message;
        any |= reply && reply->ok;
        return reply.has_value();
    });
    if (!any) throw Failure(problem + "; smt status shows the tenants");
}

void set_memory(const std::string& tenant, const std::string& value) {
    const uint64_t limit = value == "all" ? 0 : parse_bytes(value);
    change(tenant, "may hold " + value,
           [&](const std::string& key) { return ask_for_memory_limit(key, tenant, limit); });
}

void set_terms(const std::string& tenant, const std::string* priority, const std::string* weight) {
    Terms terms;
    std::string what;
    if (priority) {
        terms.priority = parse_priority(*priority);
        what = "has priority " + *priority;
    }
    if (weight) {
        terms.weight = std::stod(parse_weight(*weight));
        what += (priority ? " and weight " : "has weight ") + *weight;
    }
    change(tenant, what, [&](const std::string& key) { return ask_for_terms(key, tenant, terms); });
}

int run_set(const Arguments& arguments) {
    const Options options =
        parse_options(arguments, {}, {"--memory", "--priority", "--weight"}, Operands::kMixed);
    if (options.operands.size() != 1) throw Misuse("which tenant? One name; smt status shows them");
    const std::string& tenant = options.operands.front();
    const std::string *memory = options.value("--memory"), *priority = options.value("--priority"),
                      *weight = options.value("--weight");
    if (!memory && !priority && !weight) throw Misuse("set what? --memory LIMIT, --priority P or --weight W");
    if (priority || weight) set_terms(tenant, priority, weight);
    if (memory) set_memory(tenant, *memory);
    return 0;
}

}  // namespace

const Command set_command = {
    "set",
    "smt set TENANT [--memory LIMIT] [--priority P] [--weight W]\n"
    "\n"
    "  --memory LIMIT  most device memory of all its programs together, such as 800M "
    "or 4G; all: the device's.\n"
    "                  What it holds beyond that stays until it frees it\n"
    "  --priority P    high, normal, low or a whole number, of its programs that are there\n"
    "  --weight W      likewise: its share beside others, where the policy goes by shares",
    "changes what a tenant may have while its programs run", run_set};

}  // namespace smt::tools
