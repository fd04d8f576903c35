#include "runtime/server/objects/events.h"

#include <utility>

#include "runtime/protocol/layout.h"
#include "runtime/protocol/try.h"

namespace smt::runtime::server {

CUresult Events::create(uint32_t index, uint32_t flags) {
    if (index >= protocol::kEventWords) return CUDA_ERROR_INVALID_VALUE;
    CUevent made = nullptr;
    // All sessions are in one process: the driver need not know that another one opens the event.
    CUresult status = driver_.cuEventCreate(&made, flags & ~unsigned{CU_EVENT_INTERPROCESS});
    if (status != CUDA_SUCCESS) return status;
    EventPointer event(made, [&driver = driver_](CUevent each) { driver.cuEventDestroy_v2(each); });
    return place(index, flags, std::move(event), false);
}

CUresult Events::place(uint32_t index, uint32_t flags, EventPointer event, bool shared) {
    std::lock_guard lock(mutex_);
    if (index >= events_.size()) events_.resize(index + 1), flags_.resize(index + 1);
    flags_[index] = flags;
    const CUevent made = event.get();
    events_[index].swap(event);
    forget(event.get());
    if (!shared) return forget(made), CUDA_SUCCESS;
    shared_.insert(made);
    any_shared_.store(true, std::memory_order_release);
    return CUDA_SUCCESS;
}

void Events::forget(CUevent event) {
    behind_.erase(event);
    shared_.erase(event);
}

CUresult Events::share(uint32_t index, EventPointer* event) {
    std::lock_guard lock(mutex_);
    if (index >= events_.size() || !events_[index]) return CUDA_ERROR_INVALID_HANDLE;
    if ((flags_[index] & CU_EVENT_INTERPROCESS) == 0) return CUDA_ERROR_INVALID_VALUE;
    *event = events_[index];
    shared_.insert(event->get());
    any_shared_.store(true, std::memory_order_release);
    return CUDA_SUCCESS;
}

CUresult Events::open_shared(uint32_t index, EventPointer event) {
    if (index >= protocol::kEventWords) return CUDA_ERROR_INVALID_VALUE;
    return place(index, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING, std::move(event), true);
}

bool Events::shared(CUevent event) const {
    if (!any_shared_.load(std::memory_order_acquire)) return false;
    std::lock_guard lock(mutex_);
    return shared_.contains(event);
}

std::string Events::why_not_carried() const {
    std::lock_guard lock(mutex_);
    return shared_.empty() ? "" : "it shares events with other processes";
}

CUresult Events::destroy(uint32_t index) {
    EventPointer event;
    std::lock_guard lock(mutex_);
    if (index >= events_.size() || !events_[index]) return CUDA_ERROR_INVALID_HANDLE;
    event.swap(events_[index]);
    forget(event.get());
    return CUDA_SUCCESS;
}

CUresult Events::find(uint32_t index, EventPointer* event) const {
    std::lock_guard lock(mutex_);
    if (index >= events_.size() || !events_[index]) return CUDA_ERROR_INVALID_HANDLE;
    *event = events_[index];
    return CUDA_SUCCESS;
}

void Events::clear() {
    std::vector<EventPointer> events;
    std::lock_guard lock(mutex_);
    events.swap(events_);
    behind_.clear();
    shared_.clear();
}

void Events::save(protocol::StateWriter& out) const {
    std::lock_guard lock(mutex_);
    std::vector<uint32_t> all;
    for (size_t i = 0; i < events_.size(); ++i)
        if (events_[i]) all.push_back(static_cast<uint32_t>(i)), all.push_back(flags_[i]);
    out.list(all);
}

CUresult Events::restore(protocol::Reader& in) {
    const std::vector<uint32_t> all = protocol::take_list<uint32_t>(in);
    for (size_t i = 0; i + 1 < all.size(); i += 2) SMT_TRY(create(all[i], all[i + 1]));
    return CUDA_SUCCESS;
}

void Events::recorded(CUevent event, const dispatch::WaitWord& wait) {
    if (!wait.word && !any_behind_.load(std::memory_order_acquire)) return;
    std::lock_guard lock(mutex_);
    if (wait.word)
        behind_[event] = wait;
    else
        behind_.erase(event);
    any_behind_.store(true, std::memory_order_release);
}

dispatch::WaitWord Events::recorded_behind(CUevent event) const {
    if (!any_behind_.load(std::memory_order_acquire)) return {};
    std::lock_guard lock(mutex_);
    const auto found = behind_.find(event);
    return found == behind_.end() ? dispatch::WaitWord{} : found->second;
}

}  // namespace smt::runtime::server
