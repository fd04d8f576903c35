#include "runtime/schedule/requests.h"

#include <algorithm>

namespace smt::runtime::schedule {

Duration Requests::longest_pause() const {
    const auto part = std::chrono::duration_cast<Duration>((paused_ - began_) * knobs_.part);
    return std::clamp(part, knobs_.least, std::max(knobs_.least, knobs_.most));
}

std::vector<Request> Requests::note(const Service& service, TimePoint now) {
    std::vector<Request> over;
    const Activity& activity = service.activity;
    unseen_ = false;
    if (counted_) {
        replay(service, over);
    } else {  // what was before the first look is not known
        counted_ = service.launches - std::min<uint64_t>(service.launches, activity.works ? 1 : 0);
        last_ = activity.works ? activity.began : activity.ended;
        if (activity.works) begin(now, service.over);
    }
    if (state_ == State::kPauses && now - paused_ >= longest_pause()) over.push_back(end(paused_, false));
    if (state_ != State::kNone && now - began_ >= knobs_.longest) {
        const bool works = state_ == State::kWorks;
        if (works) launches_ = service.launches;
        over.push_back(end(works ? now : paused_, true));
        if (works) begin(now, service.over);
    }
    return over;
}

// What is older than the last event has been replayed. Times of pauses and of the last begin and end are not
// read at one moment, so an end may be older than a begin that came behind it.
void Requests::replay(const Service& service, std::vector<Request>& over) {
    const Activity& activity = service.activity;
    if (activity.forgotten && !activity.pauses.empty()) forget_until(activity.pauses.front());
    for (const Pause& each : activity.pauses)
        if (each.to > last_) go_on(each, over);
    // Work of which no pause is told was in front of less than `least`.
    if (state_ == State::kPauses && (activity.works || activity.began > last_)) state_ = State::kWorks;
    if (state_ == State::kNone && activity.began > last_) begin(activity.began, service.over);
    last_ = std::max(last_, activity.began);
    if (!activity.works && activity.ended >= last_) rest(activity.ended, service.launches);
}

// Of the requests in front of it, some pauses are not known: they would come out as one long request.
void Requests::forget_until(const Pause& pause) {
    if (pause.to <= last_) return;
    last_ = pause.to;
    counted_ = pause.launches;
    begin(pause.to, pause.over);
}

void Requests::begin(TimePoint at, uint64_t over) {
    state_ = State::kWorks;
    unseen_ = true;
    began_ = at;
    pauses_ = {};
    over_before_ = over;
}

void Requests::rest(TimePoint at, uint64_t launches) {
    last_ = std::max(last_, at);
    if (state_ == State::kNone) return;
    state_ = State::kPauses;
    paused_ = std::max(at, began_);
    launches_ = launches;
}

void Requests::go_on(const Pause& pause, std::vector<Request>& over) {
    rest(pause.from, pause.launches);
    last_ = pause.to;
    if (state_ == State::kPauses) {
        const Duration took = pause.to - paused_;
        if (took >= longest_pause())
            over.push_back(end(paused_, false));
        else if (took > knobs_.least)
            pauses_ += took;
    }
    if (state_ == State::kNone)
        begin(pause.to, pause.over);
    else
        state_ = State::kWorks;
}

Request Requests::so_far(uint64_t launches, TimePoint now) const {
    const Duration time = (state_ == State::kPauses ? paused_ : now) - began_;
    return {time, time - pauses_, launches - std::min(launches, counted_.value_or(launches))};
}

Request Requests::end(TimePoint at, bool cut) {
    const Duration time = at - began_;
    const Request request{time, time - pauses_, launches_ - std::min(launches_, *counted_), cut, !unseen_};
    counted_ = launches_;
    state_ = State::kNone;
    unseen_ = false;
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
