// smt replay: what other policies would have decided where a server's did (SMT_JOURNAL=record=FILE).
// No server, no GPU. With --gpus, what becomes of its tenants on many (tools/fleet).
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/schedule/record.h"
#include "tools/smt/command.h"
#include "tools/smt/replay_fleet.h"
#include "tools/smt/replay_view.h"

namespace smt::tools {
namespace {

using namespace runtime::schedule;

// Of policies only slo goes by requests.
void refuse_without_requests(const std::string& path, const Record& record,
                             const std::vector<std::string>& policies) {
    if (record.requests || record.snapshot.services.empty()) return;
    if (std::ranges::find(policies, "slo") == policies.end()) return;
    throw std::runtime_error(
        path + ": an earlier smt recorded it, without the requests of the services in it, so policy slo " +
        "cannot be asked. Record anew, or ask another policy with --policy");
}

int run_replay(const Arguments& arguments) {
    const Options options =
        parse_options(arguments, {"--differences", "--summary"},
                      {"--policy", "--gpus", "--tenants", "--load", "--seed", "--place"}, Operands::kMixed);
    if (options.has("--gpus")) return replay_on_fleet(options);
    for (const char* const name : {"--tenants", "--load", "--seed", "--place"})
        if (options.has(name)) throw Misuse(std::string(name) + " goes with --gpus");
    if (options.operands.size() != 1) throw Misuse("which recording? One file");
    std::vector<std::string> policies = policy_names();
    if (const std::string* name = options.value("--policy")) policies = {known_policy(*name)};
    ReplayView view(policies);
    const std::string& path = options.operands.front();
    read_recording(path, [&](const Record& record) {
        refuse_without_requests(path, record, policies);
        const std::string text = view.show(record, options.has("--differences"));
        if (!options.has("--summary")) std::fputs(text.c_str(), stdout);
    });
    std::fputs(view.summary().c_str(), stdout);
    return 0;
}

}  // namespace

const Command replay_command = {
    "replay",
    "smt replay FILE [--policy NAME] [--differences | --summary]\n"
    "       smt replay FILE... --gpus N [OPTION]...\n"
    "\n"
    "  --policy NAME   one policy; with --gpus that of every GPU (default: priority)\n"
    "  --differences   only decisions that would have been different\n"
    "  --summary       only how many\n"
    "  --gpus N        the recordings' tenants, repeated, arrive at N GPUs in virtual time: what each way to "
    "place them brings\n"
    "  --tenants N     how many arrive (default: ten for each GPU)\n"
    "  --load X        GPU time that they bring, of what all GPUs have (default: 0.8)\n"
    "  --seed N        another workload of the same kind (default: 1)\n"
    "  --place RULE    one way alone: first-fit, memory, any (as smt run --gpu any) or profile",
    "asks other policies what a server's decided (SMT_JOURNAL=record=FILE)", run_replay};

}  // namespace smt::tools
