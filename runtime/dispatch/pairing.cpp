#include "runtime/dispatch/pairing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/profiles/plan.h"

namespace smt::runtime::dispatch {

using schedule::Duration;
using schedule::TimePoint;
using schedule::models::Blocks;
using State = schedule::Kernel::State;

Pairing::Want Pairing::see(uint64_t stream, const Seat& seat, TimePoint now) {
    Seat& before = seats_[stream];
    news_ |= before.works != seat.works || before.kernel.launch != seat.kernel.launch ||
             before.known != seat.known;
    before = seat;
    if (!met_) look_for_company(seat);
    if (current_) go_on(now);
    if (!current_ && std::exchange(news_, false)) choose();
    seen_ = now;
    using What = Want::What;
    if (!counts(stream))
        return {!met_ && measurable(seat) && seat.kernel.state == State::kWaiting ? What::kRest
                                                                                  : What::kPassThrough};
    const bool second = current_->streams[1] == stream;
    if (!current_->runs || (second == current_->younger && !current_->elder_runs)) return {What::kRest};
    return {What::kHold, (*current_->pair->ctas)[second]};
}

void Pairing::leave(uint64_t stream) {
    if (counts(stream)) {
        current_->pair->time.interrupt();
        current_.reset();
    }
    news_ |= seats_.erase(stream) != 0;
}

// Programs seldom begin at the same moment, and the first launches of a program may be all that it has.
void Pairing::look_for_company(const Seat& seat) {
    if (!seat.works) return;
    const TimePoint now = host_clock_();
    if (!waits_) waits_ = now;
    met_ = now - *waits_ >= kCompany || std::ranges::any_of(seats_, [&](const auto& each) {
               return each.second.works && each.second.kernel.session != seat.kernel.session;
           });
}

// ---- What is measured next

void Pairing::choose() {
    for (auto first = seats_.begin(); first != seats_.end(); ++first) {
        for (auto second = std::next(first); second != seats_.end(); ++second) {
            if (choose(first->first, second->first)) return;
        }
    }
}

bool Pairing::choose(uint64_t first, uint64_t second) {
    if (!measurable(seats_[first]) || !measurable(seats_[second]) ||
        seats_[first].kernel.session == seats_[second].kernel.session)
        return false;
    const auto key = [&](uint64_t stream) { return seats_[stream].known->key(seats_[stream].shape); };
    if (key(second) < key(first)) std::swap(first, second);
    const Seat &one = seats_[first], &two = seats_[second];
    Pair& pair = pairs_[{key(first), key(second)}];
    pair.sides = {Side{one.known, one.shape}, {two.known, two.shape}};
    pair.combinations = schedule::combinations(one.kernel, two.kernel, device_);
    if (!next_window(pair)) return false;
    const int64_t before = windows(pair, *pair.ctas) + pair.failed[*pair.ctas];
    current_ = Current{{first, second}, &pair, before % 2 == 0};
    return true;
}

// Each combination once before any twice: if time runs out, a whole curve is known, if a rougher one.
bool Pairing::next_window(Pair& pair) const {
    // A window that was left.
    if (pair.ctas && std::count(pair.combinations.begin(), pair.combinations.end(), *pair.ctas)) return true;
    pair.ctas.reset();
    for (int64_t wanted = 1; wanted <= kWindows && !pair.hopeless; ++wanted) {
        for (const Blocks& ctas : pair.combinations) {
            if (windows(pair, ctas) >= wanted || pair.failed[ctas] >= kTries || few_blocks(pair, ctas))
                continue;
            pair.ctas = ctas;
            pair.time.clear();
            pair.tried = {};
            return true;
        }
    }
    return false;
}

profiler::Beside Pairing::company(const Pair& pair, size_t side, const Blocks& ctas) const {
    const Side& other = pair.sides[1 - side];
    return {other.known->key(other.shape), ctas[side], ctas[1 - side]};
}

int64_t Pairing::windows(const Pair& pair, const Blocks& ctas) const {
    // A kernel beside itself with equally many CTAs is one row, to which each window is added twice.
    const int rows =
        ctas[0] == ctas[1] && company(pair, 0, ctas).other == company(pair, 1, ctas).other ? 2 : 1;
    const auto of = [&](size_t side) {
        return pair.sides[side].known->windows(pair.sides[side].shape, company(pair, side, ctas)) / rows;
    };
    const auto ours = pair.measured.find(ctas);  // what is being written now is in no profile yet
    return std::max(std::min(of(0), of(1)), ours == pair.measured.end() ? 0 : ours->second);
}

uint64_t Pairing::round(const Blocks& ctas, size_t side) const {
    return static_cast<uint64_t>(ctas[side]) * static_cast<uint64_t>(device_.sms());
}

bool Pairing::few_blocks(const Pair& pair, const Blocks& ctas) const {
    const auto few = [&](size_t side) {
        return pair.sides[side].shape.blocks < kLeastRoundsOfLaunch * round(ctas, side);
    };
    return few(0) || few(1);
}

// ---- The window under way

// Compares exactly what the profile cache distinguishes.
bool Pairing::is(const Seat& seat, const Side& side) {
    return measurable(seat) && seat.known == side.known && seat.shape.block == side.shape.block &&
           profiler::grid_class(seat.shape.blocks) == profiler::grid_class(side.shape.blocks);
}

void Pairing::go_on(TimePoint now) {
    Pair& pair = *current_->pair;
    if (!both_there(now)) return;
    const Seat &first = seats_[current_->streams[0]], &second = seats_[current_->streams[1]];
    if (!current_->gone[0] && !current_->gone[1]) pair.tried += now - seen_;
    if (current_->runs) {
        const Seat& elder = current_->younger ? first : second;
        current_->elder_runs |= elder.kernel.state == State::kRunning;
        count(now);
    } else {
        current_->runs = first.kernel.state == State::kWaiting && second.kernel.state == State::kWaiting;
    }
    judge();
}

// False: one kernel has had no work for long, or another kernel runs there, and the window is left for now.
bool Pairing::both_there(TimePoint now) {
    for (size_t i = 0; i < 2; ++i) {
        const Seat& seat = seats_[current_->streams[i]];
        std::optional<TimePoint>& gone = current_->gone[i];
        if (is(seat, current_->pair->sides[i])) {
            gone.reset();
            continue;
        }
        if (!gone) gone = now;
        if (now - *gone < kGap && !measurable(seat)) continue;
        current_->pair->time.interrupt();
        current_.reset();
        news_ = true;
        return false;
    }
    return true;
}

void Pairing::count(TimePoint now) {
    Pair& pair = *current_->pair;
    const auto seen = [&](size_t i) {
        const Seat& seat = seats_[current_->streams[i]];
        const schedule::Kernel& kernel = seat.kernel;
        const bool at_work = !current_->gone[i] && !seat.passes_through && seat.complete &&
                             kernel.state == State::kRunning && !kernel.last_taken;
        return CommonTime::Seen{at_work, kernel.launch, kernel.blocks_done, round(*pair.ctas, i)};
    };
    pair.time.look(now, {seen(0), seen(1)});
    if (others_work()) pair.time.interrupt();
}

bool Pairing::others_work() const {
    return std::ranges::any_of(seats_,
                               [&](const auto& each) { return each.second.works && !counts(each.first); });
}

// Ends the window if it has enough, or has taken too long.
void Pairing::judge() {
    Pair& pair = *current_->pair;
    const std::array<CommonTime::Done, 2> done = pair.time.done();
    const Duration time = pair.time.time();
    const bool enough = time >= least_ && std::ranges::all_of(done, [](const CommonTime::Done& each) {
                            return each.rounds >= kRounds;
                        });
    const bool fruitless =
        std::ranges::any_of(done, [](const CommonTime::Done& each) { return each.rounds < 1; });
    if (enough) {
        for (size_t i = 0; i < 2; ++i) {
            const auto blocks = static_cast<uint64_t>(std::llround(done[i].blocks));
            const auto ns = static_cast<uint64_t>(std::chrono::nanoseconds(time).count());
            pair.sides[i].known->ran_beside(pair.sides[i].shape, company(pair, i, *pair.ctas), blocks, ns);
        }
        ++pair.measured[*pair.ctas];
        ++windows_;
        end_window();
    } else if (pair.tried >= (fruitless ? kLongestFruitless : kLongestTry)) {
        ++pair.failed[*pair.ctas];
        if (fruitless) pair.hopeless = why_fruitless();
        end_window();
    }
}

const char* Pairing::why_fruitless() const {
    if (others_work()) return "beside which others are at work";
    if (current_->pair->time.time() >= least_)
        return "of which one gets less than a round of its blocks done beside the other";
    const auto complete = [&](size_t i) { return seats_.at(current_->streams[i]).complete; };
    return complete(0) && complete(1) ? "whose launches are too short"
                                      : "of which not all CTAs found a place, or which could not be stopped";
}

void Pairing::end_window() {
    current_->pair->ctas.reset();
    current_.reset();
    news_ = true;
}

// ---- For the journal

std::string Pairing::missing(const Pair& pair) const {
    const auto left = std::ranges::count_if(
        pair.combinations, [&](const Blocks& ctas) { return windows(pair, ctas) < kWindows; });
    const bool fails =
        std::ranges::any_of(pair.failed, [](const auto& each) { return each.second >= kTries; });
    const bool few =
        std::ranges::any_of(pair.combinations, [&](const Blocks& ctas) { return few_blocks(pair, ctas); });
    if (left == 0) return "";
    return fmt::format("{} of {} combinations of {} and {}{}", left, pair.combinations.size(),
                       pair.sides[0].known->symbol(), pair.sides[1].known->symbol(),
                       pair.hopeless ? fmt::format(", {}", pair.hopeless)
                       : few         ? ", of whose launches some have too few blocks"
                       : fails       ? ", of which too little got done"
                                     : "");
}

std::string Pairing::summary() const {
    std::string all = fmt::format("{}{} windows measured of {} pairs of kernels; ", profiles::kSideBySide,
                                  windows_, pairs_.size());
    if (pairs_.empty())
        return all + "no two programs had kernels at work at the same time that can be given quotas";
    std::string lacks;
    for (const auto& [keys, pair] : pairs_) {
        if (const std::string some = missing(pair); !some.empty())
            lacks += (lacks.empty() ? "missing: " : "; ") + some;
        if (pair.combinations.empty())
            lacks +=
                fmt::format("{}{} and {} do not fit on a multiprocessor together", lacks.empty() ? "" : "; ",
                            pair.sides[0].known->symbol(), pair.sides[1].known->symbol());
    }
    return all + (lacks.empty() ? profiles::kNothingMissing : lacks);
}

}  // namespace smt::runtime::dispatch
