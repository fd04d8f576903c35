// One thread block in execution. The machine asks which instruction a warp would execute next, to
// know its unit and registers, and has it executed; the CTA knows nothing of time.
//
// Warps run in any order the machine likes, one instruction a step. A warp whose threads have
// diverged runs one group of them at a time; groups meet again at the immediate post-dominator of
// the branch. A fault ends the CTA: no warp is runnable any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/simulated/exec/kernel.h"
#include "runtime/device/simulated/exec/memory.h"

namespace smt::runtime::device::simulated {

enum class Unit : uint8_t {
    kInteger,
    kFloat,
    kDouble,
    kSpecial,
    kConvert,
    kBranch,
    kMemory,
    kBarrier,
    kNone
};
enum class Space : uint8_t { kNone, kGlobal, kLocal, kShared, kConstant, kParameter };

// Of the instruction that a warp will execute next; lives as long as the Kernel.
struct StaticFacts {
    Unit unit = Unit::kNone;
    std::span<const uint16_t> reads;  // register slots, for a scoreboard
    std::span<const uint16_t> writes;
};

// What executing it did.
struct Step {
    enum class Result : uint8_t {
        kRan,
        kBarrier,  // and now every thread of the warp waits
        kExited,   // and it was the warp's last
        kFault,
    };
    Result result = Result::kRan;
    Unit unit = Unit::kNone;
    Space space = Space::kNone;
    bool store = false;
    bool atomic = false;
    uint8_t lanes = 0;  // active ones: thread-instructions
    uint16_t transactions =
        0;  // kGlobal, kLocal: distinct 32-byte sectors; kShared: passes over the banks (1: no conflict)
    uint32_t nanoseconds = 0;  // nanosleep: how long the warp asks not to run
};

// What a CTA asks its surroundings.
struct Environment {
    virtual ~Environment() = default;
    virtual uint64_t cycles() = 0;
    virtual uint64_t nanoseconds() = 0;
    virtual uint32_t sm() = 0;
    virtual uint32_t sms() = 0;
    virtual void print(std::string_view text) = 0;  // device printf, formatted
    virtual uint64_t heap_allocate(
        uint64_t bytes) = 0;                       // device malloc; 0: no memory. Live in Memory on return
    virtual bool heap_free(uint64_t address) = 0;  // false: not an allocation of the heap
};

struct Launch {
    const DecodedKernel* kernel = nullptr;
    Dim3 grid;
    Dim3 block;
    uint32_t dynamic_shared = 0;
    std::vector<std::byte> parameters;  // kernel->parameter_bytes
    uint64_t id = 0;                    // %gridid
    uint64_t grid_workspace = 0;        // cooperative launches: address of the grid barrier's words, else 0
};

struct Fault {
    enum class Kind : uint8_t {
        kOutOfBounds,
        kMisaligned,
        kFreed,
        kStackOverflow,
        kBadCall,  // an address that is no function
        kBadBranch,
        kBadBarrier,
        kAssert,
        kTrap,
        kHeap,  // free() of what malloc() did not give
    };
    Kind kind = Kind::kTrap;
    std::string kernel;
    Dim3 cta;
    Dim3 thread;
    int line = 0;  // of the PTX text
    Space space = Space::kNone;
    uint64_t address = 0;
    uint32_t bytes = 0;
    int result = 0;       // the CUresult it becomes
    std::string message;  // all of it in one sentence
};

class Cta {
public:
    // The launch outlives the CTA. Grid and block are the launch's, checked by the caller.
    Cta(const Launch& launch, Dim3 index, Memory& memory, Environment& environment);
    ~Cta();
    Cta(const Cta&) = delete;
    Cta& operator=(const Cta&) = delete;

    int warps() const;
    uint32_t runnable() const;                // a bit for each warp whose next() is not null
    const StaticFacts* next(int warp) const;  // null: the warp has exited or waits at a barrier
    Step step(int warp);                      // executes it; only when next() is not null
    bool finished() const;                    // all warps have exited
    const Fault* fault() const;               // null: none
    bool deadlocked() const;                  // nothing is runnable, and it is neither finished nor faulty
    int line(int warp) const;                 // PTX line of what it would execute next, for messages

    struct State;  // warp.h

private:
    std::unique_ptr<State> state_;
};

}  // namespace smt::runtime::device::simulated
