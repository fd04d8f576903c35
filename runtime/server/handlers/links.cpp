// See links.h.
#include "runtime/server/handlers/links.h"

namespace smt::runtime::server::handlers {

CUresult Links::create(JitOptionsPointer options, CUlinkState* state) {
    CUresult status = driver_.cuLinkCreate_v2(options->count(), options->names(), options->values(), state);
    if (status) return status;
    std::lock_guard lock(mutex_);
    states_[*state] = std::move(options);
    return CUDA_SUCCESS;
}

JitOptionsPointer Links::find(CUlinkState state) const {
    std::lock_guard lock(mutex_);
    auto found = states_.find(state);
    return found == states_.end() ? nullptr : found->second;
}

CUresult Links::destroy(CUlinkState state) {
    JitOptionsPointer options;   // the driver writes to its buffers until then
    {
        std::lock_guard lock(mutex_);
        if (auto found = states_.find(state); found != states_.end()) {
            options = std::move(found->second);
            states_.erase(found);
        }
    }
    return driver_.cuLinkDestroy(state);
}

void Links::clear() {
    std::lock_guard lock(mutex_);
    states_.clear();
}

}  // namespace smt::runtime::server::handlers
