// What the program's threads do with a stream before and after an unmanaged launch.
#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/dispatch/clock_handoff.h"
#include "runtime/dispatch/dispatcher.h"
#include "runtime/dispatch/managed_stream.h"
#include "runtime/protocol/try.h"

namespace smt::runtime::dispatch {

namespace {

constexpr auto kLookAtWindow = std::chrono::milliseconds(1);  // at the stream's state, while it is full

}  // namespace

CUresult ManagedStream::enter(const UnmanagedLaunch& launch, UnmanagedPass* pass) {
    Lock lock = spin_lock(mutex_);
    go_on();
    account_.launched();
    if (failed_) return std::exchange(failed_, CUDA_SUCCESS);
    SMT_TRY(clear_way(lock));
    pass->number_ = 0;
    pass->launch_ = launch;
    pass->unasked_ = true;
    if (tenant_->preemptible.load(std::memory_order_relaxed)) {
        ++unmanaged_.wanting;
        CUresult status = await_turn(lock, pass);
        --unmanaged_.wanting;
        if (status != CUDA_SUCCESS) return status;
    }
    ++unmanaged_.entering;
    pass->stream_ = this;
    pass->before_ = 0;
    if (dispatcher_.watches()) {
        pass->begins_ = markers_.reached() == markers_.last();
        SMT_TRY(mark_before(&pass->before_));
    }
    const int multiprocessors = confined(launch);
    if (!multiprocessors) return detour_.go_home();
    lock.unlock();
    return go_away(multiprocessors, pass);
}

CUresult ManagedStream::entered(const UnmanagedPass& pass) {
    Lock lock = spin_lock(mutex_);
    const CUresult back = detour_.follow(pass.where(detour_.home()));
    const bool begins = pass.before_ ? pass.begins_ : markers_.reached() == markers_.last();
    const bool undecided = begins && pass.unasked_, unasked = undecided && begins_unasked();
    const bool news = undecided && !unasked && tenant_->preemptor.load(std::memory_order_relaxed);
    CUresult status = mark();
    --unmanaged_.entering;
    unmanaged_.last_other = markers_.last();
    unmanaged_.in_flight.push_back({markers_.last(), pass.launch_.name, pass.number_, dispatcher_.now(),
                                    pass.launch_.key, pass.launch_.treatment, account_.one_wave(pass.launch_),
                                    pass.before_});
    settle_account();
    note_begin();
    if (unasked) begin_unasked({});
    lock.unlock();
    if (news) dispatcher_.arrived(*this);
    if (unasked) dispatcher_.began_unasked();
    return back != CUDA_SUCCESS ? back : status;
}

// The number of SMs that the launch is confined to, or 0. Depends on the block time, which is how long
// another kernel waits for a place.
int ManagedStream::confined(const UnmanagedLaunch& launch) {
    const int most = unmanaged_.confined_to;
    if (!most || !launch.function || tenant_->places || !tenant_->preemptible.load()) return 0;
    const schedule::Duration known = tenant_->window.expected(launch.key);
    if (known == schedule::Duration::zero()) return most;
    if (known <= unmanaged_.confines_longer) return 0;
    int fits = 0;
    dispatcher_.driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(
        &fits, launch.function, static_cast<int>(launch.threads), launch.shared_bytes);
    const uint64_t together =
        uint64_t{multiprocessors_of(*tenant_, dispatcher_)} * static_cast<uint64_t>(std::max(fits, 1));
    const auto waves = static_cast<int64_t>((launch.blocks + together - 1) / together);
    return known / std::max<int64_t>(waves, 1) > unmanaged_.confines_longer ? most : 0;
}

// If that fails the launch stays on its stream.
CUresult ManagedStream::go_away(int multiprocessors, UnmanagedPass* pass) {
    pass->places_ = dispatcher_.supplies().places_for(multiprocessors);
    const Lock lock = spin_lock(mutex_);
    CUstream where = nullptr;
    SMT_TRY(detour_.depart(pass->places_.get(), pass->launch_.function, &where));
    pass->away_ = where == detour_.home() ? nullptr : where;
    return CUDA_SUCCESS;
}

CUresult ManagedStream::stays(const UnmanagedLaunch& launch, CUresult why) {
    const Lock lock = spin_lock(mutex_);
    detour_.refuse(launch.function, why);
    return detour_.go_home();
}

uint32_t ManagedStream::first_under_way() {
    std::lock_guard lock(mutex_);
    if (!queue_.in_flight().empty()) return queue_.in_flight().front().entry.name;
    if (!unmanaged_.in_flight.empty()) return unmanaged_.in_flight.front().name;
    const Work* const work = preemptor_.in_quota_mode() ? queue_.first() : nullptr;
    return work ? work->entry.name : 0;
}

void ManagedStream::withdrawn(UnmanagedWindow::Number number) {
    Lock lock = spin_lock(mutex_);
    --unmanaged_.entering;
    const CUresult status = detour_.come_home();
    if (failed_ == CUDA_SUCCESS) failed_ = status;
    lock.unlock();
    if (number) tenant_->window.give(number, {});
}

UnmanagedWindow::Number ManagedStream::take_number(uint64_t key) {
    const ClockHandoff others(dispatcher_.device());
    return tenant_->window.take(id_, key, kLookAtWindow);
}

// A stream that begins anew asks the policy first, as before a managed launch. A stream that is at work, or
// in a solo session, goes on while there is room in the tenant's window.
CUresult ManagedStream::await_turn(Lock& lock, UnmanagedPass* pass) {
    const uint64_t key = pass->launch_.key;
    UnmanagedWindow::Number* const number = &pass->number_;
    bool asked = false;
    CUresult status = CUDA_SUCCESS;
    std::optional<device::HeldUp> held_up;
    while (status == CUDA_SUCCESS && !gone()) {
        prune();
        if (preemptor_.in(State::kPassThrough) && !stops_soon()) return CUDA_SUCCESS;
        if (preemptor_.in(State::kPassThrough) && (asked || under_way() || begins_unasked())) {
            *number = tenant_->window.take_now(id_, key, schedule::Clock::now());
            if (*number) return CUDA_SUCCESS;
            lock.unlock();
            *number = take_number(key);
            lock.lock();
            if (*number && preemptor_.in(State::kPassThrough) && !gone()) return CUDA_SUCCESS;
            if (*number) tenant_->window.give(*number, {});
        } else if (preemptor_.in(State::kPassThrough)) {
            status = come_to_rest();
        } else if (!asked) {
            asked = true;
            pass->unasked_ = false;
            lock.unlock();
            dispatcher_.arrived(*this);
            lock.lock();
        } else {
            say_held_up(&held_up);
            status = await_change(lock);
        }
    }
    return status != CUDA_SUCCESS ? status : kClientGone;
}

}  // namespace smt::runtime::dispatch
