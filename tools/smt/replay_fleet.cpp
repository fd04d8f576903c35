// See replay_fleet.h.
#include "tools/smt/replay_fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "runtime/schedule/policy.h"
#include "runtime/settings/table.h"
#include "tools/fleet/fleet.h"

namespace smt::tools {

namespace {

constexpr size_t kMostGpus = 10'000, kMostTenants = 1'000'000, kTenantsOfAGpu = 10;
constexpr double kLeastLoad = 0.01, kMostLoad = 10;

uint64_t number_of(const Options& options, const std::string& name, uint64_t usual, uint64_t most) {
    const std::string* const text = options.value(name);
    uint64_t value = usual;
    if (text && !settings::read_number(*text, 1, most, &value))
        throw Misuse(fmt::format("{} wants a whole number from 1 to {}, not '{}'", name, most, *text));
    return value;
}

double load_of(const Options& options) {
    const std::string* const text = options.value("--load");
    if (!text) return fleet::WorkloadKnobs{}.load;
    char* end = nullptr;
    const double value = std::strtod(text->c_str(), &end);
    if (text->empty() || *end || !(value >= kLeastLoad && value <= kMostLoad))
        throw Misuse(fmt::format("--load wants a number from {} to {}, such as 0.8, not '{}'", kLeastLoad,
                                 kMostLoad, *text));
    return value;
}

std::vector<fleet::Rule> rules_of(const Options& options) {
    const std::string* const name = options.value("--place");
    if (!name) return {fleet::kRules.begin(), fleet::kRules.end()};
    if (const fleet::Rule* const rule = fleet::find_rule(*name)) return {*rule};
    std::vector<std::string_view> names;
    for (const fleet::Rule& each : fleet::kRules) names.push_back(each.name);
    throw Misuse(fmt::format("there is no rule '{}' to place tenants by; there are {}", *name,
                             fmt::join(names, ", ")));
}

fleet::Workload workload_of(const Options& options, size_t gpus) {
    fleet::TenantReader reader;
    for (const std::string& path : options.operands) reader.read(path);
    std::vector<fleet::Tenant> tenants = reader.tenants();
    if (tenants.empty())
        throw Failure(fmt::format("{}: no tenant has a launch in it, so nothing can be repeated",
                                  fmt::join(options.operands, ", ")));
    fleet::WorkloadKnobs knobs;
    knobs.gpus = gpus;
    knobs.jobs = number_of(options, "--tenants", gpus * kTenantsOfAGpu, kMostTenants);
    knobs.seed = number_of(options, "--seed", knobs.seed, UINT64_MAX);
    knobs.load = load_of(options);
    return fleet::spread(reader.device(), std::move(tenants), knobs);
}

void print_row(const fleet::Workload& workload, const fleet::Outcome& outcome, std::string_view name) {
    const fleet::Figures all = fleet::figures_of(workload, outcome);
    fmt::print(
        "{:<10} {:>6.2f} {:>6.2f} {:>6.2f} {:>7.2f} {:>7.2f} {:>9.1f} {:>7.1f} {:>7} {:>8.2f} {:>7} "
        "{:>7.1f}\n",
        name, all.antt, all.p50, all.p99, all.most, all.stp, all.makespan_ns / 1e6, outcome.gpus_in_use,
        all.waited, all.mean_wait_ns / 1e6, all.refused, outcome.unusable_memory * 100);
    std::fflush(stdout);
}

}  // namespace

const std::string& known_policy(const std::string& name) {
    if (!runtime::schedule::make_policy(name))
        throw Misuse(fmt::format("there is no policy '{}'; there are {}", name,
                                 fmt::join(runtime::schedule::policy_names(), ", ")));
    return name;
}

int replay_on_fleet(const Options& options) {
    if (options.operands.empty()) throw Misuse("which recordings? One file or more");
    for (const char* const name : {"--differences", "--summary"})
        if (options.has(name)) throw Misuse(std::string(name) + " goes without --gpus");
    const std::string* const named = options.value("--policy");
    const std::string policy = named ? known_policy(*named) : "priority";
    const std::vector<fleet::Rule> rules = rules_of(options);
    const size_t gpus = number_of(options, "--gpus", 1, kMostGpus);
    const fleet::Workload workload = workload_of(options, gpus);
    fmt::print(
        "{} tenants of {} kinds on {} GPUs of {} multiprocessors, policy {}, in virtual time\n"
        "                      slowdown                   makespan GPUs in         mean ms         "
        "unusable\n"
        "{:<10} {:>6} {:>6} {:>6} {:>7} {:>7} {:>9} {:>7} {:>7} {:>8} {:>7} {:>7}\n",
        workload.jobs.size(), workload.tenants.size(), gpus, workload.device.multiprocessors, policy, "place",
        "ANTT", "p50", "p99", "most", "STP", "ms", "use", "waited", "waited", "refused", "memory %");
    for (const fleet::Rule& rule : rules)
        print_row(workload, fleet::run_fleet(workload, policy, rule), rule.name);
    return 0;
}

}  // namespace smt::tools
