#include "runtime/dispatch/sweep.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/profiles/plan.h"

namespace smt::runtime::dispatch {

namespace {

// More than the samples wanted: it counts all block shapes and grid classes of a kernel together, and some
// slices yield none.
constexpr int kMostTries = 24 * static_cast<int>(profiles::kSamples);

}  // namespace

QuotaTable Sweep::quotas(const profiler::Placement& placement) const {
    const auto sms = std::min(static_cast<size_t>(placement.sms), places_.size());
    return even_table(multiprocessors_, {places_.begin(), places_.begin() + static_cast<ptrdiff_t>(sms)},
                      static_cast<int>(placement.ctas_per_sm));
}

void Sweep::step(ManagedStream& stream, const schedule::Kernel& kernel) {
    if (kernel.state != schedule::Kernel::State::kWaiting) return;
    ManagedStream::Front front;
    if (kernel.managed && stream.front(&front) && front.known) {
        const int sms = static_cast<int>(places_.size());
        const std::vector<profiler::Placement> plan = profiles::placements(sms, front.ctas_per_sm);
        // Each placement once before any twice: if launches run out, a whole curve is known, if a rougher
        // one.
        for (int64_t each = 1; each <= profiles::kSamples; ++each) {
            for (const profiler::Placement& placement : plan) {
                const int64_t wanted =
                    std::min(each, profiles::samples_wanted(placement, sms, front.ctas_per_sm));
                if (front.known->samples(front.shape, placement) < wanted &&
                    measure(stream, front, placement))
                    return;
            }
        }
    }
    stream.pass_through();
}

// False: what is left of this launch is too small. It may suffice for another number of CTAs.
bool Sweep::measure(ManagedStream& stream, const ManagedStream::Front& front,
                    const profiler::Placement& placement) {
    const uint64_t wanted = std::min(profiles::sample_blocks(placement, front.block_ns), front.most_timed);
    if (front.left < wanted && front.left < front.shape.blocks) return false;
    int& tries = tries_[{front.known.get(), placement}];
    if (tries >= kMostTries) return false;
    ++tries;
    ++slices_;
    return stream.run(quotas(placement),
                      front.left < wanted + wanted / 2 && front.left <= front.most_timed ? 0 : wanted) ==
           CUDA_SUCCESS;
}

std::string Sweep::summary() const { return fmt::format("measured in {} slices", slices_); }

}  // namespace smt::runtime::dispatch
