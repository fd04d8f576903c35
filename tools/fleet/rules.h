// Rules that place a tenant on one of many GPUs.
//
// All go by the tenant's memory first: it gets a GPU on which that fits now, or it waits.
//
//   first-fit   the first such GPU
//   memory      the one with the most free memory
//   any         what `smt run --gpu any` takes, by the same function (tools/smt/gpu_choice.h)
//   profile     the one with the least load, as learnt of its tenants by themselves
//
// Load of a GPU, to a tenant that comes: the sum of what its tenants delay this one by. A tenant that has the
// GPU for a part d of its time alone delays another by d of its time: both take turns then. For a tenant of
// which the main kernel was measured beside that of the one that comes, by how much that one was slower
// counts instead: a kernel with rate r beside another takes 1 / r of its time.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/fleet/tenants.h"
#include "tools/smt/gpu_choice.h"

namespace smt::fleet {

struct GpuView {
    tools::GpuLoad load;                 // as `smt run --gpu any` collects it
    std::vector<const Tenant*> tenants;  // at work there
};

struct Rule {
    std::string_view name;
    // The index of a GPU; nothing: the tenant waits.
    std::optional<size_t> (*choose)(const std::vector<GpuView>& gpus, const Tenant& tenant, uint64_t memory);
};

extern const std::array<Rule, 4> kRules;
const Rule* find_rule(std::string_view name);  // null: there is none

// By how much of its time alone the second delays the first.
double delay_by(const Tenant& tenant, const Tenant& other);

}  // namespace smt::fleet
