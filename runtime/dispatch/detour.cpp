#include "runtime/dispatch/detour.h"

#include <algorithm>

#include "runtime/dispatch/supplies.h"

namespace smt::runtime::dispatch {

Detour::Detour(const DriverApi& driver, CUstream home, Supplies& supplies, Refused refused)
    : driver_(driver), supplies_(supplies), home_(home), at_(home), note_refused_(std::move(refused)) {}

Detour::~Detour() {
    for (const auto& [set, stream] : streams_) driver_.cuStreamDestroy_v2(stream);
    if (way_) driver_.cuEventDestroy_v2(way_);
}

void Detour::confine(int multiprocessors) {
    wanted_.store(multiprocessors);
    if (!wants()) return;
    if (SmSetPointer set = supplies_.places_made(multiprocessors)) supply(multiprocessors, std::move(set));
}

// A wait is for the event's last record, so one event is enough.
CUresult Detour::order(CUstream first, CUstream then) {
    if (!way_) SMT_TRY(driver_.cuEventCreate(&way_, CU_EVENT_DISABLE_TIMING));
    SMT_TRY(driver_.cuEventRecord(way_, first));
    return driver_.cuStreamWaitEvent(then, way_, 0);
}

CUresult Detour::go(CUstream to) {
    if (to == at_) return CUDA_SUCCESS;
    SMT_TRY(order(at_, to));
    at_ = to;
    return CUDA_SUCCESS;
}

CUresult Detour::follow(CUstream from) { return from == at_ ? CUDA_SUCCESS : order(from, at_); }

// The stream of the set, made on its first use.
CUresult Detour::find(const SmSet* set, CUstream* away) {
    const auto known = streams_.find(set);
    if (known != streams_.end()) {
        *away = known->second;
        return CUDA_SUCCESS;
    }
    int priority = 0;
    driver_.cuStreamGetPriority(home_, &priority);
    SMT_TRY(supplies_.sm_sets().make_stream(set, priority, away));
    streams_.emplace(set, *away);
    return CUDA_SUCCESS;
}

CUresult Detour::leave(const SmSet* set, CUstream* away) {
    SMT_TRY(find(set, away));
    return order(home_, *away);
}

// Where there is no way to `set` the launch is at home.
CUresult Detour::depart(const SmSet* set, const void* kernel, CUstream* where) {
    CUstream away = nullptr;
    const bool leaves =
        set && (refused_.empty() || !refused_.contains(kernel)) && find(set, &away) == CUDA_SUCCESS;
    *where = home_;
    if (any_at_home() && forget_thread()) SMT_TRY(follow(home_));
    if (leaves && go(away) == CUDA_SUCCESS) *where = away;
    return *where == home_ ? go(home_) : CUDA_SUCCESS;
}

CUresult Detour::come_home() {
    const std::thread::id self = std::this_thread::get_id();
    if (std::ranges::find(threads_, self) == threads_.end()) threads_.push_back(self);
    at_home_.store(threads_.size());
    return go(home_);
}

CUresult Detour::left_home() { return forget_thread() ? follow(home_) : CUDA_SUCCESS; }

bool Detour::forget_thread() {
    const bool known = std::erase(threads_, std::this_thread::get_id()) != 0;
    at_home_.store(threads_.size());
    return known;
}

}  // namespace smt::runtime::dispatch
