// The experiments that measure: sweep, halves, pairs, and slices of one size.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "profiler/store/profile.h"
#include "runtime/dispatch/experiments.h"
#include "runtime/dispatch/managed_stream.h"
#include "runtime/dispatch/supplies.h"
#include "runtime/profiles/plan.h"

namespace smt::runtime::dispatch {

namespace {

using Front = ManagedStream::Front;
using What = Step::What;
using Seen = schedule::Kernel::State;

// A table with `ctas` CTAs on each of the first `count` SMs that the stream may use, and none elsewhere.
QuotaTable even_table(const Sms& sms, size_t count, int ctas) {
    QuotaTable table(static_cast<size_t>(sms.multiprocessors), 0);
    for (size_t i = 0; i < std::min(count, sms.places.size()); ++i)
        table[sms.places[i]] = static_cast<uint8_t>(std::min(ctas, static_cast<int>(smt::kNoQuota) - 1));
    return table;
}

class Sweep final : public Decider {
public:
    explicit Sweep(Sms sms) : sms_(std::move(sms)) {}

    Step next(const View& view) override {
        if (view.kernel.state != Seen::kWaiting) return {};
        Step step{What::kPassThrough};
        Front front;
        if (view.kernel.managed && view.stream.front(&front) && front.known) measure(front, step);
        return step;
    }
    std::string summary() const override { return fmt::format("measured in {} slices", slices_); }

private:
    // More than the samples wanted: it counts all block shapes and grid classes of a kernel together, and
    // some slices yield none.
    static constexpr int kMostTries = 24 * static_cast<int>(profiles::kSamples);

    // Each placement once before any twice: if launches run out, a whole curve is known, if a rougher one.
    void measure(const Front& front, Step& step) {
        const int sms = static_cast<int>(sms_.places.size());
        const std::vector<profiler::Placement> plan = profiles::placements(sms, front.ctas_per_sm);
        for (int64_t each = 1; each <= profiles::kSamples; ++each) {
            for (const profiler::Placement& placement : plan) {
                const int64_t wanted =
                    std::min(each, profiles::samples_wanted(placement, sms, front.ctas_per_sm));
                if (front.known->samples(front.shape, placement) < wanted && measure(front, placement, step))
                    return;
            }
        }
    }

    // False: what is left of this launch is too small. It may suffice for another number of CTAs.
    bool measure(const Front& front, const profiler::Placement& placement, Step& step) {
        const uint64_t wanted =
            std::min(profiles::sample_blocks(placement, front.block_ns), front.most_timed);
        if (front.left < wanted && front.left < front.shape.blocks) return false;
        int& tries = tries_[{front.known.get(), placement}];
        if (tries >= kMostTries) return false;
        ++tries;
        ++slices_;
        step = {What::kRun,
                even_table(sms_, static_cast<size_t>(placement.sms), static_cast<int>(placement.ctas_per_sm)),
                front.left < wanted + wanted / 2 && front.left <= front.most_timed ? 0 : wanted};
        return true;
    }

    const Sms sms_;
    uint64_t slices_ = 0;
    // Slices begun. Bounds the attempts at a placement that yields no sample.
    std::map<std::pair<const profiles::KnownKernel*, profiler::Placement>, int> tries_;
};

// All runs with the same CTAs on each SM: half of those that fit, or, in slices of `blocks_per_sm` blocks for
// each SM, as many as a slice has blocks.
class Evenly final : public Decider {
public:
    Evenly(std::optional<uint64_t> blocks_per_sm, Sms sms)
        : blocks_per_sm_(blocks_per_sm), sms_(std::move(sms)) {}

    Step next(const View& view) override {
        if (view.kernel.state != Seen::kWaiting) return {};
        if (!view.kernel.managed || view.kernel.ctas_per_sm <= 0) return {What::kPassThrough};
        ++runs_;
        const auto fit = static_cast<uint64_t>(view.kernel.ctas_per_sm), slice = blocks_per_sm_.value_or(0),
                   ctas = !blocks_per_sm_ ? std::max<uint64_t>(1, fit / 2)
                          : slice         ? std::min(slice, fit)
                                          : fit;
        return {What::kRun, even_table(sms_, sms_.places.size(), static_cast<int>(ctas)),
                slice * sms_.places.size()};
    }
    std::string summary() const override {
        return blocks_per_sm_
                   ? fmt::format("in slices of {} blocks a multiprocessor: {} slices", *blocks_per_sm_, runs_)
                   : fmt::format("kept to half of the places in {} runs", runs_);
    }

private:
    const std::optional<uint64_t> blocks_per_sm_;  // nothing: halves
    const Sms sms_;
    uint64_t runs_ = 0;
};

// Time for a run's workers to begin, and for the last workers of earlier work to leave.
constexpr auto kBegins = CommonTime::kSettles / 2;
// Between looks at residents(), each of which takes some tens of microseconds.
constexpr auto kBetweenLooks = std::chrono::milliseconds(1);

class SideBySide final : public Decider {
public:
    SideBySide(std::shared_ptr<Pairing> plan, uint64_t stream, Sms sms)
        : plan_(std::move(plan)), stream_(stream), sms_(std::move(sms)) {}
    ~SideBySide() override { plan_->leave(stream_); }

    Step next(const View& view) override {
        const schedule::Kernel& kernel = view.kernel;
        Seat seat{true, view.passes_through, false, kernel, nullptr, {}};
        Front front;
        if (kernel.managed && view.stream.front(&front)) seat.known = front.known, seat.shape = front.shape;
        const bool runs = kernel.state == Seen::kRunning, held = runs && !seat.passes_through;
        const bool fills_up = held && looks_for_missing(view);
        seat.complete = held && complete_;
        const Pairing::Want want = plan_->see(stream_, seat, view.now);
        if (kernel.state == Seen::kWaiting) return begin(kernel, want);
        if (!runs) return {};
        const Step step = disturb(seat, want);
        return step == What::kNone && fills_up ? Step{What::kFillUp} : step;
    }
    void idle(schedule::TimePoint now) override { plan_->see(stream_, {}, now); }
    bool samples() const override { return plan_->counts(stream_); }
    std::string summary() const override { return plan_->summary(); }

private:
    using Wanted = Pairing::Want::What;

    // The launch waits.
    Step begin(const schedule::Kernel& kernel, const Pairing::Want& want) {
        if (!kernel.managed || want.what == Wanted::kPassThrough) return {What::kPassThrough};
        if (want.what == Wanted::kRest) return {};
        ctas_ = want.ctas;
        complete_ = false;
        look_again_ = {};
        return {What::kRun, even_table(sms_, sms_.places.size(), ctas_)};
    }

    // The launch runs. A stream in pass-through mode continues if that is wanted. A run with other CTAs than
    // wanted stops first.
    Step disturb(const Seat& seat, const Pairing::Want& want) const {
        if (seat.passes_through) return {want.what == Wanted::kPassThrough ? What::kNone : What::kStop};
        return {want.what == Wanted::kHold && want.ctas == ctas_ ? What::kNone : What::kHalt};
    }

    // A worker with a place stays until no ticket is left. If some workers found none, other workers still
    // had it: further ones are sent.
    bool looks_for_missing(const View& view) {
        if (complete_ || view.now - view.kernel.since < kBegins || view.now < look_again_) return false;
        look_again_ = view.now + kBetweenLooks;
        complete_ = view.stream.residents() == static_cast<uint64_t>(ctas_) * sms_.places.size();
        return !complete_;
    }

    const std::shared_ptr<Pairing> plan_;
    const uint64_t stream_;
    const Sms sms_;
    int ctas_ = 0;                      // CTAs per SM that it runs with
    bool complete_ = false;             // all of them were seen to have a place
    schedule::TimePoint look_again_{};  // no look at residents before then
};

}  // namespace

std::unique_ptr<Decider> Experiments::on(const Tenant& tenant, uint64_t stream) {
    if (!tenant.tried()) return nullptr;
    const Trial& trial = tenant.trial;
    Sms sms{device_.multiprocessors, places_of(tenant, device_.multiprocessors)};
    if ((trial.stress & kQuotasOnly) == kSlicesOnly)
        return std::make_unique<Evenly>(trial.stress & (kSlicesOnly - 1), std::move(sms));
    if (trial.stress) return make_stress(trial.stress + stream, std::move(sms));
    if (trial.sweeps()) return std::make_unique<Sweep>(std::move(sms));
    if (trial.measures == Trial::Measures::kHalves)
        return std::make_unique<Evenly>(std::nullopt, std::move(sms));
    if (!plan_)
        plan_ = std::make_shared<Pairing>(device_, least_window_, [] { return schedule::Clock::now(); });
    return std::make_unique<SideBySide>(plan_, stream, std::move(sms));
}

}  // namespace smt::runtime::dispatch
