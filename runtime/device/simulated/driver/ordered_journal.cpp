#include "runtime/device/simulated/driver/ordered_journal.h"

#include <algorithm>

namespace smt::runtime::device::simulated {

void OrderedJournal::attach(journal::Writer& writer) {
    std::lock_guard lock(mutex_);
    writer_ = &writer;
}

void OrderedJournal::add(const journal::Entry& entry, const std::string& tenant, uint32_t session) {
    std::lock_guard lock(mutex_);
    held_.push_back({tenant, session, arrivals_++, entry});
    held_count_.store(held_.size(), std::memory_order_release);
}

void OrderedJournal::flush() {
    std::lock_guard lock(mutex_);
    std::sort(held_.begin(), held_.end(), [](const Held& a, const Held& b) {
        return std::tie(a.tenant, a.session, a.arrival) < std::tie(b.tenant, b.session, b.arrival);
    });
    for (const Held& each : held_) {
        if (writer_) writer_->write(each.entry);
    }
    held_.clear();
    held_count_.store(0, std::memory_order_release);
}

}  // namespace smt::runtime::device::simulated
