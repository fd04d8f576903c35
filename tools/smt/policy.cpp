// smt policy: which policies there are, which one a server has, and another one while it runs.
#include "runtime/schedule/policy.h"

#include <fmt/core.h>

#include "runtime/settings/table.h"
#include "tools/smt/command.h"
#include "tools/smt/control.h"
#include "tools/smt/places.h"

namespace smt::tools {
namespace {

using namespace runtime::schedule;

int list_policies() {
    for (const std::string& name : policy_names()) {
        const bool counted = name == "slice" || name == "slice-paper";
        const char* what = name == settings::setting(settings::Id::kPolicy).initial.text ? "the default"
                           : counted ? "for kernels that smt profile has counted"
                                     : "";
        fmt::print("{:<16} {}\n", name, what);
    }
    return 0;
}

int show() {
    at_servers([](const std::string& key) {
        const auto reply = ask_server(key, protocol::ControlKind::kStatus);
        if (reply)
            fmt::print("server {}: {}\n", key, reply->policy[0] ? reply->policy : "none: it has no device");
        return reply.has_value();
    });
    return 0;
}

int set(const std::string& name) {
    if (const std::string problem = policy_problem(name); !problem.empty()) throw Misuse(problem);
    at_servers([&](const std::string& key) {
        const auto reply = ask_for_policy(key, name);
        if (reply && !reply->ok) throw Misuse("server " + key + ": " + reply->message);
        if (reply) fmt::print("server {}: {} from now on\n", key, name);
        return reply.has_value();
    });
    return 0;
}

int run_policy(const Arguments& arguments) {
    const size_t count = arguments.size();
    if (count == 1 && arguments[0] == "list") return list_policies();
    if (count == 1 && arguments[0] == "show") return show();
    if (count == 2 && arguments[0] == "set") return set(arguments[1]);
    if (count >= 1 && arguments[0] == "set")
        throw Misuse("which policy? One name; smt policy list shows them");
    throw Misuse("list, show or set?");
}

}  // namespace

const Command policy_command = {"policy", "smt policy list | show | set NAME",
                                "shows and changes how tenants share the GPU", run_policy};

}  // namespace smt::tools
