// The persistent loop: how a managed kernel takes its thread blocks, and how it is told to stop.
//
// A managed kernel is launched as a number of workers (CTAs). Each takes a ticket, runs the block of that
// ticket, and takes the next, so blocks can be handed out, held back and placed between any two blocks:
//
//     __global__ void smt_k(float* a, int n, smt::Launch launch) {
//         smt::Worker worker(launch);
//         while (worker.next()) body(worker.block(), worker.grid(), a, n);
//     }
//
// A ticket is one atomicAdd on `Control::word`. Its low half counts tickets, its high half is 0 until the
// host writes it; so one access both takes a block and sees that something changed, and nobody polls.
// All accesses to the word are ordered: tickets taken before the host's write are run, those after it are
// refused and counted. After a stop, once every worker has left, the tickets run are exactly those below
//
//     (low half of word) - (refused)
//
// and the kernel goes on from there in a later launch, whose tickets start elsewhere.
//
// Two ways to use a control block:
//
//   flow   Many launches in a row share it, in the order of their stream. Each takes an exact number of
//          tickets: `total` for its blocks and one more for each worker that finds none left (kSingle: one
//          for each worker, no more). So the host knows where the next launch starts without asking.
//          Only the stop is understood.
//   held   One launch at a time, with kHeld, and more workers of the same launch later (growth). Workers
//          count themselves per SM and keep to `quota[sm]`. When the host changes the table and then the
//          high half (to a value never used before), each worker looks at its next ticket: one whose rank
//          is no longer below the quota runs the block that it holds, and leaves.
//
// Shared memory: one variable of 112 bytes, and 24 more with SharedWorker. Registers across the body: one. Barriers: one for each block
// (Worker), or two where functions other than the body read the block's index (SharedWorker).
//
// In a kernel where some threads return early while others go on to a barrier or a warp-wide operation,
// the hardware no longer counts the threads that returned. Such a kernel says `smt::depart()` in place of
// each return, which ends the thread, and must be launched with kSingle: a worker runs one block and ends.
//
// One source for the host and the device: compiled by nvcc, NVRTC and g++; needs no header.
#pragma once

namespace smt {

inline constexpr unsigned kMaxSms = 256;
inline constexpr unsigned kNoQuota = 0xff;   // in a quota table: as many as fit

// What the high half of Control::word asks for, while it is not zero, is in Control::mode.
enum Mode : unsigned { kGo = 0, kStop = 1, kQuotas = 2 };

enum LaunchFlags : unsigned {
    kHeld = 1,     // keep to the quotas
    kSingle = 2,   // a worker runs at most one block
    kMapped = 4,   // each worker writes down where it ran
};

// What one worker did, written as it leaves.
struct Mapping {
    unsigned launch;             // Launch::id
    unsigned sm;
    unsigned blocks;
    unsigned first;              // the first block it ran, counted from Launch::first
    unsigned long long began;    // ns, the GPU's global timer
    unsigned long long ended;
};

// In device memory, zeroed before its first use. The host writes `word` and `mode` from a stream
// (memory operations), `mode` before `word`.
struct Control {
    unsigned long long word;     // low half: tickets taken; high half: 0, or the number of a change
    unsigned refused;            // tickets taken after a stop
    unsigned mode;               // Mode
    unsigned mapped;             // entries written, ever
    unsigned map_mask;           // entries in the ring, less one
    Mapping* map;
    unsigned resident[kMaxSms];  // workers on each SM (held)
    unsigned char quota[kMaxSms];
};

// A managed kernel's last parameter.
struct Launch {
    Control* control;
    unsigned long long first;    // linear index of the block of ticket `start`
    unsigned start;
    unsigned total;              // blocks, from `first` on
    unsigned grid[3];            // the program's grid
    unsigned flags;              // LaunchFlags
    unsigned id;                 // for the mapping
    unsigned unused;
};

static_assert(sizeof(Mapping) == 32 && sizeof(Launch) == 48 && sizeof(Control) == 32 + 5 * kMaxSms,
              "host and device must agree");

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)

namespace device {

// One per CTA. `block` is double: a fast warp may ask for the next block while a slow one reads this one's.
struct Shared {
    uint3 block[2];
    bool more[2];                // whether the slot holds a block
    // The rest is the leader's, and only kept with kHeld or kMapped.
    bool joined, last;           // counted in resident; must leave after the block that it holds
    unsigned sm, rank, seen, blocks, first;
    unsigned departed;           // threads, with kSingle
    unsigned long long began;
    Launch launch;               // for the threads that depart
};

__device__ __forceinline__ Shared& shared() {
    __shared__ Shared state;
    return state;
}

__device__ __forceinline__ unsigned sm_id() {
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    return sm;
}

__device__ __forceinline__ unsigned long long now() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

__device__ __forceinline__ bool leader() { return (threadIdx.x | threadIdx.y | threadIdx.z) == 0; }
__device__ __forceinline__ unsigned high(unsigned long long word) { return static_cast<unsigned>(word >> 32); }

template <typename T>
__device__ __forceinline__ T fresh(const T& value) {
    return *const_cast<const volatile T*>(&value);
}

__device__ __forceinline__ bool accounts(const Launch& launch) { return launch.flags & (kHeld | kMapped); }

// The leader, before its first ticket, where the worker is accounted for. False: there is no place here.
__device__ __noinline__ bool join() {
    Shared& mine = shared();
    mine.sm = sm_id();
    mine.seen = mine.blocks = mine.departed = 0;
    mine.joined = mine.last = false;
    mine.began = now();
    if (!(mine.launch.flags & kHeld)) return true;
    Control& control = *mine.launch.control;
    mine.seen = high(fresh(control.word));   // before the quota: a change after it is seen at the next ticket
    __threadfence();
    mine.rank = atomicAdd(&control.resident[mine.sm], 1u);
    if (fresh(control.mode) != kStop && mine.rank < fresh(control.quota[mine.sm])) return mine.joined = true;
    atomicSub(&control.resident[mine.sm], 1u);
    return false;
}

// The word has changed under this worker. May it run the ticket that it took?
__device__ __noinline__ bool obey(Control& control, unsigned flags, unsigned number) {
    Shared& mine = shared();
    __threadfence();
    if (!(flags & kHeld) || fresh(control.mode) == kStop) {
        atomicAdd(&control.refused, 1u);
        return false;
    }
    mine.seen = number;
    mine.last = mine.rank >= fresh(control.quota[mine.sm]);
    return true;
}

// One thread, when every thread has left the last block.
__device__ __noinline__ void leave() {
    Shared& mine = shared();
    Control& control = *mine.launch.control;
    if ((mine.launch.flags & kMapped) && mine.blocks) {
        Mapping& entry = control.map[atomicAdd(&control.mapped, 1u) & control.map_mask];
        entry = {mine.launch.id, mine.sm, mine.blocks, mine.first, mine.began, now()};
    }
    if (mine.joined) atomicSub(&control.resident[mine.sm], 1u);
}

// Row after row, as the hardware does.
__device__ __forceinline__ uint3 index_of(const Launch& launch, unsigned ticket) {
    const unsigned long long linear = launch.first + ticket;
    const unsigned width = launch.grid[0], height = launch.grid[1];
    if (linear < width) return {static_cast<unsigned>(linear), 0, 0};
    if (high(linear)) {
        const unsigned long long row = linear / width;
        return {static_cast<unsigned>(linear % width), static_cast<unsigned>(row % height),
                static_cast<unsigned>(row / height)};
    }
    const unsigned low = static_cast<unsigned>(linear), row = low / width;
    if (row < height) return {low - row * width, row, 0};
    return {low - row * width, row % height, row / height};
}

// The leader takes the next block into a slot.
__device__ __forceinline__ bool take(const Launch& launch, unsigned slot, bool first_time) {
    Shared& mine = shared();
    if (accounts(launch)) {
        if (first_time) mine.launch = launch;
        if (first_time ? !join() : mine.last) return false;
    }
    const unsigned long long old = atomicAdd(&launch.control->word, 1ull);
    const unsigned ticket = static_cast<unsigned>(old) - launch.start;
    const unsigned known = (launch.flags & kHeld) ? mine.seen : 0u;
    if (high(old) != known && !obey(*launch.control, launch.flags, high(old))) return false;
    if (ticket >= launch.total) return false;
    if (accounts(launch) && mine.blocks++ == 0) mine.first = ticket;
    mine.block[slot] = index_of(launch, ticket);
    return true;
}

__device__ __noinline__ void count_departed() {
    __threadfence_block();
    if (atomicAdd(&shared().departed, 1u) + 1 == blockDim.x * blockDim.y * blockDim.z) leave();
}

static_assert(sizeof(Shared) == 112, "the rewriter leaves this much room");

// What block() and grid() read.
struct Index {
    uint3 block;
    uint3 grid;
};
__device__ __forceinline__ Index& index() {
    __shared__ Index current;
    return current;
}

}  // namespace device

// Ends this thread, as a return from the program's kernel did. Only in a kernel launched with kSingle.
__device__ __forceinline__ void depart(const Launch& launch) {
    if (device::accounts(launch)) device::count_departed();
    asm volatile("exit;");
    __builtin_unreachable();
}

// The index of the block and the size of the grid for functions that are not handed them; needs
// SharedWorker, or Original in a kernel that the hardware dispatches.
__device__ __forceinline__ uint3 block() { return device::index().block; }
__device__ __forceinline__ dim3 grid() {
    const uint3 size = device::index().grid;
    return dim3(size.x, size.y, size.z);
}

// For a body that starts asynchronous copies to shared memory: the hardware ends those with the block, a worker
// must not take the next one while they run.
__device__ __forceinline__ void await_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// A CTA that takes blocks one after the other. All threads call next() together.
class Worker {
public:
    __device__ __forceinline__ explicit Worker(const Launch& launch) : launch_(launch) {}

    __device__ __forceinline__ bool next() {
        const unsigned slot = turn_ & 1;
        if (turn_ && (launch_.flags & kSingle)) depart(launch_);
        if (device::leader()) device::shared().more[slot] = device::take(launch_, slot, turn_ == 0);
        __syncthreads();   // all have left the last block, and see this one
        turn_ = 2 - (slot ^ 1);
        if (device::shared().more[slot]) {
            block_ = device::shared().block[slot];
            return true;
        }
        if (device::leader() && device::accounts(launch_)) device::leave();
        return false;
    }

    __device__ __forceinline__ uint3 block() const { return block_; }
    __device__ __forceinline__ dim3 grid() const { return dim3(launch_.grid[0], launch_.grid[1], launch_.grid[2]); }

protected:
    const Launch& launch_;
    uint3 block_;
    unsigned turn_ = 0;   // 0, then 1, 2, 1, 2 ...; its last bit is the slot
};

// The same, for kernels with functions that call block() or grid().
class SharedWorker : public Worker {
public:
    __device__ __forceinline__ explicit SharedWorker(const Launch& launch) : Worker(launch) {}

    __device__ __forceinline__ bool next() {
        if (!Worker::next()) return false;
        if (device::leader()) device::index() = {block_, {launch_.grid[0], launch_.grid[1], launch_.grid[2]}};
        __syncthreads();
        return true;
    }
};

// The program's own form of a kernel with such functions: one block, dispatched by the hardware.
class Original {
public:
    __device__ __forceinline__ Original() {
        if (device::leader()) device::index() = {blockIdx, {gridDim.x, gridDim.y, gridDim.z}};
        __syncthreads();
    }
};

#endif
}  // namespace smt
