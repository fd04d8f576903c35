// The persistent loop: how a managed kernel takes its thread blocks, and how the host stops it.
//
// A managed kernel is launched as a number of workers (CTAs). Each worker takes a ticket, runs the block of
// that ticket, and takes the next. So blocks can be handed out, held back and placed between any two blocks:
//
//     __global__ void smt_k(float* a, int n, smt::Launch launch) {
//         smt::Worker worker(launch);
//         while (worker.next()) body(worker.block(), worker.grid(), a, n);
//     }
//
// It is one file over 400 lines: NVRTC and nvcc compile it as one text, in front of each managed kernel.
//
// A ticket stands for `chunk` blocks in a row: one, unless blocks are so short that the cost of a ticket
// matters.
//
// A ticket is one atomicAdd on `Control::word`. The low half of the word counts tickets. The high half is 0
// until the host writes it. So one access both takes a block and sees a change, and nothing polls. All
// accesses to the word are ordered: tickets taken before the host's write are run, those taken after it are
// refused and counted. After a stop, once every worker has left, the tickets run are exactly those below
//
//     (low half of word) - (refused)
//
// The kernel goes on from there in a later launch, with tickets that start elsewhere.
//
// A control block has two modes:
//
//   pass-through    Many launches in a row share it, in the order of their stream. Each takes an exact number
//                   of tickets: those for its blocks and one more for each worker that finds none left
//                   (kSingle: one for each worker, no more). So the host knows where the next launch starts
//                   without asking. Workers obey the stop only.
//   quota (kHeld)   One launch at a time, and more workers of the same launch later (growth). Workers count
//                   themselves per SM and keep to `quota[sm]`. The host changes the table and then the high
//                   half (to a value never used before). Each worker looks at its next ticket: a worker with
//                   a rank that is no longer below the quota runs the block that it holds, and leaves. With
//                   kLooks it also looks before it takes the ticket, and leaves at once. This costs little if
//                   blocks are long.
//
// A launch of which all blocks fit the GPU at once may be placed (kPlaced): worker i runs block i, as the
// hardware would. Without this, tickets are drawn in the order in which workers begin, and neighbouring
// blocks come to arbitrary SMs. If block times differ, one SM then gets all the long blocks. Measured: up to
// a third was lost. Tickets of a placed launch do not say which blocks have run, so a stop takes all of such
// a launch or none. The worker that draws the first ticket decides which. If the stop is too late, all blocks
// have begun anyhow.
//
// In a kernel with checks inside its body (rewriter/ptx/persistent/inside.h) a stop with kInsideBit ends the
// blocks at work, too. A thread that leaves a block at a check takes back the block's ticket and with it all
// behind that, of which some may have run: `Control::abandoned` is the first one. A placed launch is taken
// back as a whole. What is taken back is run again, and comes to the same there. So after such a stop the
// tickets run are those below the number above and below the first one taken back.
//
// Shared memory: one variable of 128 bytes, and 24 more with SharedWorker. Registers across the body: one;
// two with FreeWorker; without limit with WarpWorker, which uses no shared memory. Barriers: one per block
// (Worker), one per ticket if nothing is shared within a block (FreeWorker), two per block if functions other
// than the body read the block's index (SharedWorker).
//
// In a kernel where some threads return early while others go on to a barrier or a warp-wide operation, the
// hardware no longer counts the threads that returned. Such a kernel uses a SingleWorker and calls
// `smt::depart()` in place of each return, which ends the thread. It must be launched with kSingle.
// SingleWorker is a class of its own, and everything is inlined, because the remaining code decides how good
// the body's code is: with a call anywhere, or an exit that some threads might take, ptxas no longer knows
// that a block's index is the same in all threads, and allocates a third more registers.
//
// One source for the host and the device: compiled by nvcc, NVRTC and g++. Needs no header.
#pragma once

namespace smt {

inline constexpr unsigned kMaxSms = 256;
inline constexpr unsigned kNoQuota = 0xff;  // in a quota table: as many as fit

// The high half of Control::word is 0, or the number of the last change. A stop has a bit of its own: a
// worker that sees an earlier change late must not take it for the stop, or it would refuse a ticket drawn
// before the stop.
inline constexpr unsigned kStopBit = 1u << 31;
// Of a stop: blocks with checks inside are abandoned. The high half is this large in no other case.
inline constexpr unsigned kInsideBit = 1u << 30;
inline constexpr unsigned kStopInside = kStopBit | kInsideBit;

enum LaunchFlags : unsigned {
    kHeld = 1,    // quota mode
    kSingle = 2,  // a worker takes one ticket
    kMapped = 4,  // each worker writes a Mapping
    kPlaced = 8,  // with kSingle, without kHeld: one worker per block, which runs the block of its own index
    kLooks = 16,  // with kHeld: a worker checks its quota before it takes a ticket
};

// What one worker did, written as it leaves.
struct Mapping {
    unsigned launch;  // Launch::id
    unsigned sm;
    unsigned blocks;  // of its tickets; those of tickets that were taken back count
    unsigned first;   // the first ticket it ran, relative to Launch::start
    // Nanoseconds that its last ticket took, modulo 2^32 (about 4 s). 0: not known (WarpWorker).
    unsigned last;
    unsigned long long began;  // ns by the GPU's global timer; with kHeld, when it had its place
    unsigned long long ended;  // just before it gave its place up
};

// In device memory, zeroed before its first use. The host writes `word` by stream memory operations, and a
// new quota table before it.
struct Control {
    unsigned long long word;  // low half: tickets taken; high half: 0, or the number of a change
    unsigned refused;         // tickets taken after a stop
    unsigned verdict;         // of the last placed launch that began, or was to begin
    unsigned mapped;          // entries written in total
    unsigned map_mask;        // entries in the ring, minus one
    Mapping* map;
    unsigned resident[kMaxSms];  // workers on each SM (quota mode)
    unsigned char quota[kMaxSms];
    unsigned abandoned;  // ~ the first ticket that was taken back; 0: none was
};

// A managed kernel's last parameter.
struct Launch {
    Control* control;
    unsigned origin[3];  // index of the first block of ticket `start`
    unsigned start;
    unsigned total;    // blocks, from `origin` on, row after row; at most 2^30
    unsigned grid[3];  // the program's grid
    unsigned flags;    // LaunchFlags
    unsigned id;       // less than 2^30; for the mapping and a placed launch's verdict
    unsigned chunk;    // blocks per ticket, 1 or more
    unsigned tickets;  // tickets for `total` blocks
};

static_assert(sizeof(Mapping) == 40 && sizeof(Launch) == 56 && sizeof(Control) == 40 + 5 * kMaxSms,
              "host and device must agree");

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)

namespace device {

// State of the leader. Maintained only with kHeld or kMapped.
struct Account {
    bool joined, last;  // counted in resident; must leave after the block that it holds
    unsigned sm, rank, seen, blocks, first;
    unsigned long long began;
};

// One per CTA. `block` has two slots: a fast warp may take the next ticket while a slow one reads the current
// one.
struct Shared {
    uint3 block[2];
    unsigned count[2];  // blocks from there on; 0: no more
    Account account;
    unsigned departed;  // threads, with kSingle; `launch` is theirs, if it is accounted for
    unsigned drawn;     // with kMapped: time of the last ticket, in ns
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
__device__ __forceinline__ unsigned high(unsigned long long word) {
    return static_cast<unsigned>(word >> 32);
}

template <typename T>
__device__ __forceinline__ T fresh(const T& value) {
    return *const_cast<const volatile T*>(&value);
}

__device__ __forceinline__ bool accounts(const Launch& launch) { return launch.flags & (kHeld | kMapped); }

// The leader calls it before the worker's first ticket, if the worker is accounted for. False: there is no
// place on this SM.
__device__ __forceinline__ bool join(Account& mine, const Launch& launch) {
    mine.sm = sm_id();
    mine.seen = mine.blocks = 0;
    mine.joined = mine.last = false;
    mine.began = now();
    if (!(launch.flags & kHeld)) return true;
    Control& control = *launch.control;
    mine.seen = high(fresh(control.word));  // before the quota: a later change is seen at the next ticket
    __threadfence();
    mine.rank = atomicAdd(&control.resident[mine.sm], 1u);
    if (!(mine.seen & kStopBit) && mine.rank < fresh(control.quota[mine.sm])) {
        mine.began = now();
        return mine.joined = true;
    }
    atomicSub(&control.resident[mine.sm], 1u);
    return false;
}

// The word has changed under this worker. True: the worker may run the ticket that it took.
__device__ __forceinline__ bool obey(Account& mine, Control& control, unsigned number) {
    if (number & kStopBit) {
        atomicAdd(&control.refused, 1u);
        return false;
    }
    __threadfence();  // the table was written before the number
    mine.seen = number;
    mine.last = mine.rank >= fresh(control.quota[mine.sm]);
    return true;
}

// Whether a worker that has run a ticket may take another one. It may see a new table before the number of
// that change; then it leaves a moment earlier.
__device__ __forceinline__ bool stays(const Account& mine, const Launch& launch) {
    return !mine.last && !((launch.flags & kLooks) && mine.rank >= fresh(launch.control->quota[mine.sm]));
}

// For a placed launch that a stop finds: whether it has begun. The worker that draws its first ticket writes
// the verdict, and is running.
__device__ __forceinline__ bool begun(Control& control, const Launch& launch, unsigned ticket, bool stopped) {
    const unsigned no = launch.id * 2 + 2;
    volatile unsigned& verdict = control.verdict;
    if (ticket == 0) verdict = no + (stopped ? 0 : 1);
    if (!stopped) return true;
    // If an earlier launch was stopped half way, fewer tickets were drawn than it was given. Then there may
    // be no worker to draw this launch's first ticket, and no block of it has begun.
    unsigned said = ticket < launch.tickets ? verdict : no;
    while (said - no > 1) said = verdict;
    if (said != no) return true;
    atomicAdd(&control.refused, 1u);
    return false;
}

// One thread calls it, after every thread has left the last block.
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

// The index of the block that many blocks after the launch's first one, row after row, as the hardware does.
// 32 bits are enough, because no grid is wider than 2^31 - 1 or higher than 2^16 - 1.
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

// The index of the block that many steps after `block`.
__device__ __forceinline__ uint3 after(const Launch& launch, uint3 block, unsigned steps) {
    const unsigned x = block.x + steps, rows = x / launch.grid[0], y = block.y + rows,
                   planes = y / launch.grid[1];
    return {x - rows * launch.grid[0], y - planes * launch.grid[1], block.z + planes};
}

// The absolute number of the ticket that covers a block.
__device__ __forceinline__ unsigned ticket_of(const Launch& launch, uint3 block) {
    if (launch.flags & kPlaced) return launch.start;
    const unsigned planes = block.z - launch.origin[2];
    const unsigned rows = planes * launch.grid[1] + block.y - launch.origin[1];
    const unsigned blocks = rows * launch.grid[0] + block.x - launch.origin[0];
    return launch.start + blocks / launch.chunk;
}

// Draws a ticket. The leader adds one plus its thread's x, which is 0. The addend must look as if it might
// differ between threads. Otherwise ptxas first sums the addends of the warp, for a single thread, while all
// others wait.
__device__ __forceinline__ unsigned long long draw(Control& control) {
    unsigned nothing;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(nothing));
    return atomicAdd(&control.word, 1ull + nothing);
}

// The leader takes a ticket. Returns the number of its blocks, and the first one in `block`.
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
    if (atomicAdd(&mine.departed, 1u) + 1 == blockDim.x * blockDim.y * blockDim.z)
        leave(mine.account, mine.launch);
}

static_assert(sizeof(Shared) == 128, "the rewriter leaves this much room");

// What block() and grid() return.
struct Index {
    uint3 block;
    uint3 grid;
};
__device__ __forceinline__ Index& index() {
    __shared__ Index current;
    return current;
}

}  // namespace device

// Ends this thread, like a return from the program's kernel. Only in a kernel launched with kSingle.
__device__ __forceinline__ void depart(const Launch& launch) {
    if (device::accounts(launch)) device::count_departed();
    asm volatile("exit;");
    __builtin_unreachable();
}

// The index of the block and the size of the grid, for functions that do not receive them as arguments. Needs
// SharedWorker, or Original in a kernel that the hardware dispatches.
__device__ __forceinline__ uint3 block() { return device::index().block; }
__device__ __forceinline__ dim3 grid() {
    const uint3 size = device::index().grid;
    return dim3(size.x, size.y, size.z);
}

// For a body that starts asynchronous copies to shared memory. The hardware ends those with the block; a
// worker must not take the next block while they run.
__device__ __forceinline__ void await_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

namespace device {

// A worker that runs blocks one after the other. All threads call next() together.
class Loop {
public:
    __device__ __forceinline__ explicit Loop(const Launch& launch) : launch_(launch) {}
    __device__ __forceinline__ dim3 grid() const {
        return dim3(launch_.grid[0], launch_.grid[1], launch_.grid[2]);
    }

protected:
    // Called by the leader.
    template <bool kDrawn = true>
    __device__ __forceinline__ unsigned take_next(Account& account, uint3& block) {
        return turn_ && (launch_.flags & kSingle) ? 0 : take<kDrawn>(account, launch_, block, turn_ == 0);
    }

    const Launch& launch_;
    unsigned turn_ = 0;  // 0, then 1, 2, 1, 2 ...; its lowest bit is the slot
};

// All threads have left a block before the next one begins. The block's index is kept in shared memory:
// registers that threads keep across the body are lost to the body.
class ApartLoop : public Loop {
public:
    using Loop::Loop;

    __device__ __forceinline__ bool next() {
        const unsigned slot = turn_ & 1;
        if (leader()) advance(slot);
        __syncthreads();  // all have left the last block and see this one
        turn_ = 2 - (slot ^ 1);
        if (shared().count[slot] != 0) return true;
        if (leader()) leave(shared().account, launch_);
        return false;
    }

    __device__ __forceinline__ uint3 block() const { return shared().block[(turn_ & 1) ^ 1]; }

private:
    // Called by the leader, while other threads may still read the other slot.
    __device__ __forceinline__ void advance(unsigned slot) {
        Shared& mine = shared();
        unsigned count = turn_ ? mine.count[slot ^ 1] - 1 : 0;
        if (count)
            mine.block[slot] = after(launch_, mine.block[slot ^ 1], 1);
        else
            count = take_next(mine.account, mine.block[slot]);
        mine.count[slot] = count;
    }
};

// For blocks in which nothing is shared: the blocks of one ticket do not wait for each other.
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
    unsigned left_ = 0;  // blocks left of this ticket
};

// For blocks of one warp, which needs no shared memory to agree. Where shared memory limits how many blocks
// fit on an SM, the loop's own would cost one block. Such a kernel has more registers than it can use.
class WarpLoop : public Loop {
public:
    using Loop::Loop;

    __device__ __forceinline__ bool next() {
        const unsigned threads = ~0u >> (32 - blockDim.x * blockDim.y * blockDim.z);
        __syncwarp(threads);  // all have left the last block
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
            block_ = {__shfl_sync(threads, block_.x, 0), __shfl_sync(threads, block_.y, 0),
                      __shfl_sync(threads, block_.z, 0)};
            return true;
        }
        if (leader()) {
            Account mine;
            copy(account_, mine);
            leave<false>(mine, launch_);  // uses no shared memory
        }
        return false;
    }

    __device__ __forceinline__ uint3 block() const { return block_; }

private:
    template <typename From, typename To>
    __device__ static __forceinline__ void copy(const From& from, To& to) {
        to.joined = from.joined, to.last = from.last, to.sm = from.sm, to.rank = from.rank,
        to.seen = from.seen;
        to.blocks = from.blocks, to.first = from.first, to.began = from.began;
    }

    // `volatile` keeps ptxas from moving any of it into the body, which makes the body's loops longer.
    volatile Account account_;
    uint3 block_ = {};
    unsigned left_ = 0;
};

// A worker that also publishes the block's index for functions other than the body.
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

// A worker whose threads may leave a block before its end.
template <typename Base>
class Abandoning : public Base {
public:
    using Base::Base;

    // Each thread that left the block at a check calls it, ahead of next() or depart(). The stop that it saw
    // refuses all further tickets.
    __device__ __forceinline__ void abandon() {
        const Launch& launch = this->launch_;
        atomicMax(&launch.control->abandoned, ~ticket_of(launch, Base::block()));
    }
};

}  // namespace device

// For kernels with shared memory or barriers.
using Worker = device::ApartLoop;
// For kernels without either.
using FreeWorker = device::FreeLoop;
// For kernels with blocks of at most one warp.
using WarpWorker = device::WarpLoop;

// For kernels with threads that depart: one block, from which any number of threads return.
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
    __device__ __forceinline__ dim3 grid() const {
        return dim3(launch_.grid[0], launch_.grid[1], launch_.grid[2]);
    }

protected:
    const Launch& launch_;

private:
    bool taken_ = false;
};

// The same three, for kernels with checks inside their body.
using AbandoningWorker = device::Abandoning<Worker>;
using AbandoningFreeWorker = device::Abandoning<FreeWorker>;
using AbandoningSingleWorker = device::Abandoning<SingleWorker>;

// For kernels with functions that call block() or grid(): as Worker and SingleWorker.
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
