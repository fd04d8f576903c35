#include "runtime/device/simulated/driver/engine.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace smt::runtime::device::simulated {

using hosted::Lock;
using hosted::Node;
using hosted::world;
using namespace std::chrono_literals;

namespace {

constexpr int kStepsAtATime = 4096;  // of the machine, between looks at what is new
constexpr auto kPoll = 100us;        // how a word that others write is looked at
constexpr auto kLongestRest = 50ms;
constexpr uint64_t kForever = 1ull << 61;  // ns
constexpr auto kJournalRest = 1s;          // entries of a moment that goes on are shown after it

thread_local bool is_looker = false;

}  // namespace

Caller& caller() {
    thread_local Caller caller;
    return caller;
}

Engine::Engine(const Settings& settings, MakeGrid make_grid)
    : settings_(settings), make_grid_(std::move(make_grid)), machine_(settings.machine) {
    const std::string why = thread_.serve({"device", ""}, [this] { run(); });
    if (!why.empty()) throw std::runtime_error(why);
}

Engine::~Engine() { stop(); }

void Engine::stop() {
    if (!thread_.joinable()) return;
    {
        Lock lock(world());
        stopping_ = true;
        attention_ = true;
    }
    wake_.notify_all();
    looker_.rested.notify_all();
    thread_.join();
    journal_.flush();
}

void Engine::arrived(const std::shared_ptr<Tenant>& tenant) {
    Lock lock(world());
    tenant->active = RealTime::now();
    tenants_.push_back(tenant);
    ++ever_arrived_;
    attention_ = true;
    wake_.notify_all();
}

void Engine::leaving(Tenant& tenant) {
    Lock lock(world());
    tenant.leaving = true;
    attention_ = true;
    wake_.notify_all();
}

void Engine::left(const std::shared_ptr<Tenant>& tenant) {
    Lock lock(world());
    std::erase(tenants_, tenant);
    attention_ = true;
    wake_.notify_all();
    if (tenants_.empty()) journal_.flush();
}

void Engine::waits_for_others(bool waits) {
    hosted::Lock lock(hosted::world());
    Tenant* tenant = caller().tenant.get();
    if (!tenant) return;
    tenant->waiting += waits ? 1 : -1;
    tenant->waiting_for_others += waits ? 1 : -1;
    tenant->let_go = false;
    tenant->active = RealTime::now();
    attention_ = true;
    wake_.notify_all();
}

void Engine::let_go(uint32_t number) {
    Lock lock(world());
    for (const auto& tenant : tenants_) {
        if (tenant->number != number || tenant->waiting_for_others == 0) continue;
        tenant->let_go = true;
        tenant->active = RealTime::now();
    }
}

void Engine::touch(Tenant& tenant) {
    Lock lock(world());
    tenant.active = RealTime::now();
    attention_ = true;
}

void Engine::end_work(Tenant& tenant, CUresult error) {
    int none = CUDA_SUCCESS;
    Lock lock(world());
    tenant.fault.compare_exchange_strong(none, error);
    ended_ = attention_ = true;
    wake_.notify_all();
}

void Engine::opened(const StreamPointer& stream) {
    stream->tenant = caller().tenant;
    streams_.push_back(stream);
}

void Engine::made_for(uint32_t tenant, CUstream handle) {
    Lock lock(world());
    const auto stream = std::static_pointer_cast<SimulatedStream>(hosted::find_stream(handle));
    const auto found = std::find_if(tenants_.begin(), tenants_.end(),
                                    [&](const auto& each) { return each->number == tenant; });
    if (stream && found != tenants_.end()) stream->tenant = *found;
}

void Engine::submitted(SimulatedStream& stream) {
    Caller& by = caller();
    while (stream.turns.size() < stream.queue.size())
        stream.turns.push_back({by.tenant, by.lane, ++by.sequence, period_});
    if (by.tenant) by.tenant->active = RealTime::now();
    attention_ = true;
    wake_.notify_all();
}

void Engine::await(Lock& lock, const std::function<bool()>& done) {
    if (done()) return;
    Tenant* tenant = caller().tenant.get();
    Waiter waiter{&done, tenant, is_looker, false};
    waiters_.push_back(&waiter);
    if (tenant) ++tenant->waiting;
    if (is_looker) ++looker_.waiting;
    attention_ = true;
    wake_.notify_all();
    hosted::changed().wait(lock, [&] { return waiter.satisfied; });
}

void Engine::quietly(const std::function<void()>& change) {
    std::lock_guard step(step_);
    change();
}

void Engine::run() {
    Lock lock(world());
    while (!stopping_) {
        if (std::exchange(ended_, false)) cancel_lost();
        finish_completed();
        tell_waiters();
        std::erase_if(streams_,
                      [](const StreamPointer& each) { return each->closing && each->queue.empty(); });
        if (!clock_may_run()) {
            rest(lock);
        } else if (!start_ready(lock)) {
            machine_.idle() && !looks_next() ? rest(lock) : advance(lock);
        }
    }
}

bool Engine::clock_may_run() {
    attention_ = false;
    if (lost() != CUDA_SUCCESS) return true;  // what is left ends with the error, at any time
    if (ever_arrived_ < settings_.sessions) return false;
    const bool at_work = looker_.there && !looker_.resting && looker_.waiting == 0;
    if (at_work && RealTime::now() - looker_.active < settings_.grace) return false;
    return std::none_of(tenants_.begin(), tenants_.end(),
                        [this](const auto& tenant) { return holds(*tenant); });
}

bool Engine::holds(const Tenant& tenant) const {
    bool busy = false;                    // work of it is under way or to come
    bool blocked = tenant.callbacks > 0;  // and the program must do something first
    for (const StreamPointer& each : streams_) {
        if (each->tenant.get() != &tenant || each->queue.empty()) continue;
        const hosted::Node& front = *each->queue.front();
        busy = true;
        if (front.polled && !front.ready()) blocked = true;
    }
    if (!blocked && !tenant.let_go && (tenant.waiting > 0 || (tenant.leaving && busy))) return false;
    return RealTime::now() - tenant.active < settings_.grace;
}

// Starts what is ready at this moment, one round at a time; false: nothing was.
bool Engine::start_ready(Lock& lock) {
    std::vector<StreamPointer> ready;
    const uint64_t oldest = oldest_period();
    for (const StreamPointer& stream : streams_) {
        if (stream->under_way || stream->queue.empty() || stream->turns.front().period > oldest) continue;
        const bool lost = is_lost(*stream);
        // Nothing will end a wait for a value of a program that is gone.
        const bool left = stream->tenant && stream->tenant->leaving && stream->queue.front()->polled;
        if (lost || left || !stream->queue.front()->ready || stream->queue.front()->ready())
            ready.push_back(stream);
    }
    std::sort(ready.begin(), ready.end(), [](const StreamPointer& a, const StreamPointer& b) {
        return a->turns.front() < b->turns.front();
    });
    for (const StreamPointer& stream : ready) start(lock, stream);
    return !ready.empty();
}

void Engine::lose(CUresult fault) {
    int none = CUDA_SUCCESS;
    lost_.compare_exchange_strong(none, fault);
    attention_ = true;
}

bool Engine::is_lost(const SimulatedStream& stream) const {
    return lost() != CUDA_SUCCESS || (stream.tenant && stream.tenant->fault);
}

void Engine::tell_waiters() {
    bool any = false;
    std::erase_if(waiters_, [&](Waiter* waiter) {
        if (!(*waiter->done)()) return false;
        waiter->satisfied = any = true;
        if (waiter->tenant) {
            --waiter->tenant->waiting;
            waiter->tenant->active = RealTime::now();
        }
        if (waiter->looker) {
            --looker_.waiting;
            looker_.active = RealTime::now();
        }
        return true;
    });
    if (any) hosted::changed().notify_all();
}

void Engine::advance(Lock& lock) {
    const Cycle look = looker_.resting ? looker_.until : kNever;
    lock.unlock();
    if (!journal_.empty()) journal_.flush();
    {
        std::lock_guard step(step_);
        if (machine_.idle()) machine_.pass(look);
        for (int i = 0;
             i < kStepsAtATime && done_by_machine_.empty() && !attention_.load(std::memory_order_relaxed);
             ++i) {
            if (!machine_.advance(look)) break;
        }
        now_ns_.store(nanoseconds_of(machine_.now()), std::memory_order_release);
    }
    lock.lock();
    if (looker_.resting && machine_.now() >= looker_.until) let_look();
}

// The clock goes there even if nothing else happens.
bool Engine::looks_next() const { return looker_.resting && looker_.due && looker_.until != kNever; }

void Engine::let_look() {
    looker_.resting = false;
    looker_.active = RealTime::now();
    looker_.rested.notify_all();
}

void Engine::rest(std::unique_lock<std::mutex>& lock, uint64_t until_ns, bool due) {
    Lock inner(world());
    is_looker = looker_.there = looker_.resting = true;
    looker_.due = due;
    looker_.until = until_ns < kForever ? cycles_of(until_ns) + 1 : kNever;  // not a nanosecond too early
    attention_ = true;
    wake_.notify_all();
    lock.unlock();
    looker_.rested.wait(inner, [this] { return !looker_.resting || stopping_; });
    inner.unlock();
    lock.lock();
}

void Engine::disturb() {
    Lock lock(world());
    looker_.there = true;
    let_look();
}

bool Engine::polls() const {
    return std::any_of(streams_.begin(), streams_.end(), [](const StreamPointer& each) {
        return !each->under_way && !each->queue.empty() && each->queue.front()->polled;
    });
}

// Until a program calls, a word is written, or a program's grace period is over.
void Engine::rest(Lock& lock) {
    if (attention_) return;
    RealTime::duration longest = kLongestRest;
    const bool pending =
        !machine_.idle() || std::any_of(streams_.begin(), streams_.end(),
                                        [](const StreamPointer& each) { return !each->queue.empty(); });
    if (polls()) {
        longest = kPoll;
    } else if (pending) {
        const auto now = RealTime::now();
        for (const auto& tenant : tenants_) {
            const auto left = tenant->active + settings_.grace - now;
            if (left > 0ms && left < longest) longest = left;
        }
    } else {
        longest = kJournalRest;
    }
    const bool silent = wake_.wait_for(lock, longest) == std::cv_status::timeout;
    if (silent && !pending && !journal_.empty() && ever_arrived_ >= settings_.sessions) journal_.flush();
}

}  // namespace smt::runtime::device::simulated
