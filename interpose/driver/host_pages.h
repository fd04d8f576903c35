// Moves pages of the application between its own memory and this_session()'s arena. Addresses and contents
// stay; only the backing memory changes.
//
// A page is exchanged at once, but a write by another thread between the page's copy and its exchange is
// lost. Programs register memory before they use it. The first and the last page, which may hold other data,
// are exchanged alone.
#pragma once

#include <cstdint>

namespace smt::interpose::driver {

inline constexpr uint64_t kPage = 4096;
inline uint64_t page_floor(uint64_t address) { return address & ~(kPage - 1); }
inline uint64_t page_ceiling(uint64_t address) { return (address + kPage - 1) & ~(kPage - 1); }

enum class Pages {
    kMovable,   // private, readable and writable throughout
    kFixed,     // present but not exchangeable: shared or read-only
    kOwnStack,  // holds the calling thread's stack
    kUnmapped,
};
Pages inspect_pages(uint64_t from, uint64_t to);
bool on_own_stack(uint64_t from, uint64_t to);

// Makes [from, to) a second view of the arena at `arena`, which gets its contents. kStuck: neither the move
// nor its reversal was possible, so the arena memory must never be freed.
enum class Moved { kAll, kNothing, kStuck };
Moved move_to_arena(uint64_t from, uint64_t to, char* arena);
// Behind move_to_arena(): the kernel could extend a single mapping in place, into the arena memory after the
// block; realloc tries that. Two mappings it cannot.
void forbid_growth(uint64_t from);
// Gives [from, to) private memory with the contents of the arena. false: part of it still shows the arena,
// which must then never be freed either.
bool move_from_arena(uint64_t from, uint64_t to, const char* arena);
// The same for whatever pages of the process show the block, because the program may have unmapped or moved
// those that it registered.
bool take_block_back(uint64_t arena, uint64_t bytes);

// The first and the last page of registered memory usually hold other data too, for example the heap's
// bookkeeping. A forked child shares what is mapped shared, so it makes these pages private again at once.
// Edges are recorded as far as there is room.
void keep_edge_from_children(uint64_t page);
void forget_edge(uint64_t page);
void forget_edges();  // of this_session()

}  // namespace smt::interpose::driver
