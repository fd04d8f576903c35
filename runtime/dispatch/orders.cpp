#include "runtime/dispatch/orders.h"

#include <algorithm>
#include <numeric>

namespace smt::runtime::dispatch {

using schedule::Kernel;
using Action = schedule::Assignment::Action;
using What = Step::What;

namespace {

// A hundred times the extra cost of a quota-mode run.
constexpr auto kLong = std::chrono::milliseconds(4);

}  // namespace

bool Orders::give(const schedule::Assignment& assignment) {
    const bool other =
        action_ != assignment.action || quota_ != assignment.quota || slice_ != assignment.slice;
    given_ = true;
    action_ = assignment.action;
    quota_ = assignment.quota;
    slice_ = assignment.slice;
    return other;
}

// The table has a number for each SM. "As many as fit" is written as a number, too.
void Orders::tabulate(const Kernel& kernel) {
    const auto number = [](int ctas) {
        return static_cast<uint8_t>(std::clamp(ctas, 1, int{smt::kNoQuota} - 1));
    };
    const uint8_t most = number(kernel.ctas_per_sm),
                  usual = kernel.usual_ctas ? std::min(most, number(kernel.usual_ctas)) : most;
    table_.assign(static_cast<size_t>(multiprocessors_), quota_.empty() ? usual : uint8_t{0});
    for (size_t i = 0; i < table_.size() && !quota_.empty(); ++i) {
        if (quota_.size() == 1)
            table_[i] = std::min(quota_[0], most);
        else if (i < quota_.size())
            table_[i] = std::min(quota_[i], most);
    }
}

// Whether the order leaves the kernel less than it would take by itself. Quotas without any place, on a
// stream that is confined to other SMs, do not count: the kernel would never end.
bool Orders::restricted(const Kernel& kernel) {
    if (!kernel.managed) return false;
    tabulate(kernel);
    if (slice_ == 0 && quota_.empty()) return false;
    const auto place = [&](uint32_t sm) { return sm < table_.size() ? table_[sm] : uint8_t{0}; };
    if (std::none_of(places_.begin(), places_.end(), place)) return false;
    if (slice_ != 0) return true;
    const int takes =
        kernel.usual_ctas ? std::min(kernel.usual_ctas, kernel.ctas_per_sm) : kernel.ctas_per_sm;
    return std::any_of(places_.begin(), places_.end(), [&](uint32_t sm) { return place(sm) < takes; });
}

bool Orders::stays_held(const Kernel& kernel) const {
    if (!last_restricted_ || !kernel.managed || slice_ != 0 || !quota_.empty() || kernel.usual_ctas == 0)
        return false;
    return kernel.launch - *last_restricted_ <= 1 && kernel.remaining && *kernel.remaining >= kLong;
}

// All blocks left have begun or have a place at once. There is nothing to take back, and a stop would only
// delay the kernel.
bool Orders::all_placed(const Kernel& kernel) const {
    return slice_ == 0 && kernel.blocks != 0 &&
           kernel.blocks - std::min(kernel.blocks, kernel.blocks_done) <= places(table_);
}

uint64_t Orders::places(const QuotaTable& table) const {
    return std::accumulate(places_.begin(), places_.end(), uint64_t{0}, [&](uint64_t sum, uint32_t sm) {
        return sum + (sm < table.size() ? table[sm] : 0u);
    });
}

// Blocks go to the workers that ask first. With more places than blocks these may be on a few SMs, while
// other SMs stay empty. So no SM has more places than it takes for each block to have one.
QuotaTable Orders::levelled(const Kernel& kernel) const {
    if (kernel.blocks == 0) return table_;
    uint64_t wanted = kernel.blocks - std::min(kernel.blocks, kernel.blocks_done);
    if (slice_ != 0) wanted = std::min(wanted, slice_);
    if (kernel.state == Kernel::State::kRunning) wanted += places(in_force_);  // those blocks count as done
    QuotaTable table = table_;
    for (uint8_t most = 1; most < *std::max_element(table_.begin(), table_.end()); ++most) {
        std::transform(table_.begin(), table_.end(), table.begin(),
                       [&](uint8_t each) { return std::min(each, most); });
        if (places(table) >= wanted) return table;
    }
    return table_;
}

Step Orders::to_rest(const Kernel& kernel, bool passes_through) {
    if (kernel.state != Kernel::State::kRunning) return {};
    return {passes_through ? What::kStop : What::kHalt};
}

Step Orders::next(const Kernel& kernel, bool passes_through) {
    if (!given_ || kernel.state == Kernel::State::kStopping) return {};
    if (action_ == Action::kWait) return to_rest(kernel, passes_through);
    const bool runs = kernel.state == Kernel::State::kRunning;
    const bool quotas = restricted(kernel);
    if (passes_through && runs) return {quotas && !all_placed(kernel) ? What::kStop : What::kNone};
    if (quotas && slice_ == 0) last_restricted_ = kernel.launch;
    if (!runs && !quotas && !stays_held(kernel)) return {What::kPassThrough};
    if (runs && table_ == followed_) return {};
    Step step{runs ? What::kChange : What::kRun, levelled(kernel), slice_};
    // Twice as many as there is room for: some find no place on the SM where they arrive.
    for (size_t i = 0; runs && i < step.quotas.size() && i < in_force_.size(); ++i)
        step.growth += step.quotas[i] > in_force_[i] ? 2u * (step.quotas[i] - in_force_[i]) : 0u;
    return step;
}

int Orders::held_evenly() const {
    if (in_force_.empty() || places_.size() != in_force_.size()) return 0;
    const uint8_t each = in_force_.front();
    return std::ranges::all_of(in_force_, [&](uint8_t other) { return other == each; }) ? each : 0;
}

void Orders::done(const Step& step) {
    if (step.quotas.empty()) return;
    followed_ = table_;
    in_force_ = step.quotas;
}

}  // namespace smt::runtime::dispatch
