// Greedy: CTAs go, one configuration at a time, to the kernel that would take longest. Adaptive Simultaneous
// Multi-tenancy for GPUs (Bashizade, Li and Lebeck): Algorithm 1 in 3.6, on profiles pruned as in 3.5, with
// the time that is left from equation 1, which counts blocks and not time.
//
// All kernels start at their smallest configuration, one CTA on each SM (line 2). The one with the most time
// left gets its next configuration (lines 6, 7); if all still fit on an SM they are sorted again (9), else it
// goes back and is done with (11, 12), as it is when it has no further one (15). Line 5 has `marked <= size`,
// one too many.
//
// If not even the start fits, the paper launches everyone with it, and who finds no room waits in the hardware's queue. Workers leave when their launch
// ends, though, and not with each block, so that could be for long. So those go on that have CTAs, others join as far as they
// fit, and who does not waits for a turn (knobs.h): then it is first, and others wait. That is ours.
//
// Decided anew when a kernel arrives and when one has taken its last block (3.2): from then on no quota
// changes anything for that one, and what it frees is given out while its last blocks run. What happens
// besides changes no quota.
//
//     A alone: 5.   B arrives: A 3, B 3.   B has taken its last block: A 5      (figure 6)
//
// Without a profile, or with one that does not begin with one CTA: every number of CTAs that fits is a configuration, twice as many are twice as fast, and
// estimate.h says how long that is. Opaque work runs as it is, and takes room that is not counted.
//
// Nobody starves: who is stopped as a whole has its turn.
#include <fmt/format.h>

#include "runtime/schedule/estimate.h"
#include "runtime/schedule/policies/ledger.h"
#include "runtime/schedule/policies/patience.h"
#include "runtime/schedule/policies/policies.h"

namespace smt::runtime::schedule {

namespace {

// A kernel and the configuration it is at.
struct Row {
    Row(const Kernel& of, const Device& device, const Resources& limits)
        : kernel(&of), cta(cta_of(of, limits)), most(most_ctas(of, limits)) {
        if (of.profile) known = &of.profile->configurations;
        if (known && (known->empty() || known->front().ctas_per_sm != 1)) known = nullptr;
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
    int rank = 0;   // where not all fit
};

bool fits(const std::vector<Row>& rows, const Resources& limits) {
    Resources free = limits;
    for (const Row& row : rows) {
        if (!holds(free, row.cta, row.ctas)) return false;
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
    explicit Greedy(const GreedyKnobs& knobs) : turns_(knobs.patience) {}
    std::string_view name() const override { return "greedy"; }
    Stops stops() const override { return Stops::kAnybody; }

    Decision decide(const Snapshot& snapshot, TimePoint now) override {
        ledger_.keep_only(snapshot);
        Decision decision;
        const Kernel* turn = somebody_waits() ? turns_.whose(counted(snapshot), now) : nullptr;
        if (arrived_or_last_taken(snapshot) || (turn && given(*turn)->ctas == 0)) give_out(snapshot, turn);
        if (somebody_waits()) {
            turns_.whose(counted(snapshot), now);
            turns_.ask_again(decision, counted_, now);
        }
        const auto others = std::count_if(given_.begin(), given_.end(), [](const Given& each) { return each.ctas > 0; }) - 1;
        for (const Kernel& kernel : snapshot.kernels) {
            const Given* const found = given(kernel);
            if (found && found->ctas > 0) {
                ledger_.run(decision, kernel, even_quota(found->ctas), 0, [&] { return fmt::format("{} CTAs an SM, beside {} others", found->ctas, others); });
            } else if (found) {
                ledger_.wait(decision, kernel, [] { return std::string("no CTA of it fits beside the others: it will have its turn"); });
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
        int ctas;   // 0: it waits for its turn
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

    // `turn`: who goes first where not all fit; null: nobody has waited for long.
    void give_out(const Snapshot& snapshot, const Kernel* turn) {
        const Resources limits = limits_of(snapshot.device);
        std::vector<Row> rows;
        rows.reserve(snapshot.kernels.size());
        for (const Kernel& kernel : snapshot.kernels) {
            if (counts(kernel)) rows.emplace_back(kernel, snapshot.device, limits);
        }
        const auto first_out = fits(rows, limits) ? rows.end() : leave_out(rows, limits, turn);
        std::vector<Given> given;
        for (auto row = first_out; row != rows.end(); ++row) given.push_back({row->kernel->id, row->kernel->launch, 0});
        rows.erase(first_out, rows.end());
        allocate(rows, limits);
        for (const Row& row : rows) given.push_back({row.kernel->id, row.kernel->launch, row.ctas});
        given_ = std::move(given);
    }

    // To the end, those that do not fit beside those before them: who has CTAs, who waits already, who comes. What is taken up by a CTA of which nothing is known is anybody's guess, and where a tenant with multiprocessors of its own is, so those stay.
    std::vector<Row>::iterator leave_out(std::vector<Row>& rows, const Resources& limits, const Kernel* turn) const {
        for (Row& row : rows) {
            const Given* const before = given(*row.kernel);
            row.rank = row.kernel == turn ? 0 : !before ? 3 : before->ctas > 0 ? 1 : 2;
        }
        std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.rank < b.rank; });
        Resources free = limits;
        std::vector<Row> fit, out;
        for (const Row& row : rows) {
            const bool counts = row.kernel->cta != Resources{} && !row.kernel->own_sms;
            const bool has_room = counts && holds(free, row.cta, 1);
            if (has_room) take(free, row.cta, 1);
            (!counts || has_room || fit.empty() ? fit : out).push_back(row);
        }
        rows = fit;
        rows.insert(rows.end(), out.begin(), out.end());
        return rows.begin() + static_cast<ptrdiff_t>(fit.size());
    }

    bool somebody_waits() const {
        return std::any_of(given_.begin(), given_.end(), [](const Given& each) { return each.ctas == 0; });
    }

    const std::vector<const Kernel*>& counted(const Snapshot& snapshot) {
        counted_.clear();
        for (const Kernel& kernel : snapshot.kernels) {
            if (counts(kernel)) counted_.push_back(&kernel);
        }
        return counted_;
    }

    // Null: nothing yet.
    const Given* given(const Kernel& kernel) const {
        if (!counts(kernel)) return nullptr;
        const auto found = std::find_if(given_.begin(), given_.end(), [&](const Given& each) { return each.id == kernel.id && each.launch == kernel.launch; });
        return found == given_.end() ? nullptr : &*found;
    }

    Turns turns_;
    std::vector<const Kernel*> counted_;
    std::vector<Given> given_;
    Ledger ledger_;
};

}  // namespace

std::unique_ptr<Policy> make_greedy(const GreedyKnobs& knobs) { return std::make_unique<Greedy>(knobs); }

}  // namespace smt::runtime::schedule
