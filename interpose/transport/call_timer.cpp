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
constinit thread_local UnderWay under_way{};

}  // namespace

uint32_t call_under_way() { return under_way.call; }

CallTimer::CallTimer(uint32_t call) : outermost_(under_way.call == 0 && call < protocol::kTimedCalls) {
    if (outermost_) under_way = {call, false, ticks(), {}};
}

CallTimer::~CallTimer() {
    if (!outermost_) return;
    const uint64_t now = ticks();
    if (thread_lane && thread_lane->times) {
        LaneTimes& all = *thread_lane->times;
        if (all.first == 0) all.first = under_way.begun;
        all.last = now;
        CallTimes& sum = all.calls[under_way.call];
        ++sum.calls;
        sum.total += now - under_way.begun;
        sum.reply += under_way.times.reply;
        sum.word += under_way.times.word;
        sum.room += under_way.times.room;
    }
    under_way.call = 0;
}

void TimedWait::begin(uint64_t CallTimes::* what) {
    if (under_way.call == 0 || under_way.waits) return;
    under_way.waits = true;
    what_ = what;
    begun_ = ticks();
}

void TimedWait::end() {
    under_way.times.*what_ += ticks() - begun_;
    under_way.waits = false;
}

}  // namespace smt::interpose
