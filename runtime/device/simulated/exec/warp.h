// A CTA in execution: its warps, the groups their threads form, frames and barriers.
//
// A group is threads of a warp at one place. Where a branch divides a group, it becomes the parent of
// a group for each way and waits at the place where the ways meet; a child that gets there is done,
// and when the last one is, the parent goes on with all that have not exited:
//
//       A (all)          @p bra: {0-7} to T, {8-31} go on, ways meet at M
//       |- T (0-7)       runs to M
//       `- F (8-31)      runs to M; then A goes on at M
//
// A branch whose ways meet where the group itself ends (a loop's exit) needs no new parent: the ways
// become siblings. A group that spins for long lets its siblings run, and those of its threads that
// wait at the meeting place go on without it, so a lock held by another thread of the warp is freed.
// The same happens when all groups wait at barriers.
#pragma once

#include <bit>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "runtime/device/simulated/exec/execution.h"
#include "runtime/device/simulated/exec/flow.h"
#include "runtime/device/simulated/exec/local_memory.h"
#include "runtime/device/simulated/exec/specials.h"

namespace smt::runtime::device::simulated {

struct Frame {
    const Code* code = nullptr;
    std::byte* registers = nullptr;
    uint32_t variables = 0;  // where they begin in local memory
    uint32_t top = 0;        // where they and what alloca gave end
    uint32_t users = 0;      // groups that are in it
    Frame* caller = nullptr;
    const Call* call = nullptr;
    uint32_t return_to = 0;
    uint32_t saved_meet = kNowhere;
    int size_class = 0;
};

struct Group {
    enum class State : uint8_t { kRunnable, kParent, kAtBarrier, kAtSync };
    State state = State::kRunnable;
    const Code* code = nullptr;
    Frame* frame = nullptr;
    uint32_t pc = 0;
    uint32_t mask = 0;         // may hold threads that have exited while it is a parent
    uint32_t meet = kNowhere;  // in the code of its frame: where it ends
    Group* parent = nullptr;
    uint32_t children = 0;
    const Instruction* waits_at = nullptr;  // kAtBarrier, kAtSync
    uint32_t waiting = 0;                   // threads that execute it
    uint32_t members = 0;                   // kAtSync: the threads to come
    uint32_t barrier = 0;
};

struct Warp {
    uint32_t number = 0;
    uint32_t present = 0;  // threads that the block has here
    uint32_t exited = 0;
    uint32_t turns = 0;          // backward branches since another group ran
    bool spins = false;          // its threads have waited for each other in a loop
    Group* current = nullptr;    // null: none can run
    std::vector<Group*> leaves;  // groups that are no parents
    LocalMemory local;
    alignas(64) std::array<uint32_t, static_cast<size_t>(WarpValue::kCount) * kLanes> values{};

    uint32_t alive() const { return present & ~exited; }
};

struct Barrier {
    std::vector<uint32_t> arrived;  // threads, by warp; empty before the first use
    uint32_t expected = 0;          // threads; 0: all of the CTA
    uint32_t votes = 0;             // of bar.red: true predicates
    uint32_t voters = 0;
    bool used = false;
};

// An instruction that several threads of a warp execute together (shfl, vote, ...).
struct Exchange {
    uint32_t lanes = 0;  // that take part
    uint32_t predicates = 0;
    uint32_t results = 0;  // predicates, of each lane
    std::array<uint64_t, kLanes> a{}, d{};
    std::array<uint32_t, kLanes> b{}, c{};
};
struct Collective {
    void (*gather)(Execution&, const Instruction&, Exchange&);
    void (*compute)(const Instruction&, Exchange&);
    void (*scatter)(Execution&, const Instruction&, const Exchange&);
};

struct Cta::State {
    State(const Launch& launch, Dim3 index, Memory& memory, Environment& environment);

    Step step(int warp);
    void bind(Execution& x, Warp& warp, Group& group) const;  // operands of that group

    // Groups (groups.cpp)
    struct Way {
        uint32_t mask;
        uint32_t pc;
    };
    void branch(Execution& x, uint32_t taken, uint32_t target, uint32_t meet);
    void diverge(Warp& warp, Group& group, std::span<const Way> ways, uint32_t meet);
    void exit_threads(Warp& warp, Group& group, uint32_t lanes);
    Group* child_of(Warp& warp, Group& parent, uint32_t mask, uint32_t pc, uint32_t meet);
    void pick(Warp& warp);
    void settle(Warp& warp, Group* group);  // ends groups that have arrived at their meeting place
    void yield(Warp& warp);
    bool unstick(Warp& warp);

    // Frames (frames.cpp)
    bool push_frame(Execution& x, Warp& warp, Group& group, const Code& code, const Call& call);
    void pop_frame(Execution& x, Warp& warp, Group& group);
    void release(Frame* frame);  // one user less; frees it and its callers when it was the last
    Frame* new_frame(const Code& code);

    // Barriers and collectives (barriers.cpp)
    void barrier_arrive(Execution& x, const Instruction& in, uint32_t id, uint32_t threads, bool wait,
                        uint32_t votes);
    void check_barriers();
    void run_collective(Execution& x, const Instruction& in, const Collective& collective, uint32_t members);
    void check_collectives(Warp& warp);

    // Memory (access.cpp): where `bytes` at the address are; null after a fault.
    std::byte* global(Execution& x, int lane, uint64_t address, uint32_t bytes, Space space);
    std::byte* shared_at(Execution& x, int lane, uint64_t address, uint32_t bytes);
    std::byte* local_at(Execution& x, int lane, uint64_t address, uint32_t bytes);
    std::byte* parameter_at(Execution& x, int lane, uint64_t address, uint32_t bytes);
    std::byte* generic_at(Execution& x, int lane, uint64_t address, uint32_t bytes, Space* space = nullptr);
    const Memory::Range& range_of(uint64_t address);  // from the cache, or asked for

    void fail(Execution& x, Fault::Kind kind, int lane, Space space, uint64_t address, uint32_t bytes,
              const std::string& what);
    Dim3 thread_index(const Warp& warp, int lane) const;

    const Launch& launch;
    const Dim3 index;
    Memory& memory;
    Environment& environment;
    std::vector<std::byte> shared;  // with the system's in front
    uint32_t shared_begin = 0;      // what is in front of that is out of bounds
    std::vector<Warp> warps;
    std::array<Barrier, 16> barriers;
    std::optional<Fault> fault;
    uint32_t runnable = 0;
    uint32_t living = 0;  // warps that have not exited
    Execution x;
    alignas(64) std::array<uint32_t, static_cast<size_t>(CtaValue::kCount) * kLanes> values{};

private:
    void start_warp(Warp& warp, uint32_t number);
    void set_values();
    Group* new_group();
    void end_group(Warp& warp, Group* group);
    void leave_parent(Warp& warp, Group* parent);
    uint32_t arrived(const Warp& warp, const Group& parent) const;
    void dissolve(Warp& warp, Group& parent);
    void complete(Barrier& barrier, uint32_t id);
    bool is_complete(const Barrier& barrier) const;

    std::deque<Group> groups_;
    std::vector<Group*> idle_groups_;
    std::deque<Frame> frames_;
    std::vector<Frame*> idle_frames_;
    std::vector<std::unique_ptr<std::byte[]>> blocks_;
    std::array<std::vector<std::byte*>, 32> idle_blocks_;  // by size class
    std::array<Memory::Range, 4> ranges_{};
    uint32_t next_range_ = 0;
    uint64_t ranges_generation_ = 0;
};

}  // namespace smt::runtime::device::simulated
