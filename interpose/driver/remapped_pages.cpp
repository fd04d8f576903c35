// See remapped_pages.h. The table holds each remapped span's place in the arena and a hash of its pages'
// state at that time. An entry is valid while the state is unchanged.
#include "interpose/driver/remapped_pages.h"

#include <sys/mman.h>

#include <initializer_list>

#include "interpose/driver/capture.h"
#include "interpose/driver/host_pages.h"
#include "interpose/driver/lock.h"
#include "interpose/driver/mappings.h"
#include "interpose/driver/memory.h"
#include "interpose/driver/ranges.h"
#include "interpose/transport/remote_call.h"
#include "runtime/protocol/try.h"

namespace smt::interpose::driver {

using protocol::Op;

namespace {

constexpr uint32_t kMaxPieces = 256;
constexpr uint64_t kMaxRemapped = 64u << 10;
constexpr int kAttempts = 4;  // another thread may change the pages meanwhile

// reclaim_remapped() runs after so much was remapped.
constexpr uint64_t kReclaimBytes = 32u << 20;
constexpr uint64_t kReclaimSpans = 256;

// A span, split where the backing of its pages changes. `arena` 0: the application's own.
struct SpanPiece {
    uint64_t bytes;
    uint64_t arena;
};

struct SpanPieces {
    SpanPiece list[kMaxPieces];
    uint32_t count = 0;

    bool add(uint64_t bytes, uint64_t arena) {
        SpanPiece* last = count ? &list[count - 1] : nullptr;
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

struct RemappedSpan {
    uint64_t from, to;
    uint64_t arena;
    uint64_t look;   // SpanPieces::hash() of the span
    bool owned;      // the arena's block is freed with this entry
    bool has_views;  // some of its pages belong to other blocks
    bool shown;      // reclaim_remapped: a mapping shows a page of the block
};

struct Remapped {
    RemappedSpan* spans;  // kMaxRemapped of address space, touched as it fills
    uint64_t count;
    uint64_t bytes_since_look;
    uint64_t spans_since_look;
};
constinit pthread_mutex_t remap_lock = PTHREAD_MUTEX_INITIALIZER;
constinit PerSession<Remapped> all_remapped;

uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

// false: some of it is neither exchangeable nor the arena's.
bool look_at(uint64_t from, uint64_t to, SpanPieces& pieces) {
    if (on_own_stack(from, to)) return false;
    Mappings mappings;
    Mapping mapping;
    uint64_t covered = from;
    while (covered < to && mappings.next(mapping)) {
        if (mapping.to <= covered) continue;
        if (mapping.from > covered || mapping.main_stack) return false;
        uint64_t arena = arena_behind(mapping);
        if (!arena && !mapping.own_and_writable()) return false;
        uint64_t end = smaller(mapping.to, to);
        if (!pieces.add(end - covered, arena ? arena + (covered - mapping.from) : 0)) return false;
        covered = end;
    }
    return covered >= to;
}

bool as_it_was(const RemappedSpan& remapped) {
    SpanPieces pieces;
    return look_at(remapped.from, remapped.to, pieces) && pieces.hash() == remapped.look;
}

// The valid entry that contains [from, to). Called with remap_lock held.
const RemappedSpan* find_remapped(uint64_t from, uint64_t to) {
    Remapped& table = all_remapped.here();
    for (uint64_t i = 0; i < table.count; ++i)
        if (table.spans[i].from <= from && to <= table.spans[i].to && as_it_was(table.spans[i]))
            return &table.spans[i];
    return nullptr;
}

// Both functions are called with remap_lock held.
bool room_in_table() {
    Remapped& table = all_remapped.here();
    if (!table.spans) {
        void* space = mmap(nullptr, kMaxRemapped * sizeof(RemappedSpan), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (space == MAP_FAILED) return false;
        table.spans = static_cast<RemappedSpan*>(space);
    }
    return table.count < kMaxRemapped;
}

void remember(const RemappedSpan& remapped) {
    Remapped& table = all_remapped.here();
    table.spans[table.count++] = remapped;
    table.bytes_since_look += remapped.to - remapped.from;
    ++table.spans_since_look;
}

// Gets a block for the span, in which the pages that are the arena's already are mapped too.
CUresult block_for(uint64_t bytes, const SpanPieces& pieces, uint64_t& arena) {
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

// Makes the span's own pages the arena's, or leaves all unchanged. kStuck as in host_pages.h.
Moved move_own_pages(uint64_t from, const SpanPieces& pieces, uint64_t arena) {
    auto place = [&](uint64_t at) { return reinterpret_cast<char*>(arena + (at - from)); };
    uint64_t at = from;
    Moved moved = Moved::kAll;
    uint32_t i = 0;
    for (; i < pieces.count && moved == Moved::kAll; at += pieces.list[i++].bytes)
        if (!pieces.list[i].arena) moved = move_to_arena(at, at + pieces.list[i].bytes, place(at));
    if (moved == Moved::kAll) {
        forbid_growth(from);
        return moved;
    }
    uint64_t end = at - pieces.list[i - 1].bytes;
    at = from;
    for (i = 0; at < end; at += pieces.list[i++].bytes)
        if (!pieces.list[i].arena && !move_from_arena(at, at + pieces.list[i].bytes, place(at)))
            moved = Moved::kStuck;
    return moved;
}

// Registered memory that shares pages with a graph must keep them when it is unregistered.
void keep_registered(uint64_t from, uint64_t to) {
    uint64_t at = from;
    Range range;
    while (next_range(&at, range) && range.base < to)
        if (range.memory == Memory::kRegistered && !range.borrowed)
            change_range(range.base, [](Range& kept, const void*) { kept.kept = true; }, nullptr);
}

// Called with remap_lock held. kNothing: the pages differ from `pieces` by now, or could not move.
Moved lend_now(uint64_t from, uint64_t to, const SpanPieces& pieces, uint64_t block) {
    SpanPieces now;
    if (!room_in_table() || !look_at(from, to, now) || now.hash() != pieces.hash()) return Moved::kNothing;
    keep_registered(from, to);
    RemappedSpan remapped{.from = from,
                          .to = to,
                          .arena = block,
                          .look = 0,
                          .owned = !pieces.one_view(),
                          .has_views = !pieces.all_own(),
                          .shown = false};
    if (remapped.owned) {
        Moved moved = move_own_pages(from, pieces, block);
        if (moved != Moved::kAll) return moved;
    }
    SpanPieces after;
    look_at(from, to, after);
    remapped.look = after.hash();
    remember(remapped);
    return Moved::kAll;
}

void mark_shown() {
    Remapped& table = all_remapped.here();
    for (uint64_t i = 0; i < table.count; ++i) table.spans[i].shown = false;
    Mappings mappings;
    Mapping mapping;
    while (mappings.next(mapping)) {
        uint64_t arena = arena_behind(mapping);
        uint64_t end = arena + (mapping.to - mapping.from);
        for (uint64_t i = 0; arena && i < table.count; ++i) {
            RemappedSpan& remapped = table.spans[i];
            remapped.shown |= remapped.arena < end && arena < remapped.arena + (remapped.to - remapped.from);
        }
    }
}

// Removes entries that no mapping shows from the table and returns the blocks to free. Called with remap_lock
// held.
uint32_t take_dead(uint64_t* blocks, uint32_t room) {
    Remapped& table = all_remapped.here();
    uint32_t found = 0;
    uint64_t kept = 0;
    mark_shown();
    for (uint64_t i = 0; i < table.count; ++i) {
        RemappedSpan& remapped = table.spans[i];
        bool alive = remapped.shown || (remapped.has_views && as_it_was(remapped)) || found == room;
        if (alive) {
            table.spans[kept++] = remapped;
            continue;
        }
        forget_edge(remapped.from);
        forget_edge(remapped.to - kPage);
        if (remapped.owned) blocks[found++] = remapped.arena;
    }
    table.count = kept;
    return found;
}

}  // namespace

CUresult remap(uint64_t address, uint64_t bytes, uint64_t& arena) {
    uint64_t from = page_floor(address);
    uint64_t to = page_ceiling(address + bytes);
    reclaim_remapped();
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        SpanPieces pieces;
        if (!find_arena() || !look_at(from, to, pieces)) return CUDA_ERROR_NOT_SUPPORTED;
        {
            Lock lock(remap_lock);
            if (const RemappedSpan* found = find_remapped(from, to)) {
                arena = found->arena + (address - found->from);
                return CUDA_SUCCESS;
            }
        }
        uint64_t block = pieces.list[0].arena;
        if (!pieces.one_view()) SMT_TRY(block_for(to - from, pieces, block));
        Moved moved;
        {
            Lock lock(remap_lock);
            moved = lend_now(from, to, pieces, block);
        }
        if (moved == Moved::kAll) {
            if (from != address) keep_edge_from_children(from);
            if (to != address + bytes) keep_edge_from_children(to - kPage);
            arena = block + (address - from);
            return CUDA_SUCCESS;
        }
        if (moved == Moved::kStuck) return CUDA_ERROR_OUT_OF_MEMORY;
        if (!pieces.one_view()) give_back(Op::kHostFree, block);
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

uint64_t application_address(uint64_t arena) {
    Remapped& table = all_remapped.here();
    Range range;
    if (find_range(arena, range)) return range.memory == Memory::kAlias ? range.translated(arena) : arena;
    Lock lock(remap_lock);
    for (uint64_t i = table.count; i-- > 0;)
        if (arena - table.spans[i].arena < table.spans[i].to - table.spans[i].from)
            return table.spans[i].from + (arena - table.spans[i].arena);
    return arena;
}

void keep_remapped(uint64_t from, uint64_t to, uint64_t arena) {
    Remapped& table = all_remapped.here();
    Lock lock(remap_lock);
    for (uint64_t i = 0; i < table.count; ++i)
        if (table.spans[i].owned && table.spans[i].arena == arena) return;
    SpanPieces pieces;
    if (!room_in_table() || !look_at(from, to, pieces)) return;
    remember({.from = from,
              .to = to,
              .arena = arena,
              .look = pieces.hash(),
              .owned = true,
              .has_views = false,
              .shown = false});
}

void reclaim_remapped() {
    constexpr uint32_t kAtOnce = 256;
    uint64_t blocks[kAtOnce];
    uint32_t count = 0;
    if (any_capture_active()) return;
    Remapped& table = all_remapped.here();
    {
        Lock lock(remap_lock);
        if (table.bytes_since_look < kReclaimBytes && table.spans_since_look < kReclaimSpans) return;
        table.bytes_since_look = table.spans_since_look = 0;
        count = take_dead(blocks, kAtOnce);
    }
    for (uint32_t i = 0; i < count; ++i) give_back(Op::kHostFree, blocks[i]);
}

void take_pages_back() {
    Remapped& table = all_remapped.here();
    Lock lock(remap_lock);
    Mappings mappings;
    Mapping mapping;
    while (mappings.next(mapping))
        if (uint64_t arena = arena_behind(mapping))
            move_from_arena(mapping.from, mapping.to, reinterpret_cast<const char*>(arena));
    forget_edges();
    table.count = table.bytes_since_look = table.spans_since_look = 0;
}

}  // namespace smt::interpose::driver
