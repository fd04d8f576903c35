// smt set: what a tenant may have, while its programs run.
#include <fmt/core.h>

#include "tools/smt/command.h"
#include "tools/smt/control.h"
#include "tools/smt/settings.h"

namespace smt::tools {
namespace {

// At the server, or the servers, where the tenant has programs.
void set_memory(const std::string& tenant, const std::string& value) {
    const uint64_t limit = value == "all" ? 0 : parse_bytes(value);
    bool any = false;
    std::string problem;
    at_servers([&](const std::string& key) {
        const auto reply = ask_for_memory_limit(key, tenant, limit);
        if (reply && reply->ok) fmt::print("server {}: {} may hold {} from now on\n", key, tenant, value);
        if (reply && !reply->ok) problem = "server " + key + ": " + reply->message;
        any |= reply && reply->ok;
        return reply.has_value();
    });
    if (!any) throw Failure(problem + "; smt status shows the tenants");
}

int run_set(const Arguments& arguments) {
    const Options options = parse_options(arguments, {}, {"--memory"}, Operands::kMixed);
    if (options.operands.size() != 1) throw Misuse("which tenant? One name; smt status shows them");
    const std::string* memory = options.value("--memory");
    if (!memory) throw Misuse("set what? --memory LIMIT");
    set_memory(options.operands.front(), *memory);
    return 0;
}

}  // namespace

const Command set_command = {
    "set",
    "smt set TENANT --memory LIMIT\n"
    "\n"
    "  --memory LIMIT  most device memory of all its programs together, such as 800M "
    "or 4G; all: the device's.\n"
    "                  What it holds beyond that stays until it frees it",
    "changes what a tenant may have while its programs run", run_set};

}  // namespace smt::tools
