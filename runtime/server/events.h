// A session's events, by the index the client picked. Recording one also makes the GPU store a
// value in the event's completion word, which is what the client polls.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "driver_api.gen.h"

namespace smt::runtime::server {

// Destroyed with the last reference; a record that uses an event holds one.
using EventPointer = std::shared_ptr<CUevent_st>;

class Events {
public:
    explicit Events(const DriverApi& driver) : driver_(driver) {}

    CUresult create(uint32_t index, uint32_t flags);   // replaces an event of that index
    CUresult destroy(uint32_t index);
    CUresult find(uint32_t index, EventPointer* event) const;
    void clear();

private:
    const DriverApi& driver_;
    mutable std::mutex mutex_;
    std::vector<EventPointer> events_;
};

}  // namespace smt::runtime::server
