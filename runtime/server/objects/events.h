// A session's events, by the index that the client chose. Any thread. A record of an event may also make
// the GPU store a value in the event's completion word, which the client polls.
//
// An event with CU_EVENT_INTERPROCESS may be in several sessions, each of which records it and waits for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "driver_api.gen.h"
#include "runtime/dispatch/wait_list.h"
#include "runtime/protocol/state.h"

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
    // share(): for other sessions' open_shared(). INVALID_VALUE: it was not made for that.
    CUresult share(uint32_t index, EventPointer* event);
    CUresult open_shared(uint32_t index, EventPointer event);
    bool shared(CUevent event) const;  // another session may have it, too
    std::string why_not_carried() const;
    // Takeover: the events are made anew, as never recorded, so waits and queries succeed.
    void save(protocol::StateWriter& out) const;
    CUresult restore(protocol::Reader& in);

    // What the last record of an event is behind: Stream::pending_wait() of its stream.
    void recorded(CUevent event, const dispatch::WaitWord& wait);
    dispatch::WaitWord recorded_behind(CUevent event) const;

private:
    CUresult place(uint32_t index, uint32_t flags, EventPointer event, bool shared);
    void forget(CUevent event);  // caller holds mutex_

    const DriverApi& driver_;
    mutable std::mutex mutex_;
    std::vector<EventPointer> events_;
    std::vector<uint32_t> flags_;                             // by index, as events_
    std::unordered_map<CUevent, dispatch::WaitWord> behind_;  // of those that were recorded behind a wait
    std::atomic<bool> any_behind_{false};                     // some event ever was
    std::unordered_set<CUevent> shared_;
    std::atomic<bool> any_shared_{false};  // some event ever was
};

}  // namespace smt::runtime::server
