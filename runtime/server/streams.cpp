#include "runtime/server/streams.h"

#include <algorithm>
#include <thread>

#include "runtime/device/held_up.h"
#include "runtime/dispatch/clock_handoff.h"
#include "runtime/dispatch/dispatcher.h"
#include "runtime/protocol/try.h"
#include "runtime/server/lane.h"
#include "runtime/server/poll_interval.h"

namespace smt::runtime::server {

namespace {

constexpr auto kLookAtDepth = std::chrono::microseconds(50);  // while too much is ahead

void remove(std::vector<StreamPointer>& list, const Stream* stream) {
    std::erase_if(list, [&](const StreamPointer& each) { return each.get() == stream; });
}

}  // namespace

Stream::~Stream() {
    delete managed.load();
    if (join) driver.cuEventDestroy_v2(join);
    if (handle) driver.cuStreamDestroy_v2(handle);
    arena.give_word(callback);
}

Streams::~Streams() {
    if (legacy_event_) driver_.cuEventDestroy_v2(legacy_event_);
}

CUresult Streams::make(bool blocking, int32_t priority, StreamPointer* stream) {
    auto made = std::make_shared<Stream>(driver_, arena_, dispatcher_->ahead());
    made->blocking = blocking;
    made->priority = dispatcher_->supplies().within_range(priority);
    CUresult status = dispatcher_->supplies().sm_sets().make_stream(
        tenant_->places.get(), dispatcher_->supplies().stream_priority(*tenant_, priority), &made->handle);
    if (status != CUDA_SUCCESS) return status;
    *stream = std::move(made);
    return CUDA_SUCCESS;
}

CUresult Streams::open() {
    CUresult status = make(false, 0, &legacy_);
    if (status == CUDA_SUCCESS) legacy_->reference = protocol::kLegacyStream;
    return status;
}

size_t Streams::count() {
    std::lock_guard lock(mutex_);
    drop_idle();
    return created_.size() + retired_.size();
}

CUresult Streams::create(uint32_t flags, int32_t priority, size_t most, StreamPointer* stream) {
    if (flags != CU_STREAM_DEFAULT && flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    if (count() >= most) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult status = make(flags == CU_STREAM_DEFAULT, priority, stream);
    if (status != CUDA_SUCCESS) return status;
    std::lock_guard lock(mutex_);
    while (next_ < protocol::kFirstStream || created_.contains(next_)) ++next_;
    (*stream)->reference = next_++;
    created_[(*stream)->reference] = *stream;
    return CUDA_SUCCESS;
}

CUresult Streams::destroy(uint32_t reference) {
    StreamPointer stream;
    std::lock_guard lock(mutex_);
    auto found = created_.find(reference);
    if (found == created_.end()) return CUDA_ERROR_INVALID_HANDLE;
    stream = std::move(found->second);
    created_.erase(found);
    let_go(stream);
    return CUDA_SUCCESS;
}

void Streams::retire(const StreamPointer& stream) {
    std::lock_guard lock(mutex_);
    remove(own_, stream.get());
    let_go(stream);
}

// Work on a destroyed stream continues. A synchronisation, a free and the legacy stream still wait for it. So
// the stream is kept until it is idle.
void Streams::let_go(const StreamPointer& stream) {
    retired_.push_back(stream);
    drop_idle();
}

void Streams::drop_idle() {
    std::erase_if(retired_, [&](const StreamPointer& each) {
        if (each->busy() && query(*each) == CUDA_ERROR_NOT_READY) return false;
        if (each->unjoined.load()) {
            size_t before = unjoined_.size();
            remove(unjoined_, each.get());
            unjoined_count_.fetch_sub(static_cast<uint32_t>(before - unjoined_.size()));
        }
        return true;
    });
}

int Streams::driver_priority(int priority) const {
    return dispatcher_->supplies().stream_priority(*tenant_, priority);
}

CUresult Streams::set_priority(CUstream handle, int priority) {
    CUstreamAttrValue value{};
    value.priority = driver_priority(priority);
    CUresult status = driver_.cuStreamSetAttribute(handle, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
    for (const StreamPointer& stream : all()) {
        if (status == CUDA_SUCCESS && stream->handle == handle)
            stream->priority = dispatcher_->supplies().within_range(priority);
    }
    return status;
}

int Streams::priority_of(CUstream handle) const {
    for (const StreamPointer& stream : all()) {
        if (stream->handle == handle) return stream->priority;
    }
    return 0;
}

CUresult Streams::find(uint32_t reference, Lane& lane, StreamPointer* stream) {
    if (reference == protocol::kLegacyStream) {
        *stream = legacy_;
        return CUDA_SUCCESS;
    }
    if (reference == protocol::kPerThreadStream) {
        StreamPointer& own = lane.own_stream();
        if (!own) {
            CUresult status = make(true, 0, &own);
            if (status != CUDA_SUCCESS) return status;
            own->reference = protocol::kPerThreadStream;
            std::lock_guard lock(mutex_);
            own_.push_back(own);
        }
        *stream = own;
        return CUDA_SUCCESS;
    }
    std::lock_guard lock(mutex_);
    auto found = created_.find(reference);
    if (found == created_.end()) return CUDA_ERROR_INVALID_HANDLE;
    *stream = found->second;
    return CUDA_SUCCESS;
}

void Streams::serve(dispatch::Dispatcher& dispatcher, std::shared_ptr<dispatch::Tenant> tenant) {
    dispatcher_ = &dispatcher;
    tenant_ = std::move(tenant);
}

CUresult Streams::manage(Stream& stream, dispatch::ManagedStream** managed) {
    *managed = stream.managed.load(std::memory_order_acquire);
    if (*managed) return CUDA_SUCCESS;
    std::lock_guard lock(mutex_);
    *managed = stream.managed.load();
    if (*managed) return CUDA_SUCCESS;
    auto made = std::make_unique<dispatch::ManagedStream>(*dispatcher_, tenant_, stream.handle);
    CUresult status = made->open();
    if (status == CUDA_SUCCESS) stream.managed.store(*managed = made.release(), std::memory_order_release);
    return status;
}

CUresult Streams::enter(Stream& stream, Lane& lane, const dispatch::UnmanagedLaunch& launch,
                        dispatch::UnmanagedPass* pass) {
    if (!tenant_->preemptible.load(std::memory_order_relaxed) &&
        !tenant_->preemptor.load(std::memory_order_relaxed) && !dispatcher_->gpu_time() &&
        !dispatcher_->watches()) {
        if (lane.keeps_to(stream)) await_depth(stream, lane);
        return stream.guard();
    }
    dispatch::ManagedStream* managed = nullptr;
    CUresult status = manage(stream, &managed);
    return status == CUDA_SUCCESS ? managed->enter(launch, pass) : status;
}

// Sleeps, because nothing announces that an event is reached.
void Streams::await_depth(Stream& stream, const Lane& lane) const {
    if (stream.depth.goes(stream.handle)) return;
    const dispatch::ClockHandoff others(dispatcher_->device());
    while (!stream.depth.may_go(dispatcher_->now(), stream.pending_wait().waits() || lane.stopping()))
        std::this_thread::sleep_for(kLookAtDepth);
}

CUresult Streams::prepare(Stream& stream) {
    CUresult status = prepare_launch(stream);
    return status == CUDA_SUCCESS ? stream.guard() : status;
}

CUresult Streams::prepare_launch(Stream& stream) {
    CUresult status = order(stream);
    return status == CUDA_SUCCESS ? wait_function(stream) : status;
}

CUresult Streams::wait_function(Stream& stream) {
    if (stream.awaited_by_none.load() == 0) return CUDA_SUCCESS;
    std::lock_guard lock(stream.host_function_mutex);
    CUresult status = CUDA_SUCCESS;
    if (stream.function_runs()) {
        const device::NamedWaits named("a host function");
        status = enqueue_wait(stream, [&] {
            return driver_.cuStreamWaitValue64_v2(stream.handle, arena_.word_address(stream.callback.index),
                                                  stream.awaited_by_none.load(), CU_STREAM_WAIT_VALUE_GEQ);
        });
    }
    // Stored after the wait is enqueued: another thread's work on this stream must not overtake the wait.
    if (status == CUDA_SUCCESS) stream.awaited_by_none.store(0);
    return status;
}

CUresult Streams::enqueue_wait(Stream& stream, const std::function<CUresult()>& enqueue,
                               dispatch::WaitWords nodes) {
    dispatch::ManagedStream* managed = nullptr;
    SMT_TRY(stream.come_home());
    // Captured, or without room for the dispatcher's words: what is behind the wait counts as work.
    if (capturing(stream.handle) || manage(stream, &managed) != CUDA_SUCCESS) return enqueue();
    return managed->enqueue_wait(enqueue, std::move(nodes));
}

// An event whose record is behind no wait is left alone: both streams count as work until it is over.
CUresult Streams::wait_event(Stream& stream, CUevent event, unsigned flags,
                             const dispatch::WaitWord& recorded) {
    const auto enqueue = [&] { return driver_.cuStreamWaitEvent(stream.handle, event, flags); };
    SMT_TRY(stream.come_home());
    if (!recorded.waits()) return enqueue();
    SMT_TRY(stream.guard());
    return enqueue_wait(stream, enqueue);
}

CUresult Streams::synchronize(Stream& stream) {
    uint64_t uses = stream.uses.load();
    CUresult status = stream.guard();
    dispatch::ManagedStream* const managed = stream.managed.load(std::memory_order_acquire);
    const uint32_t issued = managed ? managed->issued() : 0;
    if (status == CUDA_SUCCESS) status = driver_.cuStreamSynchronize(stream.handle);
    if (status != CUDA_SUCCESS) return status;
    if (managed) managed->over(issued);
    for (PollInterval interval; stream.function_runs();)
        interval.sleep();  // until the client reports the host function's end
    uint64_t known = stream.synchronized.load();
    while (known < uses && !stream.synchronized.compare_exchange_weak(known, uses)) {
    }
    return CUDA_SUCCESS;
}

CUresult Streams::query(const Stream& stream) const {
    if (stream.held_back()) return CUDA_ERROR_NOT_READY;
    CUresult status = driver_.cuStreamQuery(stream.handle);
    return status == CUDA_SUCCESS && stream.function_runs() ? CUDA_ERROR_NOT_READY : status;
}

CUresult Streams::synchronize_all() {
    CUresult result = CUDA_SUCCESS;
    for (const StreamPointer& stream : all()) {
        if (!stream->busy() || capturing(stream->handle)) continue;
        CUresult status = synchronize(*stream);
        if (status != CUDA_SUCCESS && result == CUDA_SUCCESS) result = status;
    }
    return result;
}

CUresult Streams::guard_all() {
    for (const StreamPointer& stream : all()) {
        if (capturing(stream->handle)) continue;
        SMT_TRY(stream->guard());
    }
    return CUDA_SUCCESS;
}

CUresult Streams::query_all() {
    for (const StreamPointer& stream : all()) {
        if (!stream->busy() || capturing(stream->handle)) continue;
        SMT_TRY(query(*stream));
    }
    return CUDA_SUCCESS;
}

// The lock keeps a stream from beginning to capture: a query would break that.
bool Streams::idle() {
    return std::ranges::all_of(all(), [this](const StreamPointer& stream) {
        const std::unique_lock lock(stream->host_function_mutex, std::try_to_lock);
        return lock && !capturing(stream->handle) && query(*stream) == CUDA_SUCCESS;
    });
}

UnderWay Streams::under_way() const {
    UnderWay sum;
    for (const StreamPointer& stream : all()) sum.add(stream->in_flight.under_way(stream->synchronized));
    return sum;
}

bool Streams::capturing(CUstream stream) const {
    if (!captures()) return false;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return driver_.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

std::vector<StreamPointer> Streams::all() const {
    std::lock_guard lock(mutex_);
    std::vector<StreamPointer> streams;
    streams.reserve(created_.size() + own_.size() + retired_.size() + 1);
    if (legacy_) streams.push_back(legacy_);
    for (const auto& [reference, stream] : created_) streams.push_back(stream);
    streams.insert(streams.end(), own_.begin(), own_.end());
    streams.insert(streams.end(), retired_.begin(), retired_.end());
    return streams;
}

void Streams::end_captures(const std::function<void(CUstream, CUgraph)>& ended) {
    if (captures_.load() <= 0) return;
    for (const StreamPointer& stream : all()) {
        CUgraph graph = nullptr;
        if (!capturing(stream->handle)) continue;
        driver_.cuStreamEndCapture(stream->handle, &graph);
        ended(stream->handle, graph);
    }
    captures_.store(0);
}

void Streams::abandon() {
    for (const StreamPointer& stream : all()) {
        if (dispatch::ManagedStream* managed = stream->managed.load()) managed->abandon();
    }
}

void Streams::forget_code() {
    for (const StreamPointer& stream : all()) {
        if (dispatch::ManagedStream* managed = stream->managed.load()) managed->forget_code();
    }
}

void Streams::clear() {
    std::unordered_map<uint32_t, StreamPointer> created;
    std::vector<StreamPointer> retired, unjoined;
    std::lock_guard join_lock(join_mutex_);
    std::lock_guard lock(mutex_);
    created.swap(created_);
    retired.swap(retired_);
    unjoined.swap(unjoined_);
    for (const StreamPointer& stream : unjoined) stream->unjoined.store(false);
    unjoined_count_.store(0);
}

void Streams::close() {
    clear();
    std::lock_guard lock(mutex_);
    own_.clear();
    legacy_.reset();
}

}  // namespace smt::runtime::server
