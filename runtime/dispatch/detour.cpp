#include "runtime/dispatch/detour.h"

#include <algorithm>

#include "runtime/dispatch/supplies.h"

namespace smt::runtime::dispatch {

Detour::~Detour() {
    if (way_) driver_.cuEventDestroy_v2(way_);
}

void Detour::confine(int multiprocessors) {
    wanted_.store(multiprocessors);
    if (!wants()) return;
    if (SmSetPointer set = supplies_.places_made(multiprocessors)) supply(multiprocessors, std::move(set));
}

SmSetPointer Detour::make(int multiprocessors) const { return supplies_.places_for(multiprocessors); }

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

// Where there is no way to `set` the launch is at home.
CUresult Detour::depart(const SmSet* set, const void* kernel, CUstream* where) {
    CUstream away = nullptr;
    const bool leaves = set && (refused_.empty() || !refused_.contains(kernel)) &&
                        side_.find(home_, set, &away) == CUDA_SUCCESS;
    *where = home_;
    if (any_at_home() && forget_thread()) SMT_TRY(follow(home_));
    if (leaves && go(away) == CUDA_SUCCESS) *where = away;
    return *where == home_ ? go(home_) : CUDA_SUCCESS;
}

CUresult Detour::come_home() {
    const std::thread::id self = std::this_thread::get_id();
    if (std::find(threads_.begin(), threads_.end(), self) == threads_.end()) threads_.push_back(self);
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
