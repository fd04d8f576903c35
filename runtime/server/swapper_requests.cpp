// Allocations that have found no room, and their answers (swapper.h).
#include <fmt/format.h>

#include <algorithm>

#include "runtime/server/moving.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"
#include "runtime/server/swapper.h"

namespace smt::runtime::server {

namespace {

constexpr auto kAskPoll = std::chrono::milliseconds(5);

}  // namespace

// Not where its lane stands in front of a closed gate: it takes nothing before that opens.
bool Swapper::Request::takes() const {
    return state_ == State::kAnswered && answer_ == Answer::kTryAgain && !session_.gate().keeps_back();
}

Swapper::Request::Request(Swapper& swapper, const Session& session) : swapper_(swapper), session_(session) {
    std::lock_guard lock(swapper_.mutex_);
    swapper_.requests_.push_back(this);
}

Swapper::Request::~Request() {
    std::lock_guard lock(swapper_.mutex_);
    swapper_.requests_.remove(this);
}

void Swapper::Request::ask(uint64_t bytes) {
    {
        std::lock_guard lock(swapper_.mutex_);
        state_ = State::kWaits;
        bytes_ = bytes;
        swapper_.news_ = true;
    }
    swapper_.changed_.notify_all();
}

Swapper::Answer Swapper::Request::wait(const std::function<bool()>& interrupted) {
    std::unique_lock lock(swapper_.mutex_);
    const auto over = [&] { return swapper_.leaves_ || swapper_.server_.fatal() != CUDA_SUCCESS; };
    const auto answered = [&] { return state_ == State::kAnswered; };
    while (!answered() && !over() && !interrupted()) swapper_.answered_.wait_for(lock, kAskPoll);
    if (answered()) return answer_;
    return over() ? Answer::kNone : Answer::kInterrupt;
}

// What could have made room, and why it does not.
std::string Swapper::reasons_beside(uint32_t session, const std::vector<Program>& programs) {
    std::string reasons;
    for (const Program& each : programs) {
        if (!each.stays || each.id == session || each.here == 0) continue;
        std::lock_guard lock(mutex_);
        reasons += "; " + known_[each.id].why;
    }
    return reasons;
}

void Swapper::refuse(const Step& step) {
    server_.note(fmt::format("{} gets CUDA's out of memory: {} are missing even with all others out{}",
                             called(step.requester), in_mebibytes(step.bytes),
                             reasons_beside(step.requester, seen_)));
    answer(step.requester, Answer::kNone);
}

void Swapper::answer(uint32_t session, Answer answer) {
    {
        std::lock_guard lock(mutex_);
        Request* const asks = first_of(session);
        if (!asks) return;
        asks->answer_ = answer;
        asks->state_ = Request::State::kAnswered;
    }
    answered_.notify_all();
}

// Null: none of its lanes waits. The caller holds mutex_.
Swapper::Request* Swapper::first_of(uint32_t session) {
    const auto found = std::find_if(requests_.begin(), requests_.end(), [&](const Request* each) {
        return each->session_.id() == session && each->state_ == Request::State::kWaits;
    });
    return found == requests_.end() ? nullptr : *found;
}

// The caller holds mutex_.
bool Swapper::takes(uint32_t session) const {
    return std::any_of(requests_.begin(), requests_.end(), [&](const Request* each) {
        return (session == 0 || each->session_.id() == session) && each->takes();
    });
}

}  // namespace smt::runtime::server
