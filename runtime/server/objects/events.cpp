#include "runtime/server/objects/events.h"

#include "runtime/protocol/layout.h"
#include "runtime/protocol/try.h"

namespace smt::runtime::server {

CUresult Events::create(uint32_t index, uint32_t flags) {
    if (index >= protocol::kEventWords) return CUDA_ERROR_INVALID_VALUE;
    CUevent made = nullptr;
    CUresult status = driver_.cuEventCreate(&made, flags);
    if (status != CUDA_SUCCESS) return status;
    EventPointer event(made, [&driver = driver_](CUevent each) { driver.cuEventDestroy_v2(each); });
    std::lock_guard lock(mutex_);
    if (index >= events_.size()) events_.resize(index + 1), flags_.resize(index + 1);
    flags_[index] = flags;
    events_[index].swap(event);
    behind_.erase(event.get());
    behind_.erase(made);
    return CUDA_SUCCESS;
}

CUresult Events::destroy(uint32_t index) {
    EventPointer event;
    std::lock_guard lock(mutex_);
    if (index >= events_.size() || !events_[index]) return CUDA_ERROR_INVALID_HANDLE;
    event.swap(events_[index]);
    behind_.erase(event.get());
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
