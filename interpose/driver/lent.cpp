// See lent.h. The table says where each lent span lies in the arena, and what its pages looked like
// then; an entry counts as long as they still do.
#include "interpose/driver/lent.h"

#include <sys/mman.h>

#include "interpose/driver/capture.h"
#include "interpose/driver/host_pages.h"
#include "interpose/driver/lock.h"
#include "interpose/driver/mappings.h"
#include "interpose/driver/memory.h"
#include "interpose/driver/ranges.h"
#include "interpose/entry/process.h"
#include "interpose/transport/remote_call.h"

namespace smt::interpose::driver {

using protocol::Op;

namespace {

constexpr uint32_t kMaxPieces = 1024;
constexpr uint64_t kMaxLent = 64u << 10;
constexpr int kAttempts = 4;  // another thread may change the pages meanwhile

// A look is worth its time after so much was lent.
constexpr uint64_t kReclaimBytes = 32u << 20;
constexpr uint64_t kReclaimSpans = 256;

// A span, cut where it changes what its pages are. `arena` 0: the application's own.
struct Piece {
    uint64_t bytes;
    uint64_t arena;
};

struct Pieces {
    Piece list[kMaxPieces];
    uint32_t count = 0;

    bool add(uint64_t bytes, uint64_t arena) {
        Piece* last = count ? &list[count - 1] : nullptr;
        if (last && (arena ? last->arena && last->arena + last->bytes == arena : !last->arena)) {
            last->bytes += bytes;
            return true;
        }
        if (count == kMaxPieces) return false;
        list[count++] = {bytes, arena};
        return true;
    }
    bool all_own() const { return count == 1 && !list[0].arena; }
    bool one_view() const { return count == 1 && list[0].arena; }
    uint64_t hash() const {
        uint64_t hash = 14695981039346656037ull;
        for (uint32_t i = 0; i < count; ++i)
            for (uint64_t word : {list[i].bytes, list[i].arena}) hash = (hash ^ word) * 1099511628211ull;
        return hash;
    }
};

struct Lent {
    uint64_t from, to;
    uint64_t arena;
    uint64_t look;   // Pieces::hash() of the span
    bool owned;      // the arena's block is this entry's to give back
    bool has_views;  // some of its pages belong to other blocks
};

constinit pthread_mutex_t lent_lock = PTHREAD_MUTEX_INITIALIZER;
constinit Lent* table = nullptr;  // kMaxLent of address space, touched as it fills
constinit uint64_t table_count = 0;
constinit uint64_t bytes_since_look = 0;
constinit uint64_t spans_since_look = 0;

uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
uint64_t greatest(uint64_t a, uint64_t b) { return a > b ? a : b; }

// False: some of it can neither be exchanged nor is the arena's.
bool look_at(uint64_t from, uint64_t to, Pieces& pieces) {
    if (inspect_pages(from, to) == Pages::kOwnStack) return false;
    Mappings mappings;
    Mapping mapping;
    uint64_t covered = from;
    while (covered < to && mappings.next(mapping)) {
        if (mapping.to <= covered) continue;
        if (mapping.from > covered || mapping.main_stack) return false;
        uint64_t arena = arena_behind(mapping);
        if (!arena && !mapping.own_and_writable()) return false;
        uint64_t end = least(mapping.to, to);
        if (!pieces.add(end - covered, arena ? arena + (covered - mapping.from) : 0)) return false;
        covered = end;
    }
    return covered >= to;
}

bool as_it_was(const Lent& lent) {
    Pieces pieces;
    return look_at(lent.from, lent.to, pieces) && pieces.hash() == lent.look;
}

// The entry that holds [from, to) and still counts. lent_lock is held.
const Lent* find_lent(uint64_t from, uint64_t to) {
    for (uint64_t i = 0; i < table_count; ++i)
        if (table[i].from <= from && to <= table[i].to && as_it_was(table[i])) return &table[i];
    return nullptr;
}

// lent_lock is held.
bool remember(const Lent& lent) {
    if (!table) {
        void* space = mmap(nullptr, kMaxLent * sizeof(Lent), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (space == MAP_FAILED) return false;
        table = static_cast<Lent*>(space);
    }
    if (table_count == kMaxLent) return false;
    table[table_count++] = lent;
    bytes_since_look += lent.to - lent.from;
    ++spans_since_look;
    return true;
}

// A block for the span, which shows the pages that are the arena's already.
CUresult block_for(uint64_t bytes, const Pieces& pieces, uint64_t& arena) {
    if (pieces.all_own()) return arena_pages(bytes, arena);
    protocol::MemAllocated allocated{};
    RemoteCall call(Op::kHostAllocShowing, sizeof(protocol::HostPieces) + sizeof pieces.list);
    if (!call.open()) return call.status();
    call.in(protocol::HostPieces{bytes, pieces.count, 0});
    for (uint32_t i = 0; i < pieces.count; ++i)
        call.in(protocol::HostPiece{pieces.list[i].bytes, pieces.list[i].arena});
    CUresult status = call.wait();
    if (status == CUDA_SUCCESS) call.out(&allocated);
    arena = allocated.address;
    return status;
}

// The span's own pages become the arena's. False: `stuck` says whether the block can be given back.
bool move_own_pages(uint64_t from, const Pieces& pieces, uint64_t arena, bool& stuck) {
    uint64_t at = from;
    for (uint32_t i = 0; i < pieces.count; at += pieces.list[i++].bytes) {
        if (pieces.list[i].arena) continue;
        Moved moved = move_to_arena(at, at + pieces.list[i].bytes, reinterpret_cast<char*>(arena + (at - from)));
        if (moved == Moved::kAll) continue;
        stuck = moved == Moved::kStuck;
        for (uint64_t done = from; i-- > 0 && done < at;) done = at;  // what moved before stays lent
        return false;
    }
    // A single mapping could be grown in place, into what lies behind the block in the arena; realloc
    // tries that. Two mappings cannot.
    madvise(reinterpret_cast<void*>(from), kPage, MADV_RANDOM);
    return true;
}

// Registered memory of which a graph gets pages must keep them when it is registered no more.
void keep_registered(uint64_t from, uint64_t to) {
    uint64_t at = from;
    Range range;
    while (next_range(&at, range) && range.base < to)
        if (range.memory == Memory::kRegistered)
            change_range(range.base, [](Range& kept, const void*) { kept.kept = true; }, nullptr);
}

}  // namespace

}  // namespace smt::interpose::driver
