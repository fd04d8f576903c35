// The legacy default stream's order: its work is behind that of all blocking streams before it, and theirs
// behind its.
#include "runtime/server/streams.h"

namespace smt::runtime::server {

CUresult Streams::order(Stream& stream) {
    if (&stream == legacy_.get()) return join_blocking(stream);
    return stream.blocking ? wait_legacy(stream) : CUDA_SUCCESS;
}

CUresult Streams::join_blocking(Stream& legacy) {
    if (unjoined_count_.load() == 0) return CUDA_SUCCESS;
    std::lock_guard join_lock(join_mutex_);
    std::vector<StreamPointer> streams;
    {
        std::lock_guard lock(mutex_);
        streams.swap(unjoined_);
    }
    CUresult result = CUDA_SUCCESS;
    for (const StreamPointer& stream : streams) {
        if (capturing(stream->handle)) {
            std::lock_guard lock(mutex_);
            unjoined_.push_back(stream);
            continue;
        }
        // Cleared before the record: work that is enqueued between the two is both joined and noted.
        stream->unjoined.exchange(false);
        CUresult status = CUDA_SUCCESS;
        if (!stream->join) status = driver_.cuEventCreate(&stream->join, CU_EVENT_DISABLE_TIMING);
        if (status == CUDA_SUCCESS) status = stream->guard();
        if (status == CUDA_SUCCESS) status = wait_function(*stream);
        if (status == CUDA_SUCCESS) status = driver_.cuEventRecord(stream->join, stream->handle);
        if (status == CUDA_SUCCESS) status = wait_event(legacy, stream->join, 0, stream->pending_wait());
        if (status != CUDA_SUCCESS && result == CUDA_SUCCESS) result = status;
        unjoined_count_.fetch_sub(1);
    }
    return result;
}

CUresult Streams::wait_legacy(Stream& stream) {
    uint64_t generation = legacy_generation_.load();
    if (stream.legacy_seen.load() == generation || capturing(stream.handle)) return CUDA_SUCCESS;
    std::lock_guard join_lock(join_mutex_);
    CUresult status = CUDA_SUCCESS;
    if (legacy_recorded_ != generation) {
        if (!legacy_event_) status = driver_.cuEventCreate(&legacy_event_, CU_EVENT_DISABLE_TIMING);
        if (status == CUDA_SUCCESS) status = legacy_->guard();
        if (status == CUDA_SUCCESS) status = wait_function(*legacy_);
        if (status == CUDA_SUCCESS) status = driver_.cuEventRecord(legacy_event_, legacy_->handle);
        if (status != CUDA_SUCCESS) return status;
        legacy_recorded_ = generation;
    }
    status = wait_event(stream, legacy_event_, 0, legacy_->pending_wait());
    // Stored after the wait is enqueued: another thread's work on this stream must not overtake the wait.
    if (status == CUDA_SUCCESS) stream.legacy_seen.store(generation);
    return status;
}

void Streams::note_use(Stream& stream) {
    if (dispatch::ManagedStream* const managed = stream.managed.load(std::memory_order_acquire))
        managed->left_home();
    stream.uses.fetch_add(1);  // a full barrier: the work is enqueued before `unjoined` is read
    if (&stream == legacy_.get()) {
        legacy_generation_.fetch_add(1);
        return;
    }
    if (!stream.blocking) return;
    if (stream.unjoined.load()) return;
    std::lock_guard lock(mutex_);
    if (stream.unjoined.exchange(true)) return;
    unjoined_.push_back(stream.shared_from_this());
    unjoined_count_.fetch_add(1);
}

}  // namespace smt::runtime::server
