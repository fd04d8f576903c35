// A session's events, by the index that the client chose. Any thread. A record of an event may also make
// the GPU store a value in the event's completion word, which the client polls.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "driver_api.gen.h"

namespace smt::runtime::server {

// The event is destroyed with the last reference. A record that uses an event holds one.
using EventPointer = std::shared_ptr<CUevent_st>;

class Events {
public:
    explicit Events(const DriverApi& driver) : driver_(driver) {}

    CUresult create(uint32_t index, uint32_t flags);  // replaces an existing event of that index
    CUresult destroy(uint32_t index);
    CUresult find(uint32_t index, EventPointer* event) const;
    void clear();

private:
    const DriverApi& driver_;
    mutable std::mutex mutex_;
    std::vector<EventPointer> events_;
};

}  // namespace smt::runtime::server
