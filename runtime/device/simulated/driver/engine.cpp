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

// After a fault has ended a tenant none of its work is carried out, and threads that wait for it go on.
void Engine::start(Lock& lock, const StreamPointer& stream) {
    const std::shared_ptr<Node> node = stream->queue.front();
    stream->under_way = true;
    if (is_lost(*stream)) {
        if (node->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) return carry_out(lock, stream, *node);
        return finish(*stream);
    }
    switch (node->type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return start_kernel(stream, *node);
        case CU_GRAPH_NODE_TYPE_MEMCPY:
        case CU_GRAPH_NODE_TYPE_MEMSET:
            return start_copy(stream, node);
        case CU_GRAPH_NODE_TYPE_HOST:
            return start_host_function(stream, node);
        default:
            return carry_out(lock, stream, *node);
    }
}

void Engine::start_kernel(const StreamPointer& stream, const Node& node) {
    auto grid =
        make_grid_(node.launch, stream->tenant, [this, stream](const GridResult&) { kernel_over(stream); });
    grid->priority = node.launch.has_priority ? node.launch.priority : stream->priority;
    grid->places = node.launch.places;
    grids_.emplace_back(stream, grid);
    machine_.launch(std::move(grid));
}

// A fault ends everything that its tenant has on the machine, or everything.
void Engine::kernel_over(const StreamPointer& stream) {
    std::erase_if(grids_, [&](const auto& each) { return each.first == stream; });
    done_by_machine_.push_back(stream);
    if (is_lost(*stream)) cancel_lost();
}

void Engine::cancel_lost() {
    for (const auto& [stream, grid] : grids_) {
        if (is_lost(*stream)) machine_.cancel(*grid);
    }
}

// Moves the bytes when the copy is over.
void Engine::start_copy(const StreamPointer& stream, const std::shared_ptr<Node>& node) {
    CopyEngine engine = CopyEngine::kWithin;
    uint64_t bytes = 0;
    if (node->type == CU_GRAPH_NODE_TYPE_MEMSET) {
        bytes = node->fill.width * node->fill.elementSize * std::max<size_t>(node->fill.height, 1) / 2;
    } else {
        const CUDA_MEMCPY3D& copy = node->copy;
        const auto device = [](CUmemorytype type, uint64_t address) {
            if (type == CU_MEMORYTYPE_HOST) return false;
            return type == CU_MEMORYTYPE_ARRAY || hosted::on_device(address);
        };
        const bool from = device(copy.srcMemoryType, copy.srcDevice),
                   to = device(copy.dstMemoryType, copy.dstDevice);
        if (!from || !to) engine = to ? CopyEngine::kToDevice : CopyEngine::kToHost;
        bytes = copy.WidthInBytes * copy.Height * copy.Depth;
    }
    machine_.copy(engine, bytes, [this, stream, node] {
        node->work();
        done_by_machine_.push_back(stream);
    });
}

// On a thread of its own: it may wait for other work of the device. Without one the tenant is lost, and no
// other.
void Engine::start_host_function(const StreamPointer& stream, const std::shared_ptr<Node>& node) {
    std::shared_ptr<Tenant> tenant = stream->tenant;
    if (tenant) {
        ++tenant->callbacks;
        tenant->active = RealTime::now();
    }
    const auto over = [this, stream, tenant] {  // with world()
        if (tenant) {
            --tenant->callbacks;
            tenant->active = RealTime::now();
        }
        done_by_others_.push_back(stream);
        attention_ = true;
        wake_.notify_all();
    };
    const auto fail = [tenant] {
        if (tenant) tenant->fault.store(CUDA_ERROR_OUT_OF_MEMORY);
    };
    const std::string why = Thread::detach(
        {"host function", tenant ? tenant->name : ""},
        [node, over] {
            node->work();
            Lock lock(world());
            over();
        },
        [fail, over](const std::string&) {
            Lock lock(world());
            fail();
            over();
        });
    if (why.empty()) return;
    fail();
    over();
}

// What takes no time: events, values.
void Engine::carry_out(Lock& lock, const StreamPointer& stream, const Node& node) {
    if (node.work) {
        lock.unlock();
        quietly(node.work);
        lock.lock();
        // A program may look at the word that was written.
        if (node.type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP && stream->tenant)
            stream->tenant->active = RealTime::now();
    }
    finish(*stream);
}

void Engine::finish(SimulatedStream& stream) {
    stream.under_way = false;
    stream.turns.pop_front();
    hosted::finish_front(stream);
    if (stream.queue.empty() && stream.tenant) stream.tenant->active = RealTime::now();
}

bool Engine::finish_completed() {
    std::vector<StreamPointer> done = std::move(done_by_machine_);
    done_by_machine_.clear();
    done.insert(done.end(), done_by_others_.begin(), done_by_others_.end());
    done_by_others_.clear();
    for (const StreamPointer& stream : done) finish(*stream);
    return !done.empty();
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
