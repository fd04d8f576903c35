// A session while a fault is dealt with: its threads stand still until it is known where it goes on.
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/server/code/code_table.h"
#include "runtime/server/control_message.h"
#include "runtime/server/lane.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"

namespace smt::runtime::server {

void Session::hold(const std::string& why) {
    {
        std::lock_guard lock(fate_mutex_);
        told_if_ended_ = why;
    }
    std::lock_guard lock(mutex_);
    fate_.store(Fate::kHeld);
    for (const std::shared_ptr<Lane>& lane : lanes_)
        if (lane) lane->halt();
    const uint64_t one = 1;
    if (held_event_ >= 0 && write(held_event_, &one, sizeof one) < 0) return;  // it is set already
}

void Session::await_fate() {
    std::unique_lock lock(fate_mutex_);
    ++standing_;
    fate_decided_.wait(lock, [this] { return fate_.load() == Fate::kHere; });
    --standing_;
}

bool Session::stands_still() {
    uint32_t threads = 1;  // the session's own
    {
        std::lock_guard lock(mutex_);
        for (const std::shared_ptr<Lane>& lane : lanes_)
            if (lane && !lane->ended()) ++threads;
    }
    if (server_.context_lives() && !quiet_) return false;
    std::lock_guard lock(fate_mutex_);
    return standing_ >= threads;
}

void Session::nudge() {
    if (server_.context_lives())
        quiet_ = streams_.set_aside();
    else
        streams_.stand_still();
    std::lock_guard lock(mutex_);
    for (const std::shared_ptr<Lane>& lane : lanes_)
        if (lane) lane->halt();  // one may have been opened since
}

std::string Session::why_not_still() const {
    return server_.context_lives() && !quiet_ ? "work of it is under way that does not end"
                                              : "a call of it does not return";
}

void Session::end_work(CUresult fatal, const std::string& why) {
    ended_with_.store(fatal);
    poison(fatal, why);
    streams_.abandon();
}

bool Session::works() {
    streams_.abandon();
    return streams_.query_all() == CUDA_ERROR_NOT_READY;
}

void Session::give_up(CUresult fatal, const std::string& reason) {
    note(fmt::format("it ends, as it cannot go on in another process: {}", reason));
    std::string why;
    {
        std::lock_guard lock(fate_mutex_);
        why = told_if_ended_;
    }
    if (server_.context_lives()) ended_with_.store(fatal);  // a call might wait for ever
    poison(fatal, why);
    {
        std::lock_guard lock(fate_mutex_);
        fate_.store(Fate::kHere);
    }
    fate_decided_.notify_all();
}

// Each part is empty, or save() writes it. A new part of a session needs a line here, or one in save().
std::string Session::why_not_carried() {
    std::string reasons;
    const auto add = [&](const std::string& reason) {
        if (!reason.empty()) reasons += (reasons.empty() ? "" : "; ") + reason;
    };
    if (closing()) add("its program ends");
    if (gate_.closed(LaneGate::kSuspended)) add("it is suspended");
    if (gate_.closed(LaneGate::kOutOfTurn)) add("memory of it made room for others");
    if (open_status_ != CUDA_SUCCESS || !memory_ || !code_) return "it is not open";
    if (server_.measuring()) add("its kernels are measured");
    if (server_.call_trace()) add("its calls are timed");
    if (dispatched_->tried()) add("it is under an experiment");
    add(why_work_stays());
    if (fence_) add("its fence would be another one");
    add(handles_.why_not_carried());
    add(events_.why_not_carried());
    if (server_.sharing().holds_for(id_)) add("descriptors of its memory are open");
    add(memory_->why_not_carried());
    add(code_->why_not_carried());
    add(why_kept_launches_stay());
    if (arena_.shows_other_pages()) add("host memory of it shows other pages");
    if (graph_waits_.words() != 0) add("graphs of it wait for values");
    if (callbacks_.waits()) add("host functions of it are to be called");
    std::lock_guard lock(mutex_);
    for (const std::shared_ptr<Lane>& lane : lanes_)
        if (lane && !lane->ended()) add(lane->why_not_carried());
    return reasons;
}

// The session's own thread stops between two messages.
bool Session::next_message(ControlMessage& message) {
    while (held_event_ >= 0) {
        pollfd watched[2] = {{socket_, POLLIN, 0}, {held_event_, POLLIN, 0}};
        if (poll(watched, 2, -1) < 0) continue;  // a signal
        uint64_t count = 0;
        if (watched[1].revents != 0 && read(held_event_, &count, sizeof count) > 0)
            await_fate();
        else if (watched[0].revents != 0)
            break;
    }
    return message.receive(socket_);
}

}  // namespace smt::runtime::server
