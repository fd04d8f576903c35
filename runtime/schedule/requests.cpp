#include "runtime/schedule/requests.h"

#include <algorithm>

namespace smt::runtime::schedule {

Duration Requests::longest_pause() const {
    const auto part = std::chrono::duration_cast<Duration>((paused_ - began_) * knobs_.part);
    return std::clamp(part, knobs_.least, std::max(knobs_.least, knobs_.most));
}

std::optional<Request> Requests::note(bool works, uint64_t launches, TimePoint now) {
    std::optional<Request> over;
    begun_ = false;
    if (!counted_) counted_ = works ? launches - std::min<uint64_t>(launches, 1) : launches;
    // Launches have begun and ended since the last look, a moment ago: the pause is as long as it was then.
    // After a longer time they are taken for the end of a pause as long.
    const bool unseen =
        state_ == State::kPauses && launches > launches_ + (works ? 1 : 0) && now - looked_ < knobs_.least;
    const TimePoint pause_end = unseen ? looked_ : now;
    looked_ = now;
    if (state_ == State::kPauses && pause_end - paused_ >= longest_pause()) over = end(paused_, false);
    if (state_ != State::kNone && now - began_ >= knobs_.longest) {
        launches_ = state_ == State::kWorks ? launches : launches_;
        over = end(state_ == State::kWorks ? now : paused_, true);
    }
    if (state_ == State::kPauses && (works || unseen) && pause_end - paused_ > knobs_.least)
        pauses_ += pause_end - paused_;
    if (works) {
        if (state_ == State::kNone) {
            begun_ = true;
            began_ = now;
            pauses_ = {};
        }
        state_ = State::kWorks;
    } else if (state_ == State::kWorks || (state_ == State::kPauses && unseen)) {
        state_ = State::kPauses;
        paused_ = now;
        launches_ = launches;
    }
    return over;
}

Request Requests::so_far(uint64_t launches, TimePoint now) const {
    const Duration time = (state_ == State::kPauses ? paused_ : now) - began_;
    return {time, time - pauses_, launches - std::min(launches, counted_.value_or(launches))};
}

Request Requests::end(TimePoint now, bool cut) {
    const Duration time = now - began_;
    const Request request{time, time - pauses_, launches_ - std::min(launches_, *counted_), cut};
    counted_ = launches_;
    state_ = State::kNone;
    return request;
}

std::optional<Duration> Requests::changes_after(TimePoint now) const {
    if (state_ == State::kNone) return std::nullopt;
    Duration until = knobs_.longest - (now - began_);
    if (state_ == State::kPauses) {
        const Duration pause = now - paused_;
        until = std::min(until, (pause < knobs_.least ? knobs_.least : longest_pause()) - pause);
    }
    return std::max(until, Duration(1));
}

}  // namespace smt::runtime::schedule
