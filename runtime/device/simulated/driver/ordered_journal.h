// The journal on a virtual clock: entries of one moment are held back and written in an order that
// does not depend on which thread came first.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/journal/journal.h"

namespace smt::runtime::device::simulated {

class OrderedJournal {
public:
    void attach(journal::Writer& writer);
    // The order within a moment: by tenant, session, then as they came.
    void add(const journal::Entry& entry, const std::string& tenant, uint32_t session);
    void flush();  // the moment is over
    bool empty() const { return held_count_.load(std::memory_order_acquire) == 0; }

private:
    struct Held {
        std::string tenant;
        uint32_t session;
        uint64_t arrival;
        journal::Entry entry;
    };

    std::mutex mutex_;
    journal::Writer* writer_ = nullptr;
    std::vector<Held> held_;
    uint64_t arrivals_ = 0;
    std::atomic<size_t> held_count_{0};
};

}  // namespace smt::runtime::device::simulated
