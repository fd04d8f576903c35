#include "runtime/dispatch/supplies.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace smt::runtime::dispatch {

namespace {

// Size of each stream's mapping ring: if mappings are used to learn, and if none may be lost.
constexpr uint32_t kMapEntries = 1u << 12, kMostMapEntries = 1u << 15;

}  // namespace

Supplies::Supplies(device::Device& device, Notes& notes, const Settings& settings)
    : notes_(notes),
      driver_(device.driver()),
      control_memory_(device.driver(), settings.maps ? kMostMapEntries : kMapEntries),
      door_memory_(device.driver()),
      words_(device.driver()),
      sm_sets_(device) {
    driver_.cuCtxGetStreamPriorityRange(&least_, &greatest_);
    driver_.cuStreamCreateWithPriority(&control_, CU_STREAM_NON_BLOCKING, greatest_);
}

Supplies::~Supplies() {
    if (control_) driver_.cuStreamDestroy_v2(control_);
}

SmSetPointer Supplies::places_for(int multiprocessors) {
    std::string why;
    SmSetPointer set = sm_sets_.first(static_cast<unsigned>(multiprocessors), &why);
    if (!set && !unplaced_.exchange(true))
        notes_.note(
            {}, fmt::format("kernels cannot be confined to {} multiprocessors: {}", multiprocessors, why));
    return set;
}

int Supplies::within_range(int priority) const { return std::clamp(priority, greatest_, least_); }

int Supplies::stream_priority(const Tenant& tenant, int asked) const {
    const int level = tenant.priority > 0 ? 2 : tenant.priority == 0 ? 1 : 0;
    const int each = (least_ - greatest_ + 1) / 3;
    if (each == 0) return within_range(asked);
    return least_ - level * each - std::min(least_ - within_range(asked), each - 1);
}

std::vector<uint32_t> places_of(const Tenant& tenant, int multiprocessors) {
    if (tenant.places && !tenant.places->multiprocessors().empty()) return tenant.places->multiprocessors();
    std::vector<uint32_t> all(static_cast<size_t>(multiprocessors));
    std::iota(all.begin(), all.end(), 0);
    return all;
}

}  // namespace smt::runtime::dispatch
