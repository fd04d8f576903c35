// A session, as the simulated driver keeps it.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/device/device.h"

namespace smt::runtime::device::simulated {

using RealTime = std::chrono::steady_clock;

struct Tenant {
    // Guarded by the driver's one lock (hosted::world()); the heap by the engine's step lock, which kernels
    // run under.
    uint32_t number = 0;
    std::string name;
    bool leaving = false;
    int waiting = 0;             // threads in a call that waits for work
    int waiting_for_others = 0;  // of those: in the server
    bool let_go = false;         // these have been told to look again, and have not said yet what they found
    int callbacks = 0;           // host functions that have not returned
    RealTime::time_point active{};      // its last sign of life
    std::map<uint64_t, uint64_t> heap;  // device malloc: address -> bytes
    uint64_t heap_bytes = 0;

    std::atomic<int> fault{CUDA_SUCCESS};  // its kernel's; nothing of it runs any more

    // What is told to the session. It goes away under this lock.
    std::mutex guest_mutex;
    Guest* guest = nullptr;
    void print(std::string_view text) {
        std::lock_guard lock(guest_mutex);
        if (guest) guest->print(text);
    }
    void tell(const std::string& line) {
        std::lock_guard lock(guest_mutex);
        if (guest) guest->tell(line);
    }
    void lost(CUresult what, const std::string& text) {
        std::lock_guard lock(guest_mutex);
        if (guest) guest->lost(what, text);
    }
};

// Whose calls the thread makes, and from which lane.
struct Caller {
    std::shared_ptr<Tenant> tenant;  // null: the server's own
    uint32_t lane = kNoLane;
    uint64_t sequence = 0;
};
Caller& caller();  // of this thread

// Where a piece of work stands among others of the same virtual time: never in the order of real time.
struct Turn {
    std::shared_ptr<Tenant> tenant;
    uint32_t lane = kNoLane;
    uint64_t sequence = 0;
    uint64_t period =
        0;  // Engine::begin_load(): nothing of one begins before all of the earlier ones is over

    bool operator<(const Turn& other) const {
        const auto key = [](const Turn& turn) {
            return std::tuple(turn.tenant ? std::string_view(turn.tenant->name) : std::string_view(),
                              turn.tenant ? turn.tenant->number : 0, turn.lane, turn.sequence);
        };
        return key(*this) < key(other);
    }
};

}  // namespace smt::runtime::device::simulated
