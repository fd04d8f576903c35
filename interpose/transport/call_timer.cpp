#include "interpose/transport/call_timer.h"

#include "interpose/transport/lane.h"

namespace smt::interpose {

using protocol::CallTimes;
using protocol::LaneTimes;
using protocol::ticks;

constinit std::atomic<bool> times_calls{false};

namespace {

struct UnderWay {
    uint32_t call;  // 0: none
    bool waits;
    uint64_t begun;
    CallTimes times;
};
constinit thread_local UnderWay this_call{};

}  // namespace

uint32_t call_under_way() { return this_call.call; }

CallTimer::CallTimer(uint32_t call) : outermost_(this_call.call == 0 && call < protocol::kTimedCalls) {
    if (outermost_) this_call = {call, false, ticks(), {}};
}

CallTimer::~CallTimer() {
    if (!outermost_) return;
    const uint64_t now = ticks();
    if (thread_lane && thread_lane->times) {
        LaneTimes& all = *thread_lane->times;
        if (all.first == 0) all.first = this_call.begun;
        all.last = now;
        CallTimes& sum = all.calls[this_call.call];
        ++sum.calls;
        sum.total += now - this_call.begun;
        sum.reply += this_call.times.reply;
        sum.word += this_call.times.word;
        sum.room += this_call.times.room;
    }
    this_call.call = 0;
}

void TimedWait::begin(uint64_t CallTimes::* what) {
    if (this_call.call == 0 || this_call.waits) return;
    this_call.waits = true;
    what_ = what;
    begun_ = ticks();
}

void TimedWait::end() {
    this_call.times.*what_ += ticks() - begun_;
    this_call.waits = false;
}

}  // namespace smt::interpose
