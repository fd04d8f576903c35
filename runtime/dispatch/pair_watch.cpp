#include "runtime/dispatch/pair_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace smt::runtime::dispatch {

namespace {

constexpr auto kBetweenAsking = std::chrono::milliseconds(1);  // a question takes some tens of microseconds

}  // namespace

bool PairWatch::same(const Side& side, const Seat& seat) {
    return side.stream == seat.stream && side.known == seat.known && side.ctas == seat.ctas &&
           side.shape.block == seat.shape.block &&
           profiler::grid_class(side.shape.blocks) == profiler::grid_class(seat.shape.blocks);
}

profiler::Beside PairWatch::company(const std::array<Side, 2>& sides, size_t side) {
    const Side& other = sides[1 - side];
    return {other.known->key(other.shape), sides[side].ctas, other.ctas};
}

bool PairWatch::is_known(const std::array<Side, 2>& sides) const {
    return sides[0].known->has_rate(sides[0].shape, company(sides, 0)) &&
           sides[1].known->has_rate(sides[1].shape, company(sides, 1));
}

CommonTime::Seen PairWatch::seen(Side& side, const Seat& seat, schedule::TimePoint now) const {
    const schedule::Kernel& kernel = seat.kernel;
    if (side.launch != kernel.launch)
        side.launch = kernel.launch, side.complete = false, side.look_again = {};
    const bool runs = kernel.state == schedule::Kernel::State::kRunning && !kernel.last_taken;
    if (runs && !side.complete && now >= side.look_again) {
        side.look_again = now + kBetweenAsking;
        side.complete = seat.complete();
    }
    return {runs && side.complete, kernel.launch, kernel.blocks_done,
            static_cast<uint64_t>(side.ctas) * static_cast<uint64_t>(std::max(1, multiprocessors_))};
}

std::string PairWatch::look(schedule::TimePoint now, std::span<const Seat> at_work) {
    const auto watched = [](const Seat& seat) { return seat.ctas > 0 && seat.known && seat.kernel.managed; };
    if (at_work.size() != 2 || !std::ranges::all_of(at_work, watched) ||
        at_work[0].kernel.session == at_work[1].kernel.session) {
        if (window_) window_->time.interrupt();
        return "";
    }
    const size_t first = at_work[0].stream < at_work[1].stream ? 0 : 1;
    const std::array<const Seat*, 2> seats{&at_work[first], &at_work[1 - first]};
    if (!window_ || !same(window_->sides[0], *seats[0]) || !same(window_->sides[1], *seats[1])) {
        std::array<Side, 2> sides;
        for (size_t i = 0; i < 2; ++i)
            sides[i] = {.stream = seats[i]->stream,
                        .known = seats[i]->known,
                        .shape = seats[i]->shape,
                        .ctas = seats[i]->ctas};
        window_ = Window{std::move(sides), {}};
    }
    if (is_known(window_->sides)) return "";
    Window& window = *window_;
    window.time.look(now, {seen(window.sides[0], *seats[0], now), seen(window.sides[1], *seats[1], now)});
    const std::array<CommonTime::Done, 2> done = window.time.done();
    const bool enough = window.time.time() >= least_ &&
                        std::ranges::all_of(done, [](const auto& each) { return each.rounds >= kRounds; });
    return enough ? learn() : "";
}

std::string PairWatch::learn() {
    const std::array<Side, 2>& sides = window_->sides;
    const std::array<CommonTime::Done, 2> done = window_->time.done();
    const auto ns = static_cast<uint64_t>(std::chrono::nanoseconds(window_->time.time()).count());
    for (size_t i = 0; i < 2; ++i)
        sides[i].known->learnt_beside(sides[i].shape, company(sides, i),
                                      static_cast<uint64_t>(std::llround(done[i].blocks)), ns);
    std::string text =
        fmt::format("learnt: {} with {} CTAs an SM beside {} with {}: {:.0f} and {:.0f} blocks in {:.2f} ms",
                    sides[0].known->symbol(), sides[0].ctas, sides[1].known->symbol(), sides[1].ctas,
                    done[0].blocks, done[1].blocks, static_cast<double>(ns) / 1e6);
    window_->time.clear();
    return text;
}

}  // namespace smt::runtime::dispatch
