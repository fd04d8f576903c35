// See links.h.
#include "runtime/server/code/links.h"

namespace smt::runtime::server {

namespace {

constexpr uint64_t kMostInputBytes = 128ull << 20;  // per session
constexpr size_t kMostInputs = 4096;                // per state

}  // namespace

CUresult Links::create(JitOptionsPointer options, CUlinkState* state) {
    CUresult status = driver_.cuLinkCreate_v2(options->count(), options->names(), options->values(), state);
    if (status) return status;
    std::lock_guard lock(mutex_);
    states_[*state] = {std::move(options), {}, false};
    return CUDA_SUCCESS;
}

JitOptionsPointer Links::find(CUlinkState state) const {
    std::lock_guard lock(mutex_);
    auto found = states_.find(state);
    return found == states_.end() ? nullptr : found->second.options;
}

bool Links::add(CUlinkState state, jit::Input input) {
    std::lock_guard lock(mutex_);
    auto found = states_.find(state);
    if (found == states_.end() || bytes_ + input.data.size() > kMostInputBytes ||
        found->second.inputs.size() >= kMostInputs)
        return false;
    bytes_ += input.data.size();
    found->second.inputs.push_back(std::move(input));
    return true;
}

bool Links::has_inputs(CUlinkState state) const {
    std::lock_guard lock(mutex_);
    auto found = states_.find(state);
    return found != states_.end() && !found->second.inputs.empty();
}

std::vector<jit::Input> Links::inputs(CUlinkState state) const {
    std::lock_guard lock(mutex_);
    auto found = states_.find(state);
    return found == states_.end() ? std::vector<jit::Input>{} : found->second.inputs;
}

void Links::give_to_driver(CUlinkState state) {
    std::lock_guard lock(mutex_);
    if (auto found = states_.find(state); found != states_.end()) found->second.drivers = true;
}

bool Links::given_to_driver(CUlinkState state) const {
    std::lock_guard lock(mutex_);
    auto found = states_.find(state);
    return found != states_.end() && found->second.drivers;
}

CUresult Links::destroy(CUlinkState state) {
    JitOptionsPointer options;  // destroyed after the state, because the driver writes to its buffers
    {
        std::lock_guard lock(mutex_);
        if (auto found = states_.find(state); found != states_.end()) {
            for (const jit::Input& input : found->second.inputs) bytes_ -= input.data.size();
            options = std::move(found->second.options);
            states_.erase(found);
        }
    }
    return driver_.cuLinkDestroy(state);
}

void Links::clear() {
    std::lock_guard lock(mutex_);
    states_.clear();
    bytes_ = 0;
}

}  // namespace smt::runtime::server
