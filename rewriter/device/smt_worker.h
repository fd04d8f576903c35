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
// A ticket stands for `chunk` blocks in a row: one, unless blocks are so short that taking them costs.
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
//          tickets: those for its blocks and one more for each worker that finds none left (kSingle: one
//          for each worker, no more). So the host knows where the next launch starts without asking.
//          Only the stop is understood.
//   held   One launch at a time, with kHeld, and more workers of the same launch later (growth). Workers
//          count themselves per SM and keep to `quota[sm]`. When the host changes the table and then the
//          high half (to a value never used before), each worker looks at its next ticket: one whose rank
//          is no longer below the quota runs the block that it holds, and leaves. With kLooks it looks before
//          it takes the ticket, too, and leaves at once: what that costs is little where blocks are long.
//
// A launch of which all blocks fit the GPU at once may be `placed`: worker i runs block i, as the hardware
// would. Tickets are drawn in the order in which workers happen to begin, so neighbours would come to any
// multiprocessor, and where blocks take differently long one gets all the long ones (up to a third was lost).
// Since tickets no longer say which blocks have run, a stop takes all of such a launch or none: that is for
// the worker to say that draws the first ticket. When it is too late they have all begun anyhow.
//
// Shared memory: one variable of 128 bytes, and 24 more with SharedWorker. Registers across the body: one (two
// with FreeWorker; as many as it likes with WarpWorker, which has no shared memory). Barriers: one for each block (Worker), one for each ticket where nothing is shared within a
// block (FreeWorker), two for each block where functions other than the body read the block's index (SharedWorker).
//
// In a kernel where some threads return early while others go on to a barrier or a warp-wide operation,
// the hardware no longer counts the threads that returned. Such a kernel has a SingleWorker and says
// `smt::depart()` in place of each return, which ends the thread; it must be launched with kSingle. That is
// another class, and everything is inlined, for what is left decides how good the body's code is: with a call
// anywhere, or an exit that some threads might take, ptxas no longer knows that a block's index is the same in
// all threads, and hands out a third more registers.
//
// One source for the host and the device: compiled by nvcc, NVRTC and g++; needs no header.
#pragma once

namespace smt {

inline constexpr unsigned kMaxSms = 256;
inline constexpr unsigned kNoQuota = 0xff;   // in a quota table: as many as fit

// The high half of Control::word is 0, or the number of the last change. A stop says so itself: a worker
// that sees an earlier change late must not take it for the stop, or it would refuse a ticket of before.
inline constexpr unsigned kStopBit = 1u << 31;

enum LaunchFlags : unsigned {
    kHeld = 1,     // keep to the quotas
    kSingle = 2,   // a worker takes one ticket
    kMapped = 4,   // each worker writes down where it ran
    kPlaced = 8,   // with kSingle, not with kHeld: a worker for each block, and runs that of its own index
    kLooks = 16,   // with kHeld: a worker looks whether it has lost its place before it takes a ticket
};

// What one worker did, written as it leaves.
struct Mapping {
    unsigned launch;             // Launch::id
    unsigned sm;
    unsigned blocks;
    unsigned first;              // the first ticket it ran, counted from Launch::start
    unsigned last;               // ns that its last ticket took; less than 4 s, or so much less. 0: a WarpWorker does not say
    unsigned long long began;    // ns, the GPU's global timer; with kHeld, once it had its place, and
    unsigned long long ended;    // before it gave that up
};

// In device memory, zeroed before its first use. The host writes `word` from a stream (memory operations),
// a new quota table before it.
struct Control {
    unsigned long long word;     // low half: tickets taken; high half: 0, or the number of a change
    unsigned refused;            // tickets taken after a stop
    unsigned verdict;            // on the last placed launch that began, or was to
    unsigned mapped;             // entries written, ever
    unsigned map_mask;           // entries in the ring, less one
    Mapping* map;
    unsigned resident[kMaxSms];  // workers on each SM (held)
    unsigned char quota[kMaxSms];
};

// A managed kernel's last parameter.
struct Launch {
    Control* control;
    unsigned origin[3];          // index of the first block of ticket `start`
    unsigned start;
    unsigned total;              // blocks, from `origin` on, row after row; at most 2^30
    unsigned grid[3];            // the program's grid
    unsigned flags;              // LaunchFlags
    unsigned id;                 // less than 2^30; for the mapping, and a placed launch's verdict
    unsigned chunk;              // blocks that one ticket stands for, 1 or more
    unsigned tickets;            // that the blocks make
};

static_assert(sizeof(Mapping) == 40 && sizeof(Launch) == 56 && sizeof(Control) == 32 + 5 * kMaxSms,
              "host and device must agree");

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)

namespace device {

// The leader's, and only kept with kHeld or kMapped.
struct Account {
    bool joined, last;           // counted in resident; must leave after the block that it holds
    unsigned sm, rank, seen, blocks, first;
    unsigned long long began;
};

// One per CTA. `block` is double: a fast warp may take the next ticket while a slow one reads this one's.
struct Shared {
    uint3 block[2];
    unsigned count[2];           // blocks from there on; 0: no more
    Account account;
    unsigned departed;           // threads, with kSingle, and their launch: where it is accounted for
    unsigned drawn;              // with kMapped: when the last ticket was, in ns
    Launch launch;
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
__device__ __forceinline__ bool join(Account& mine, const Launch& launch) {
    mine.sm = sm_id();
    mine.seen = mine.blocks = 0;
    mine.joined = mine.last = false;
    mine.began = now();
    if (!(launch.flags & kHeld)) return true;
    Control& control = *launch.control;
    mine.seen = high(fresh(control.word));   // before the quota: a change after it is seen at the next ticket
    __threadfence();
    mine.rank = atomicAdd(&control.resident[mine.sm], 1u);
    if (!(mine.seen & kStopBit) && mine.rank < fresh(control.quota[mine.sm])) {
        mine.began = now();
        return mine.joined = true;
    }
    atomicSub(&control.resident[mine.sm], 1u);
    return false;
}

// The word has changed under this worker. May it run the ticket that it took?
__device__ __forceinline__ bool obey(Account& mine, Control& control, unsigned number) {
    if (number & kStopBit) {
        atomicAdd(&control.refused, 1u);
        return false;
    }
    __threadfence();   // the table was written before the number
    mine.seen = number;
    mine.last = mine.rank >= fresh(control.quota[mine.sm]);
    return true;
}

// May a worker that has run a ticket take another one? It may see a new table before the number that goes with it: then it leaves a moment earlier.
__device__ __forceinline__ bool stays(const Account& mine, const Launch& launch) {
    return !mine.last && !((launch.flags & kLooks) && mine.rank >= fresh(launch.control->quota[mine.sm]));
}

// A placed launch that a stop finds: has it begun? Whoever draws its first ticket says so, and is running.
__device__ __forceinline__ bool begun(Control& control, const Launch& launch, unsigned ticket, bool stopped) {
    const unsigned no = launch.id * 2 + 2;
    volatile unsigned& verdict = control.verdict;
    if (ticket == 0) verdict = no + (stopped ? 0 : 1);
    if (!stopped) return true;
    // Where a launch before this one was stopped half way, fewer tickets were drawn than it was given: nobody may come
    // to draw this one's first, and nobody has begun.
    unsigned said = ticket < launch.tickets ? verdict : no;
    while (said - no > 1) said = verdict;
    if (said != no) return true;
    atomicAdd(&control.refused, 1u);
    return false;
}

// One thread, when every thread has left the last block.
template <bool kDrawn = true>
__device__ __forceinline__ void leave(const Account& mine, const Launch& launch) {
    if (!accounts(launch)) return;
    Control& control = *launch.control;
    if ((launch.flags & kMapped) && mine.blocks) {
        Mapping& entry = control.map[atomicAdd(&control.mapped, 1u) & control.map_mask];
        const unsigned long long ended = now();
        const unsigned last = kDrawn ? static_cast<unsigned>(ended) - shared().drawn : 0u;
        entry = {launch.id, mine.sm, mine.blocks, mine.first, last, mine.began, ended};
    }
    if (mine.joined) atomicSub(&control.resident[mine.sm], 1u);
}

// So many blocks after the launch's first one: row after row, as the hardware does. 32 bits are enough,
// because no grid is wider than 2^31 - 1 or higher than 2^16 - 1.
__device__ __forceinline__ uint3 index_of(const Launch& launch, unsigned block) {
    unsigned x = launch.origin[0] + block, y = launch.origin[1], z = launch.origin[2];
    if (x >= launch.grid[0]) {
        const unsigned rows = x / launch.grid[0];
        x -= rows * launch.grid[0];
        y += rows;
        if (y >= launch.grid[1]) {
            const unsigned planes = y / launch.grid[1];
            y -= planes * launch.grid[1];
            z += planes;
        }
    }
    return {x, y, z};
}

// The block so many behind another one.
__device__ __forceinline__ uint3 after(const Launch& launch, uint3 block, unsigned steps) {
    const unsigned x = block.x + steps, rows = x / launch.grid[0], y = block.y + rows, planes = y / launch.grid[1];
    return {x - rows * launch.grid[0], y - planes * launch.grid[1], block.z + planes};
}

// A ticket. The leader adds one and the x of its thread, which is 0: an addend that might differ from thread to
// thread, or ptxas would first add up those of the warp, for one thread, while all others wait.
__device__ __forceinline__ unsigned long long draw(Control& control) {
    unsigned nothing;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(nothing));
    return atomicAdd(&control.word, 1ull + nothing);
}

// The leader takes a ticket. Returns its blocks, and which is the first.
template <bool kDrawn = true>
__device__ __forceinline__ unsigned take(Account& mine, const Launch& launch, uint3& block, bool first_time) {
    if (accounts(launch) && !(first_time ? join(mine, launch) : stays(mine, launch))) return 0;
    const unsigned long long old = draw(*launch.control);
    const unsigned ticket = static_cast<unsigned>(old) - launch.start;
    unsigned from = ticket * launch.chunk;
    if (launch.flags & kPlaced) {
        if (!begun(*launch.control, launch, ticket, high(old) != 0)) return 0;
        from = blockIdx.x;
    } else {
        const unsigned known = (launch.flags & kHeld) ? mine.seen : 0u;
        if (high(old) != known && !obey(mine, *launch.control, high(old))) return 0;
        if (ticket >= launch.tickets) return 0;
    }
    const unsigned count = min(launch.chunk, launch.total - from);
    if (accounts(launch)) {
        if (mine.blocks == 0) mine.first = ticket;
        mine.blocks += count;
        if (kDrawn && (launch.flags & kMapped)) shared().drawn = static_cast<unsigned>(now());
    }
    block = index_of(launch, from);
    return count;
}

__device__ __forceinline__ void count_departed() {
    __threadfence_block();
    Shared& mine = shared();
    if (atomicAdd(&mine.departed, 1u) + 1 == blockDim.x * blockDim.y * blockDim.z) leave(mine.account, mine.launch);
}

static_assert(sizeof(Shared) == 128, "the rewriter leaves this much room");

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

namespace device {

// CTAs that run blocks one after the other. All threads call next() together.
class Loop {
public:
    __device__ __forceinline__ explicit Loop(const Launch& launch) : launch_(launch) {}
    __device__ __forceinline__ dim3 grid() const { return dim3(launch_.grid[0], launch_.grid[1], launch_.grid[2]); }

protected:
    // The leader.
    template <bool kDrawn = true>
    __device__ __forceinline__ unsigned take_next(Account& account, uint3& block) {
        return turn_ && (launch_.flags & kSingle) ? 0 : take<kDrawn>(account, launch_, block, turn_ == 0);
    }

    const Launch& launch_;
    unsigned turn_ = 0;   // 0, then 1, 2, 1, 2 ...; its last bit is the slot
};

// All threads have left a block before the next one begins. Where it is stands in shared memory: what threads
// keep across the body, the body lacks.
class ApartLoop : public Loop {
public:
    using Loop::Loop;

    __device__ __forceinline__ bool next() {
        const unsigned slot = turn_ & 1;
        if (leader()) advance(slot);
        __syncthreads();   // all have left the last block, and see this one
        turn_ = 2 - (slot ^ 1);
        if (shared().count[slot] != 0) return true;
        if (leader()) leave(shared().account, launch_);
        return false;
    }

    __device__ __forceinline__ uint3 block() const { return shared().block[(turn_ & 1) ^ 1]; }

private:
    // The leader, while others may still read the other slot.
    __device__ __forceinline__ void advance(unsigned slot) {
        Shared& mine = shared();
        unsigned count = turn_ ? mine.count[slot ^ 1] - 1 : 0;
        if (count) mine.block[slot] = after(launch_, mine.block[slot ^ 1], 1);
        else count = take_next(mine.account, mine.block[slot]);
        mine.count[slot] = count;
    }
};

// For blocks in which nothing is shared: those of one ticket do not wait for each other.
class FreeLoop : public Loop {
public:
    using Loop::Loop;

    __device__ __forceinline__ bool next() {
        if (left_ != 0) {
            --left_;
            return true;
        }
        const unsigned slot = turn_ & 1;
        if (leader()) {
            Shared& mine = shared();
            mine.count[slot] = take_next(mine.account, mine.block[slot]);
        }
        __syncthreads();
        turn_ = 2 - (slot ^ 1);
        left_ = shared().count[slot] - 1;
        if (left_ != ~0u) return true;
        if (leader()) leave(shared().account, launch_);
        return false;
    }

    __device__ __forceinline__ uint3 block() const {
        const unsigned slot = (turn_ & 1) ^ 1;
        return after(launch_, shared().block[slot], shared().count[slot] - 1 - left_);
    }

private:
    unsigned left_ = 0;   // blocks of this ticket
};

// For blocks of one warp, which needs no shared memory to agree; where that is what limits how many fit, the loop's
// own would cost one. Registers it has more of than it can use.
class WarpLoop : public Loop {
public:
    using Loop::Loop;

    __device__ __forceinline__ bool next() {
        const unsigned threads = ~0u >> (32 - blockDim.x * blockDim.y * blockDim.z);
        __syncwarp(threads);   // all have left the last block
        if (left_ != 0) {
            --left_;
            block_ = after(launch_, block_, 1);
            return true;
        }
        unsigned count = 0;
        if (leader()) {
            Account mine;
            if (turn_) copy(account_, mine);
            count = take_next<false>(mine, block_);
            copy(mine, account_);
        }
        turn_ = 1;
        left_ = __shfl_sync(threads, count, 0) - 1;
        if (left_ != ~0u) {
            block_ = {__shfl_sync(threads, block_.x, 0), __shfl_sync(threads, block_.y, 0), __shfl_sync(threads, block_.z, 0)};
            return true;
        }
        if (leader()) {
            Account mine;
            copy(account_, mine);
            leave<false>(mine, launch_);   // no shared memory
        }
        return false;
    }

    __device__ __forceinline__ uint3 block() const { return block_; }

private:
    template <typename From, typename To>
    __device__ static __forceinline__ void copy(const From& from, To& to) {
        to.joined = from.joined, to.last = from.last, to.sm = from.sm, to.rank = from.rank, to.seen = from.seen;
        to.blocks = from.blocks, to.first = from.first, to.began = from.began;
    }

    volatile Account account_;   // volatile: ptxas then moves nothing of it into the body, whose loops are shorter for it
    uint3 block_ = {};
    unsigned left_ = 0;
};

// A worker that also says for everyone what its block is.
template <typename Base>
class Told : public Base {
public:
    __device__ __forceinline__ explicit Told(const Launch& launch) : Base(launch) {}

    __device__ __forceinline__ bool next() {
        if (!Base::next()) return false;
        if (leader()) {
            const dim3 grid = Base::grid();
            index() = {Base::block(), {grid.x, grid.y, grid.z}};
        }
        __syncthreads();
        return true;
    }
};

}  // namespace device

// For kernels with shared memory or barriers.
using Worker = device::ApartLoop;
// For kernels without.
using FreeWorker = device::FreeLoop;
// For kernels whose blocks have no more threads than a warp.
using WarpWorker = device::WarpLoop;

// For kernels whose threads depart: one block, of which any number of threads come back.
class SingleWorker {
public:
    __device__ __forceinline__ explicit SingleWorker(const Launch& launch) : launch_(launch) {}

    __device__ __forceinline__ bool next() {
        if (taken_) depart(launch_);
        taken_ = true;
        device::Shared& mine = device::shared();
        if (device::leader()) {
            if (device::accounts(launch_)) mine.launch = launch_, mine.departed = 0;
            mine.count[0] = device::take(mine.account, launch_, mine.block[0], true);
        }
        __syncthreads();
        const bool took = mine.count[0] != 0;
        if (!took && device::leader()) device::leave(mine.account, launch_);
        return took;
    }

    __device__ __forceinline__ uint3 block() const { return device::shared().block[0]; }
    __device__ __forceinline__ dim3 grid() const { return dim3(launch_.grid[0], launch_.grid[1], launch_.grid[2]); }

private:
    const Launch& launch_;
    bool taken_ = false;
};

// The same for kernels with functions that call block() or grid().
using SharedWorker = device::Told<Worker>;
using SharedSingleWorker = device::Told<SingleWorker>;

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
