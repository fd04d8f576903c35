// What the door of a stream's launches goes by (rewriter/device/door.h): stop words, a frontier for each
// run, and the writes that stop what is in flight.
//
// A copy or an event that is enqueued behind a run must not overtake what a stop leaves of that run. So each
// such operation ends a segment of runs, and each segment has a stop word of its own. A stop is of the last
// segment: earlier ones run to their end.
//
// Runs take frontiers one behind the other, from a ring that is cleared half by half, long after the runs
// that used it.
//
// Not thread-safe: the caller serializes.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <utility>

#include "driver_api.gen.h"
#include "rewriter/device/door.h"
#include "runtime/dispatch/memory_pool.h"

namespace smt::runtime::dispatch {

// Device memory for the words. Any thread.
class DoorMemory : public MemoryPool {
public:
    static constexpr uint64_t kFrontiers = 1u << 14;
    static constexpr uint64_t kStopWords = 64;
    static constexpr uint64_t kFrontiersAt = kStopWords * sizeof(uint32_t);
    static constexpr uint64_t kBytes = kFrontiersAt + kFrontiers * sizeof(uint32_t);

    explicit DoorMemory(const DriverApi& driver) : MemoryPool(driver, kBytes) {}
};

// At which pace units of a launch are admitted.
struct DoorPace {
    uint8_t shift = 0;   // DoorStep::shift
    uint16_t early = 1;  // DoorStep::early, where the run in front decides on them
    bool quick = false;  // early units are soon over: the run in front may decide on them
    bool exact = false;  // units take long: after a stop no group begins behind the early ones
    uint8_t last = 0;    // of a group's units: 0 where each is one by itself, else 1, 3, 7 ...
};
// Of a launch of so many blocks, `unit` of them a unit, `places` of which the device runs at once.
// `block_ps`: device time of a block; 0: not known. `waits`: a block may wait for another one. Where all run
// at once one step is all of the launch, so that all of it is admitted or nothing. Otherwise it waits for an
// earlier one, or for one of its group.
DoorPace door_pace(uint64_t blocks, uint32_t unit, uint64_t places, uint64_t block_ps, bool waits);
// As the kernel takes it. `decided`: the run in front decides on the early units. Otherwise there are few,
// since each of them moves the frontier.
smt::DoorStep door_step(const DoorPace& pace, bool decides, bool decided);

// Where frontiers are reported, in pinned memory.
inline constexpr uint32_t kMostDoorRuns = 64;                   // in flight
static_assert(DoorMemory::kStopWords >= kMostDoorRuns);         // each segment in flight has a run
inline constexpr uint32_t kMostDoorPlaces = 2 * kMostDoorRuns;  // of their frontiers: every other is left out
using Frontiers = std::array<uint32_t, kMostDoorPlaces>;

class DoorControl {
public:
    static constexpr uint32_t kMostRuns = 1u << 30;  // that have numbers; then they begin again

    explicit DoorControl(DoorMemory& memory, uint32_t most_runs = kMostRuns)
        : memory_(memory), driver_(memory.driver()), most_runs_(most_runs) {}
    ~DoorControl();  // precondition: no run is under way
    DoorControl(const DoorControl&) = delete;
    DoorControl& operator=(const DoorControl&) = delete;

    // Before a run is launched on `stream`: words are cleared in its order where that is due. At most
    // kMostDoorRuns are in flight. `control`: a stream on which nothing ever waits. `idle`: none is in
    // flight.
    // `*anew`: stop words are cleared, too, so a stop is lost that is written before `stream` gets there.
    CUresult prepare(CUstream stream, CUstream control, bool idle, bool* anew);
    // No further run before the stream is idle.
    bool used_up() const { return run_ >= most_runs_; }
    // The parameter of the next run, for units [from, to). `place`: of its frontier, counted from the
    // stream's begin. `asks` false: the run goes on whatever becomes of its frontier.
    smt::DoorLaunch next_run(uint32_t from, uint32_t to, const DoorPace& pace, bool asks, uint64_t* place);
    // The last run was not launched: the next one has its number and its frontier.
    void take_back() { --next_, --run_, decided_ = was_decided_; }
    // No stop is of the runs so far any more.
    void end_segment() { segment_ends_ = true; }
    // Stops all runs of the last segment. Does not wait.
    CUresult stop(CUstream control);
    // Enqueues a copy of the frontiers at places [first, last], kMostDoorPlaces at most, to pinned memory.
    // Does not wait.
    CUresult report(CUstream stream, uint64_t first, uint64_t last, uint32_t* pinned);

private:
    CUdeviceptr stop_word() const { return base_ + segment_ % DoorMemory::kStopWords * sizeof(uint32_t); }
    CUdeviceptr frontier(uint64_t place) const {
        return base_ + DoorMemory::kFrontiersAt + place % DoorMemory::kFrontiers * sizeof(uint32_t);
    }
    void leave_out() {  // a frontier that the last run decides on
        if (std::exchange(decided_, false)) ++next_;
    }

    DoorMemory& memory_;
    const DriverApi& driver_;
    const uint32_t most_runs_;
    CUdeviceptr base_ = 0;       // 0: none yet
    bool begun_ = false;         // the words were cleared
    uint64_t next_ = 0;          // place of the next frontier
    bool decided_ = false;       // the last run decides on it
    bool was_decided_ = false;   // likewise, of the last run's own
    uint64_t cleared_ = 0;       // frontiers at places below are 0, decided on, or used
    uint32_t run_ = 0;           // DoorLaunch::run of the last one
    uint64_t segment_ = 0;       // of the last run
    bool segment_ends_ = false;  // the next run begins another one
};

}  // namespace smt::runtime::dispatch
