// Work: a launch of a kernel that has a managed form, from the program's call until its last block has run.
// Says what to launch and how far it is.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rewriter/device/door.h"
#include "rewriter/device/reuse.h"
#include "runtime/dispatch/gpu_time.h"
#include "runtime/dispatch/saturating_ctas.h"
#include "runtime/journal/journal.h"
#include "runtime/profiles/known_kernel.h"

namespace smt::runtime::dispatch {

// How launches of a kernel are given to the driver (launch_form.h).
enum class Form : uint8_t {
    kPersistent,  // its workers run block after block
    kDoor,   // with the door in its machine code (rewriter/device/door.h), which is asked before each CTA
    kGraph,  // a graph, by the doors of the kernels in it (graph_doors.h)
    kWhole,  // as it is: unmanaged work
};

// What can be done to a launch.
struct Abilities {
    bool stop = false;   // between two blocks, and be resumed
    bool range = false;  // a number of its blocks can run by itself
    bool quota = false;  // it keeps to a number of CTAs on each SM
    bool place = false;  // CTAs can be moved between SMs while it runs
};
constexpr Abilities abilities_of(Form form) {
    switch (form) {
        case Form::kPersistent:
            return {.stop = true, .range = true, .quota = true, .place = true};
        case Form::kDoor:
            return {.stop = true, .range = true};
        case Form::kGraph:
            return {.stop = true};
        case Form::kWhole:
            break;
    }
    return {};
}

// The managed form of a kernel, or the kernel itself if it has a door. Owned by the image that holds it,
// which is not unloaded before the work of its session is settled. Of a graph: owned by its GraphDoors.
struct ManagedFunction {
    CUfunction function = nullptr;  // null: none
    Form form = Form::kPersistent;
    uint32_t launch_offset = 0;        // of smt::Launch, or smt::DoorLaunch, in the parameter buffer
    bool waits = false;                // a block may wait for another one
    std::atomic<uint32_t> cluster{1};  // of kDoor: CTAs of a cluster in all its launches
    Reuse reuse = Reuse::kAlways;      // whether a worker may run further blocks
    bool checked = false;              // a stop may end its blocks before their end (smt::kInsideBit)
    uint32_t registers = 0;            // per thread; 0: not known
    uint32_t static_shared = 0;        // bytes
    std::shared_ptr<profiles::KnownKernel> known;  // what is learnt about the kernel; null: not kept

    Abilities abilities() const { return function ? abilities_of(form) : Abilities{}; }
    bool persistent() const { return function && form == Form::kPersistent; }
    bool has_door() const { return function && form == Form::kDoor; }

    // CTAs that fit on an SM; a cache of the last shape asked for. 0: not cached.
    uint32_t fitting(uint32_t threads, uint32_t shared_bytes) const {
        const uint64_t known = fitting_.load(std::memory_order_relaxed);
        return known >> 16 == shape(threads, shared_bytes) ? static_cast<uint32_t>(known & 0xffff) : 0;
    }
    void set_fitting(uint32_t threads, uint32_t shared_bytes, uint32_t ctas) {
        fitting_.store(shape(threads, shared_bytes) << 16 | ctas, std::memory_order_relaxed);
    }

    // Predicted time of a whole launch: from launches that ran alone, otherwise from the block time of the
    // first large launch, which may have had company (measured: off by a fifth then). `together`: blocks that
    // the device runs at once.
    std::optional<std::chrono::nanoseconds> time_alone(const profiles::Shape& shape,
                                                       uint64_t together) const {
        if (const auto ns = known ? known->predict(shape) : std::nullopt)
            return std::chrono::nanoseconds(static_cast<int64_t>(*ns));
        const uint64_t block = block_ns.load(std::memory_order_relaxed);
        if (block == 0 || together == 0) return std::nullopt;
        return std::chrono::nanoseconds(block * ((shape.blocks + together - 1) / together));
    }

    // Time in ns of a block beside as many as run at once (`together` on the whole device). Before a launch
    // of this program was measured: from launches of any program that ran alone, perhaps with other input;
    // the first measurement corrects it. 0: not known.
    uint64_t expected_block_ns(const profiles::Shape& shape, uint64_t together) const {
        if (const uint64_t told = block_ns.load(std::memory_order_relaxed)) return told;
        const auto ns = known && together ? known->predict(shape) : std::nullopt;
        return ns ? std::max<uint64_t>(
                        1, static_cast<uint64_t>(*ns) / ((shape.blocks + together - 1) / together))
                  : 0;
    }

    void forget() {
        fitting_.store(0), block_ns.store(0), stop_ns.store(0), waited_ns.store(0), alone.forget(),
            queued.forget(), enough.forget();
    }

    // ns of a block when its kernel had the device to itself. Determines the blocks per ticket. 0: not known.
    std::atomic<uint64_t> block_ns{0};
    // Recent ns from the decision to stop the kernel until its last worker had left. 0: never stopped.
    std::atomic<uint64_t> stop_ns{0};
    // The same of stops that waited for the end of its blocks. 0: there was none.
    std::atomic<uint64_t> waited_ns{0};
    LaunchTimes alone;      // without other tenants' work on the device
    LaunchTimes queued;     // one behind the other, perhaps beside other tenants' (launch_ahead.h)
    SaturatingCtas enough;  // used where the kernel is preemptible

private:
    static uint64_t shape(uint32_t threads, uint32_t shared_bytes) {
        return uint64_t{threads} << 32 | shared_bytes;
    }
    std::atomic<uint64_t> fitting_{0};
};

// The door of a kernel of machine code (rewriter/device/door.h): its launches can be stopped.
struct DoorParameter {
    bool present = false;
    uint32_t offset = 0;  // of smt::DoorLaunch in the parameter buffer
    bool waits = false;   // a CTA may wait for another one
};

// The longest of the tickets that a stop waited for, by the GPU's timer. `end_ns` 0: not known.
struct LongestTicket {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    uint32_t blocks = 0;  // per ticket
};

// Most blocks of one smt::Launch: tickets and counts are 32 bits wide.
inline constexpr uint64_t kMostBlocks = 1u << 30;

// The first launch of a stream, which runs as far as is known.
struct Running {
    uint64_t launch = 0;           // differs from launch to launch of the stream
    uint64_t progress = 0;         // changes with each block that is seen to be taken
    uint32_t name = 0;             // of its kernel, in the journal
    schedule::TimePoint issued{};  // to the driver
    bool seen = false;             // that it has begun
    bool stops = false;            // it can be stopped between two blocks
};

class GraphDoors;

// A launch, as the program asked for it.
struct KernelCall {
    ManagedFunction* function = nullptr;
    std::shared_ptr<GraphDoors> graph;  // of kGraph
    journal::Entry entry;               // for the journal
    uint32_t grid[3] = {1, 1, 1};
    uint32_t block[3] = {1, 1, 1};
    uint32_t shared_bytes = 0;                  // dynamic
    std::vector<char> parameters;               // the program's
    std::vector<CUlaunchAttribute> attributes;  // of kDoor
    uint32_t unit = 1;                          // of kDoor: blocks of a cluster
    bool repeats = false;                       // of a checked function: blocks of it may be begun anew
    uint64_t key = 0;                           // what tells it from others of its shape; 0: nothing

    uint32_t threads() const { return block[0] * block[1] * block[2]; }
};

// Tickets of a launch under way: [first, first + count) of its stream's count, for `chunk` blocks each.
struct Tickets {
    uint32_t first = 0;
    uint32_t count = 0;
    uint32_t chunk = 1;

    // So many of them are below `all`, the stream's count.
    uint32_t below(uint32_t all) const { return std::min(all > first ? all - first : 0, count); }
};

struct Work : KernelCall {
    uint64_t number = 0;  // index among the stream's launches
    uint32_t fits = 0;    // CTAs on an SM
    uint64_t total = 0;   // blocks; of a graph, of all its kernels
    uint64_t done = 0;    // of those, in order
    // Of device time, as known when the driver got it: of the launch, and until a stop is rid of it
    // (launch_ahead.h).
    std::chrono::nanoseconds cost{}, drain{};

    // Of its launch under way: the tickets cover blocks [done, done + covered).
    Tickets tickets;
    uint32_t covered = 0;
    uint32_t ctas = 0;    // workers per SM outside of quota mode; 0: being tried
    uint32_t launch = 0;  // its number among the stream's driver launches
    uint64_t marker = 0;  // value of StreamWords::reached at which the launch is over
    uint64_t before = 0;  // likewise: nothing of its stream is in front of it; 0: not marked
    std::chrono::steady_clock::time_point issued{};  // by the dispatcher's clock
    uint64_t run = 0;         // of kDoor and kGraph: the place or number of the run under way
    uint32_t early = 0;       // of kDoor: its DoorStep::early
    uint32_t begun_anew = 0;  // how often in a row a stop ended its blocks, and none was over
    bool endures = false;     // of kDoor: its launch under way cannot be stopped, and runs to its end

    profiles::Shape shape() const { return {{block[0], block[1], block[2]}, total}; }
    uint64_t left() const { return total - done; }
    GpuTime::Alike alike() const {
        return {&function->alone.last(),
                key,
                {.blocks = static_cast<double>(total),
                 .block_threads = static_cast<double>(threads()),
                 .shared_bytes = static_cast<double>(shared_bytes)}};
    }
    // Predicted time of the whole launch, alone: the last one's with its key, else by regression over others
    // (last_durations.h), else as ManagedFunction says.
    std::optional<std::chrono::nanoseconds> time_alone(uint64_t together) const {
        if (const auto ns = function->alone.last().predict(key, alike().launch))
            return std::chrono::nanoseconds(static_cast<int64_t>(*ns));
        return function->time_alone(shape(), together);
    }
    LaunchTime& alone() const { return times(alone_, function->alone); }
    LaunchTime& queued() const { return times(queued_, function->queued); }
    // Splits off the blocks that the launch under way does not cover. Empty: it covers all.
    std::optional<Work> cut() {
        if (covered == left()) return std::nullopt;
        std::optional<Work> rest(*this);
        total = rest->done = done + covered;
        return rest;
    }
    // Accounts for an ended run of kDoor. `frontier`: its word.
    void settle_door(uint32_t frontier) {
        const auto from = static_cast<uint32_t>(done / unit);
        const uint64_t reached = uint64_t{smt::door_reached(frontier, from, early)} * unit;
        const bool stopped = frontier & smt::kFinalFrontier;
        done = stopped ? std::clamp(reached, done, done + covered) : done + covered;
        covered = 0;
    }
    // Blocks of its launch under way that are over. `run`: tickets run by the stream's count.
    uint64_t over_at(uint32_t run) const {
        return std::min<uint64_t>(uint64_t{tickets.below(run)} * tickets.chunk, covered);
    }
    // Accounts for an ended launch.
    void settle(uint32_t run) {
        done += over_at(run);
        tickets.count = covered = 0;
    }

private:
    LaunchTime& times(LaunchTime*& known, LaunchTimes& all) const {
        if (!known) known = &all.of(total, threads());
        return *known;
    }
    mutable LaunchTime *alone_ = nullptr, *queued_ = nullptr;  // of the function and the whole grid
};

}  // namespace smt::runtime::dispatch
