// Moving pages of the application between its own memory and the arena, under its feet: addresses
// stay, contents stay, only what lies behind them changes.
//
// A page is exchanged at once, but what another thread writes to it between its copy and its
// exchange is lost. Programs register memory before they put it to use.
#pragma once

#include <cstdint>

namespace smt::interpose::driver {

inline constexpr uint64_t kPage = 4096;
inline uint64_t page_floor(uint64_t address) { return address & ~(kPage - 1); }
inline uint64_t page_ceiling(uint64_t address) { return (address + kPage - 1) & ~(kPage - 1); }

enum class Pages {
    kMovable,   // private, readable and writable throughout
    kFixed,     // shared with others, or read-only: it is there but cannot be exchanged
    kOwnStack,  // holds the calling thread's stack
    kUnmapped,
};
Pages inspect_pages(uint64_t from, uint64_t to);
bool on_own_stack(uint64_t from, uint64_t to);

// [from, to) becomes a second view of the arena at `arena`, which gets its contents. kStuck: neither
// that nor the way back was possible, so the arena must never be given back.
enum class Moved { kAll, kNothing, kStuck };
Moved move_to_arena(uint64_t from, uint64_t to, char* arena);
// [from, to) gets private memory with the contents of the arena. False: some of it still shows the
// arena, which must then never be given back either.
bool move_from_arena(uint64_t from, uint64_t to, const char* arena);

// The first and the last page of registered memory usually hold other data too, the heap's own
// bookkeeping for one. A forked child shares what is mapped shared, so it takes these pages back as
// its own at once. Edges are remembered as far as there is room.
void keep_edge_from_children(uint64_t page);
void forget_edge(uint64_t page);
void forget_edges();

}  // namespace smt::interpose::driver
