// What streams are made of and work with: the stream on which nothing waits, memory for control blocks, doors
// and words, sets of SMs, and the driver's priorities. Any thread, with the context current.
#pragma once

#include <atomic>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/dispatch/control_block.h"
#include "runtime/dispatch/door_control.h"
#include "runtime/dispatch/graph_doors.h"
#include "runtime/dispatch/moves.h"
#include "runtime/dispatch/notes.h"
#include "runtime/dispatch/settings.h"
#include "runtime/dispatch/sm_sets.h"
#include "runtime/dispatch/stream_words.h"

namespace smt::runtime::dispatch {

class Supplies {
public:
    Supplies(device::Device& device, Notes& notes, const Settings& settings);
    ~Supplies();  // precondition: no stream is left
    Supplies(const Supplies&) = delete;
    Supplies& operator=(const Supplies&) = delete;

    CUstream control() const { return control_; }  // on which nothing ever waits
    ControlMemory& control_memory() { return control_memory_; }
    DoorMemory& door_memory() { return door_memory_; }
    GraphWords& graph_words() { return graph_words_; }
    Moves& moves() { return moves_; }
    StreamWordsPool& words() { return words_; }
    SmSets& sm_sets() { return sm_sets_; }
    // The set for a policy's number of SMs. Null if there is none, which the journal says once.
    SmSetPointer places_for(int multiprocessors);
    // The same if it has been made. Does not wait.
    SmSetPointer places_made(int multiprocessors) {
        return sm_sets_.first_made(static_cast<unsigned>(multiprocessors));
    }
    // The driver's priority of a stream, from the one that the program asked for. Tenants' priorities come
    // first, under every policy: the driver's range is divided among tenants above, at and below normal
    // priority.
    int stream_priority(const Tenant& tenant, int asked) const;
    int within_range(int priority) const;  // clamped, as the driver does

private:
    Notes& notes_;
    const DriverApi& driver_;
    CUstream control_ = nullptr;
    ControlMemory control_memory_;
    DoorMemory door_memory_;
    GraphWords graph_words_{door_memory_};
    Moves moves_{driver_};
    StreamWordsPool words_;
    SmSets sm_sets_;
    std::atomic<bool> unplaced_{false};  // the journal says that there are no sets
    int least_ = 0, greatest_ = 0;       // the driver's stream priorities; lower numbers are more urgent
};

// The SMs that the tenant may use, of the device's `multiprocessors`.
std::vector<uint32_t> places_of(const Tenant& tenant, int multiprocessors);

}  // namespace smt::runtime::dispatch
