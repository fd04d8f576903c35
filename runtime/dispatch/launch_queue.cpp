#include "runtime/dispatch/launch_queue.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace smt::runtime::dispatch {

namespace {

// A marker follows at least every so many launches. What is complete is forgotten then.
constexpr uint32_t kLaunchesBetweenMarkers = 8;
constexpr auto kTail = std::chrono::microseconds(100);  // without a launch: no further one follows

}  // namespace

void LaunchQueue::issued(Work&& work, TimePoint now) {
    work.marker = 0;
    if (in_flight_.empty()) ahead_.begin(now);
    ahead_.issued(work);
    if (std::optional<Work> rest = work.cut()) waiting_.push_front(std::move(*rest));
    in_flight_.push_back(std::move(work));
    ++unmarked_;
    last_issued_ = now;
}

bool LaunchQueue::wants_marker(bool stops) const {
    if (in_flight_with(Form::kGraph)) return true;  // fewer still, and each is long
    return unmarked_ >= kLaunchesBetweenMarkers || ahead_.wants_marker(stops);
}

bool LaunchQueue::tail(TimePoint now) const { return unmarked_ && now - last_issued_ >= kTail; }

void LaunchQueue::marked(uint64_t marker) {
    for (auto work = in_flight_.rbegin(); work != in_flight_.rend() && work->marker == 0; ++work)
        work->marker = marker;
    unmarked_ = 0;
    ahead_.marked();
}

size_t LaunchQueue::over_at(uint64_t marker) const {
    return count_first([&](const Work& each) { return each.marker && each.marker <= marker; });
}

size_t LaunchQueue::over_before(uint32_t launch) const {
    return count_first([&](const Work& each) { return static_cast<int32_t>(each.launch - launch) < 0; });
}

void LaunchQueue::forget(size_t count, TimePoint now) {
    const auto last = in_flight_.begin() + static_cast<ptrdiff_t>(count);
    ahead_.ended(in_flight_.begin(), last, now, !waiting_.empty());
    in_flight_.erase(in_flight_.begin(), last);
    if (!in_flight_.empty()) return;
    unmarked_ = 0;
    ahead_.marked();
}

void LaunchQueue::put_back() {
    std::erase_if(in_flight_, [](const Work& work) { return work.left() == 0; });
    waiting_.insert(waiting_.begin(), std::make_move_iterator(in_flight_.begin()),
                    std::make_move_iterator(in_flight_.end()));
    in_flight_.clear();
    ahead_.forget();
}

const Work* LaunchQueue::last_let_pass() const {
    const auto found = std::find_if(in_flight_.rbegin(), in_flight_.rend(),
                                    [&](const Work& each) { return each.number <= unguarded_; });
    return found == in_flight_.rend() ? nullptr : &*found;
}

}  // namespace smt::runtime::dispatch
