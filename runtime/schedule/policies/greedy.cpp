// Greedy: CTAs go, one configuration at a time, to the kernel that would take longest. Adaptive Simultaneous
// Multi-tenancy for GPUs (Bashizade, Li and Lebeck): Algorithm 1 in 3.6, on profiles pruned as in 3.5, with
// the time that is left from equation 1, which counts blocks and not time.
//
// All kernels start at their smallest configuration, one CTA on each SM (line 2). The one with the most time
// left gets its next configuration (lines 6, 7); if all still fit on an SM they are sorted again (9), else it
// goes back and is done with (11, 12), as it is when it has no further one (15). Line 5 has `marked <= size`,
// one too many. If not even the start fits, everyone runs with it, and who finds no room waits in the
// hardware's queue.
//
// Decided anew when a kernel arrives and when one has taken its last block (3.2): from then on no quota
// changes anything for that one, and what it frees is given out while its last blocks run. What happens
// besides changes no quota.
//
//     A alone: 5.   B arrives: A 3, B 3.   B has taken its last block: A 5      (figure 6)
//
// Without a profile: every number of CTAs that fits is a configuration, twice as many are twice as fast, and
// estimate.h says how long that is. Opaque work runs as it is, and takes room that is not counted.
//
// Nobody starves: nobody is stopped as a whole, and a kernel in the hardware's queue is served when one
// before it has ended.
#include <fmt/format.h>

#include "runtime/schedule/estimate.h"
#include "runtime/schedule/policies/ledger.h"
#include "runtime/schedule/policies/policies.h"

namespace smt::runtime::schedule {

namespace {

// A kernel and the configuration it is at.
struct Row {
    Row(const Kernel& of, const Device& device, const Resources& limits)
        : kernel(&of), cta(cta_of(of, limits)), most(most_ctas(of, limits)) {
        if (of.profile) known = &of.profile->configurations;
        if (known && known->empty()) known = nullptr;
        alone_ns = remaining_ns(of, device, most);
        set(0);
    }
    bool has_next() const {
        return known ? at + 1 < known->size() && (*known)[at + 1].ctas_per_sm <= most : ctas < most;
    }
    void set(size_t configuration) {
        at = configuration;
        ctas = known ? (*known)[at].ctas_per_sm : static_cast<int>(at) + 1;
        left_ns = known ? configured_ns(*kernel, (*known)[at]) : alone_ns * most / ctas;
    }

    const Kernel* kernel;
    const std::vector<models::Configuration>* known = nullptr;
    Resources cta;
    int most = 1;
    double alone_ns = 0;
    size_t at = 0;
    int ctas = 1;
    double left_ns = 0;
};

bool fits(const std::vector<Row>& rows, const Resources& limits) {
    Resources free = limits;
    for (const Row& row : rows) {
        if (fitting(free, row.cta) < row.ctas) return false;
        take(free, row.cta, row.ctas);
    }
    return true;
}

// By name among equals, so that the same snapshot gives the same quotas.
void sort_by_time(std::vector<Row>& rows, size_t from) {
    std::sort(rows.begin() + static_cast<ptrdiff_t>(from), rows.end(), [](const Row& a, const Row& b) {
        return a.left_ns != b.left_ns ? a.left_ns > b.left_ns : a.kernel->id < b.kernel->id;
    });
}

void allocate(std::vector<Row>& rows, const Resources& limits) {
    sort_by_time(rows, 0);
    for (size_t marked = 0; marked < rows.size();) {
        Row& row = rows[marked];
        if (!row.has_next()) {
            ++marked;
            continue;
        }
        row.set(row.at + 1);
        if (fits(rows, limits)) {
            sort_by_time(rows, marked);
        } else {
            row.set(row.at - 1);
            ++marked;
        }
    }
}

class Greedy final : public Policy {
public:
    std::string_view name() const override { return "greedy"; }
    Stops stops() const override { return Stops::kAnybody; }

    Decision decide(const Snapshot& snapshot, TimePoint) override {
        ledger_.keep_only(snapshot);
        if (arrived_or_last_taken(snapshot)) give_out(snapshot);
        Decision decision;
        for (const Kernel& kernel : snapshot.kernels) {
            const int ctas = given(kernel);
            if (ctas > 0) {
                ledger_.run(decision, kernel, even_quota(ctas), 0, [&] {
                    return fmt::format("{} CTAs an SM, beside {} others", ctas, given_.size() - 1);
                });
            } else if (kernel.state == Kernel::State::kWaiting) {
                ledger_.run(decision, kernel, {}, 0, [] { return std::string("runs as it is"); });
            }
        }
        return decision;
    }

private:
    struct Given {
        uint64_t id;
        uint64_t launch;
        int ctas;
    };
    static bool counts(const Kernel& kernel) { return kernel.managed && !kernel.last_taken; }

    bool arrived_or_last_taken(const Snapshot& snapshot) const {
        size_t same = 0;
        for (const Kernel& kernel : snapshot.kernels) {
            if (!counts(kernel)) continue;
            if (!given(kernel)) return true;
            ++same;
        }
        return same != given_.size();
    }

    void give_out(const Snapshot& snapshot) {
        const Resources limits = limits_of(snapshot.device);
        std::vector<Row> rows;
        rows.reserve(snapshot.kernels.size());
        for (const Kernel& kernel : snapshot.kernels) {
            if (counts(kernel)) rows.emplace_back(kernel, snapshot.device, limits);
        }
        allocate(rows, limits);
        given_.clear();
        for (const Row& row : rows) given_.push_back({row.kernel->id, row.kernel->launch, row.ctas});
    }

    int given(const Kernel& kernel) const {
        if (!counts(kernel)) return 0;
        for (const Given& each : given_) {
            if (each.id == kernel.id && each.launch == kernel.launch) return each.ctas;
        }
        return 0;
    }

    std::vector<Given> given_;
    Ledger ledger_;
};

}  // namespace

std::unique_ptr<Policy> make_greedy() { return std::make_unique<Greedy>(); }

}  // namespace smt::runtime::schedule
