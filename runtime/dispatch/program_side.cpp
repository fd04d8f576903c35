// What the program's threads do with a stream: launches, and anything else that must not overtake them.
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "runtime/device/call_clock.h"
#include "runtime/device/cores.h"
#include "runtime/dispatch/clock_handoff.h"
#include "runtime/dispatch/dispatcher.h"
#include "runtime/dispatch/managed_stream.h"
#include "runtime/protocol/try.h"

namespace smt::runtime::dispatch {

namespace {

using namespace std::chrono_literals;

constexpr auto kLookAtDriver = 100ms;    // an error that ends the context shows when the driver is asked
constexpr size_t kMostUnfinished = 512;  // launches of a preemptible stream
// After this time the 40 us that it takes to wake a sleeping thread matter little.
constexpr auto kLooksFor = 5ms;
constexpr auto kLookAtQueue = 50us;  // while the queue is full
// Launches with doors that are expected to be over so soon need not be stoppable any more. The GPU has the
// next operation before that.
constexpr auto kSoon = 50us;
// Without progress for so long launches may wait for what the program does next. Behind a wait none begins. A
// simulated block takes the host long.
constexpr std::chrono::nanoseconds kNoProgress = 1s, kNoSimulatedProgress = 20s, kBehindWait = 5ms;

}  // namespace

CUresult ManagedStream::launch(Work&& work) {
    supply_detour();
    Lock lock = spin_lock(mutex_);
    SMT_TRY(await_room(lock));
    if (gone()) return kClientGone;
    if (failed_) return std::exchange(failed_, CUDA_SUCCESS);
    work.fits = 1;
    // Now, while the program can get the error.
    if (!work.graph) SMT_TRY(fitting(dispatcher_.driver(), work, &work.fits));
    if (!forms_.of(work).suits(work)) return CUDA_ERROR_NOT_SUPPORTED;
    work.number = queue_.next_number();
    go_on();  // it may see the end of a request, to which this launch does not belong
    account_.launched();
    const bool passes = preemptor_.in(State::kPassThrough), begins = !under_way();
    const bool unasked = passes && begins && begins_unasked();
    LaunchQueue::Works& waiting = queue_.waiting();
    if (passes && (!begins || unasked || !stops_soon())) {
        const bool news = begins && !unasked && tenant_->preemptor.load(std::memory_order_relaxed);
        const bool follows = forms_.may_follow(work, queue_.in_flight());
        if (!follows && queue_.unmarked()) mark();
        if (!waiting.empty() || over_launch_ahead() || !follows) {
            waiting.push_back(std::move(work));
            lock.unlock();
            dispatcher_.kept_back();
            return CUDA_SUCCESS;
        }
        const bool learned = learner_.learning();
        const Abilities can = work.function->abilities();
        CUresult status = issue(std::move(work));
        if (unasked && status == CUDA_SUCCESS) begin_unasked(can);
        const bool rest = !waiting.empty(), learns = learner_.learning() && !learned;
        lock.unlock();
        if (rest) dispatcher_.kept_back();
        // Otherwise a short program would be over before anything is learnt of it.
        if (learns) dispatcher_.look_again();
        if (status == CUDA_SUCCESS && news) dispatcher_.arrived(*this);
        if (status == CUDA_SUCCESS && unasked) dispatcher_.began_unasked();
        return status;
    }
    if (passes) SMT_TRY(come_to_rest());
    if (preemptor_.in(State::kStopped) && waiting.empty()) preemptor_.set_since(dispatcher_.now());
    waiting.push_back(std::move(work));
    lock.unlock();
    dispatcher_.arrived(*this);
    return CUDA_SUCCESS;
}

// The driver's queue has room for about a thousand launches. A thread that fills it waits in the driver, with
// locks that the dispatcher needs. So the thread of a preemptible stream waits before, without locks.
CUresult ManagedStream::await_room(Lock& lock) {
    CUresult status = CUDA_SUCCESS;
    std::optional<device::HeldUp> held_up;
    while (queue_.size() >= kMostUnfinished && !gone() && status == CUDA_SUCCESS) {
        if (!preemptor_.in(State::kPassThrough)) {
            say_held_up(&held_up);
            status = await_change(lock);
        } else if (tenant_->preemptible.load() || tenant_->preemptor.load() || !queue_.waiting().empty()) {
            await_launch_ahead(lock);
        } else {
            break;
        }
        go_on();
    }
    return status;
}

// Sleeps, because nothing announces that a marker is reached.
void ManagedStream::await_launch_ahead(Lock& lock) {
    const ClockHandoff others(dispatcher_.device());
    lock.unlock();
    std::this_thread::sleep_for(kLookAtQueue);
    lock.lock();
}

CUresult ManagedStream::guard() {
    Lock lock = spin_lock(mutex_);
    go_on();
    if (failed_) return std::exchange(failed_, CUDA_SUCCESS);
    SMT_TRY(clear_way(lock));
    return detour_.come_home();
}

bool ManagedStream::ends_with_door() {
    const Lock lock = spin_lock(mutex_);
    go_on();
    const LaunchQueue::Works &waiting = queue_.waiting(), &in_flight = queue_.in_flight();
    if (!waiting.empty()) return waiting.back().function->has_door();
    return !in_flight.empty() && in_flight.back().function->has_door() && !in_flight.back().endures;
}

bool ManagedStream::stops_soon() const {
    return tenant_->preemptible.load(std::memory_order_relaxed) &&
           queue_.limit() != schedule::Confinement::kLongStops;
}

CUresult ManagedStream::leave(const SmSet* set, CUstream* away) {
    const Lock lock = spin_lock(mutex_);
    return detour_.leave(set, away);
}

CUresult ManagedStream::come_back(CUstream away) {
    const Lock lock = spin_lock(mutex_);
    return detour_.come_back(away);
}

CUresult ManagedStream::come_home() {
    Lock lock = spin_lock(mutex_);
    return detour_.come_home();
}

void ManagedStream::left_home() {
    if (!detour_.any_at_home()) return;
    Lock lock = spin_lock(mutex_);
    const CUresult status = detour_.left_home();
    if (failed_ == CUDA_SUCCESS) failed_ = status;
}

// Of a set that has not been made. To make one may wait for the device. Launches that the dispatcher makes
// meanwhile take no detour.
void ManagedStream::supply_detour() {
    const int multiprocessors = detour_.wants();
    if (!multiprocessors) return;
    SmSetPointer set = dispatcher_.supplies().places_for(multiprocessors);
    const Lock lock = spin_lock(mutex_);
    if (detour_.wants() == multiprocessors) detour_.supply(multiprocessors, std::move(set));
}

bool ManagedStream::held_back() {
    const Lock lock = spin_lock(mutex_);
    detour_.go_home();  // the caller asks the driver there next
    return !gone() &&
           (preemptor_.in(State::kPassThrough) ? !queue_.waiting().empty() : queue_.first() != nullptr);
}

CUresult ManagedStream::note_other(uint32_t kernel) {
    Lock lock = spin_lock(mutex_);
    const bool watched = kernel && dispatcher_.watches();
    if (!watched && !tenant_->preemptor.load(std::memory_order_relaxed)) return CUDA_SUCCESS;
    const uint64_t before = markers_.last();
    const bool begins = markers_.reached() == markers_.last(), unasked = begins && begins_unasked();
    const CUresult after = detour_.follow(detour_.home());
    CUresult status = mark();
    unmanaged_.last_other = markers_.last();
    if (watched)
        unmanaged_.in_flight.push_back(
            {.marker = markers_.last(), .name = kernel, .issued = dispatcher_.now(), .before = before});
    note_work(before);
    if (unasked) begin_unasked({});
    lock.unlock();
    if (unasked)
        dispatcher_.began_unasked();
    else if (begins)
        dispatcher_.arrived(*this);
    return after != CUDA_SUCCESS ? after : status;
}

CUresult ManagedStream::enqueue_wait(const std::function<CUresult()>& enqueue, WaitWords nodes) {
    const std::lock_guard in_order(enqueuing_);
    Lock lock = spin_lock(mutex_);
    if (preemptor_.in(State::kPassThrough) && queue_.unmarked())
        mark();  // or the end of what is in front would not be seen
    end_waits();
    const uint64_t number = waits_.add({queue_.last_number(), unmanaged_.last_other}, std::move(nodes));
    lock.unlock();
    CUresult status = enqueue();
    if (status == CUDA_SUCCESS) status = markers_.write(detour_.home(), &markers_.words().waits_over, number);
    if (status == CUDA_SUCCESS) return status;
    lock = spin_lock(mutex_);
    waits_.remove(number);
    return status;
}

WaitWord ManagedStream::pending_wait() {
    if (!waits_.any()) return {};
    const Lock lock = spin_lock(mutex_);
    end_waits();
    return waits_.last();
}

// Launches that are followed by other operations are stopped, too: their results are of no use any more.
// Unmanaged launches in flight run to their end.
void ManagedStream::abandon(LaunchQueue::Works* kept) {
    Lock lock(mutex_);
    detour_.go_home();  // its end is looked for there
    // The mappings of a program that ended before they were read.
    if (!gone()) learn_now();
    LaunchQueue::Works& waiting = queue_.waiting();
    if (kept && !gone()) {
        prune();
        if (!under_way() && !preemptor_.in_quota_mode()) *kept = std::exchange(waiting, {});
    }
    client_ = Client::kGone;
    const size_t runs = preemptor_.in_quota_mode() ? 1 : 0;
    if (waiting.size() > runs) waiting.erase(waiting.begin() + static_cast<ptrdiff_t>(runs), waiting.end());
    prune();
    const bool stops = stop_what_runs();
    tell_changed();
    lock.unlock();
    if (stops) dispatcher_.look_again();  // to see the end of the stop
}

// Waits until no managed launch is unfinished; or, if they are not preemptible, or soon over because a policy
// allows few of them ahead (schedule::Confinement::ahead), or stand still, until the driver
// has them all and they are recorded as not preemptible. Launches that other threads make meanwhile are in no
// order with the caller's next operation, and are not waited for: they may go on indefinitely.
CUresult ManagedStream::clear_way(Lock& lock) {
    CUresult status = CUDA_SUCCESS;
    std::optional<device::HeldUp> held_up;
    Standstill still;
    const uint64_t last = queue_.last_number();
    while (queue_.unfinished(last) && !gone() && status == CUDA_SUCCESS) {
        if (!preemptor_.in(State::kPassThrough)) {
            if (resume_behind_wait()) continue;
            say_held_up(&held_up);
            status = await_change(lock);
            go_on();
        } else if (!queue_.waiting().empty() && queue_.waiting().front().number <= last) {
            if (stands_still(&still)) hand_over(last);
            await_launch_ahead(lock);
            go_on();
        } else if (!stops_soon() || queue_.limited() || queue_.in_flight().back().endures ||
                   (queue_.in_flight_with(Form::kDoor) && await_soon(lock)) || stands_still(&still)) {
            let_pass();
            break;
        } else {
            status = wait_in_flight(lock, last, &still);
        }
    }
    if (status == CUDA_SUCCESS) status = std::exchange(failed_, CUDA_SUCCESS);
    return gone() ? kClientGone : status;
}

// Precondition: a launch is in flight. What follows it may go ahead.
void ManagedStream::let_pass() {
    if (!forms_.of(queue_.in_flight().back()).let_pass()) queue_.let_pass();
}

bool ManagedStream::stands_still(Standstill* still) {
    if (at_wait()) return still->lasts({}, kBehindWait);
    const bool simulated = dispatcher_.device().properties().keeps_clock;
    const std::optional<Running> now = what_runs();
    return still->lasts(now ? Standstill::Seen{now->launch, now->progress} : Standstill::Seen{},
                        simulated ? kNoSimulatedProgress : kNoProgress);
}

// A stream that a wait holds up has no work for a policy, so no decision would let its launches go to the
// driver. Behind the wait they take nothing from others.
bool ManagedStream::resume_behind_wait() {
    if (tenant_->parking.closed() || !at_wait() || !preemptor_.takes(Event::kResume)) return false;
    preemptor_.take(Event::kResume, dispatcher_.now());
    top_up();
    tell_changed();
    return true;
}

// Launches up to this one go to the driver whatever is ahead of them, and are not stopped any more.
void ManagedStream::hand_over(uint64_t number) {
    LaunchQueue::Works& waiting = queue_.waiting();
    while (!waiting.empty() && waiting.front().number <= number && failed_ == CUDA_SUCCESS) {
        if (!queue_.in_flight().empty()) queue_.let_pass();
        if (!forms_.may_follow(waiting.front(), queue_.in_flight(), true)) return;
        issue_first();
    }
}

// Polls until launches with doors are expected to be over soon. They may be stopped meanwhile. False: they
// are not what they were, or not known well: they should be over by now.
bool ManagedStream::await_soon(Lock& lock) {
    const ClockHandoff others(dispatcher_.device());
    while (preemptor_.in(State::kPassThrough) && queue_.waiting().empty() &&
           queue_.in_flight_with(Form::kDoor) && !gone()) {
        const std::optional<schedule::TimePoint> end = queue_.expected_end();
        const schedule::TimePoint now = dispatcher_.now();
        if (!end || now > *end + kSoon) return false;
        if (now >= *end - kSoon) return true;
        lock.unlock();
        device::nap();
        lock.lock();
        prune();
    }
    return false;
}

// The driver has the stream's launches, and they may be stopped meanwhile. Returns before their end where
// they stand still. A device's own clock goes on while a thread polls, so there only waits are polled for.
CUresult ManagedStream::wait_in_flight(Lock& lock, uint64_t number, Standstill* still) {
    const bool keeps_clock = dispatcher_.device().properties().keeps_clock;
    while (preemptor_.in(State::kPassThrough) && !queue_.in_flight().empty() && queue_.unfinished(number) &&
           !gone() && !stands_still(still)) {
        SMT_TRY(queue_.unmarked() ? mark() : CUDA_SUCCESS);
        SMT_TRY(detour_.go_home());
        const bool polls = !keeps_clock || !waits_.empty();
        lock.unlock();
        const CUresult status = polls ? poll_home() : wait_at_home();
        lock.lock();
        if (status != CUDA_SUCCESS && status != CUDA_ERROR_NOT_READY) return status;
        prune();
    }
    return CUDA_SUCCESS;
}

// Without the lock, as the next one.
CUresult ManagedStream::poll_home() {
    const ClockHandoff others(dispatcher_.device());
    device::nap();
    return dispatcher_.driver().cuStreamQuery(detour_.home());
}

CUresult ManagedStream::wait_at_home() {
    const device::InWait timed;
    return dispatcher_.driver().cuStreamSynchronize(detour_.home());
}

// For `smt status`, if the policy has given a reason.
void ManagedStream::say_held_up(std::optional<device::HeldUp>* held_up) const {
    if (!*held_up && !waiters_.reason().empty() && !preemptor_.in_quota_mode())
        held_up->emplace(tenant_->session, "its turn: " + waiters_.reason());
}

void ManagedStream::waits_because(const std::string& reason) {
    std::lock_guard lock(mutex_);
    waiters_.set_reason(reason);
}

void ManagedStream::tell_changed() {
    dispatcher_.device().let_go(tenant_->session);
    waiters_.wake();
}

// While its own work is on the GPU a program's thread polls for a while, as in the driver's own waits: waking
// a sleeping thread takes longer than everything else between two quota-mode launches. The thread sleeps
// while other tenants have their turn.
CUresult ManagedStream::await_change(Lock& lock) {
    const ClockHandoff others(dispatcher_.device());
    if (tenant_->parking.closed()) {  // no other way out but the client's end, and the context's
        const Parking::Stay parked(tenant_->parking);
        while (tenant_->parking.closed() && !gone()) SMT_TRY(sleep(lock));
        return CUDA_SUCCESS;
    }
    if (preemptor_.in_quota_mode() && looks_on() && waiters_.poll(lock, kLooksFor)) return CUDA_SUCCESS;
    return sleep(lock);
}

CUresult ManagedStream::sleep(Lock& lock) {
    if (waiters_.sleep(lock, kLookAtDriver)) return CUDA_SUCCESS;
    const CUresult status = dispatcher_.driver().cuStreamQuery(detour_.home());
    return status == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : status;
}

void ManagedStream::look_up() {
    std::lock_guard lock(mutex_);
    tell_changed();
}

// Not on a device that keeps its own clock: the clock does not wait for a thread that only polls.
bool ManagedStream::looks_on() const {
    return device::cores_to_spare() && !device::cores_scarce() &&
           !dispatcher_.device().properties().keeps_clock;
}

uint32_t ManagedStream::issued() {
    const Lock lock = spin_lock(mutex_);
    detour_.go_home();  // the caller waits there next
    return learner_.launches();
}

void ManagedStream::over(uint32_t issued) {
    const Lock lock = spin_lock(mutex_);
    if (!preemptor_.in(State::kPassThrough)) return;
    forget(queue_.over_before(issued));
    settle_account();
    note_work(markers_.reached());
}

}  // namespace smt::runtime::dispatch
