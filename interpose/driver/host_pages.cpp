// Pages are exchanged by mremap, which replaces an existing mapping in one step.
#include "interpose/driver/host_pages.h"

#include <pthread.h>
#include <sys/mman.h>

#include <atomic>

#include "interpose/driver/mappings.h"
#include "interpose/process/session.h"

namespace smt::interpose::driver {
namespace {

// The largest size of one exchange: few writes of other threads fall between its copy and its exchange.
constexpr uint64_t kMove = 2ull << 20;

constexpr uint32_t kEdges = 4096;
struct Edges {
    std::atomic<uint64_t> pages[kEdges];
};
constinit PerSession<Edges> edges;
constinit std::atomic<bool> fork_watched{false};

void* at(uint64_t address) { return reinterpret_cast<void*>(address); }

uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

// The size of the exchange at `done`. The outer pages are moved alone: they may hold other data that another
// thread is writing.
uint64_t next_move(uint64_t from, uint64_t to, uint64_t done) {
    return done == from || to - done == kPage ? kPage : least(to - done - kPage, kMove);
}

// The first write to a page takes longer than its copy.
void touch_pages(char* pages, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; i += kPage) static_cast<volatile char*>(pages)[i] = 0;
}

// The pages' other contents are copied too, for example the heap's bookkeeping and red zones. memcpy is
// unsuitable: the sanitizers replace it by a checking version.
void copy_pages(void* to, const void* from, uint64_t bytes) {
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

void take_page_back(uint64_t page) {
    char kept[kPage];
    copy_pages(kept, at(page), kPage);
    void* fresh =
        mmap(at(page), kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (fresh != MAP_FAILED) copy_pages(fresh, kept, kPage);
}

// An edge that shows the arena no more was freed by the program.
void take_session_edges_back() {
    Mappings mappings;
    Mapping mapping;
    while (mappings.next(mapping)) {
        if (!arena_behind(mapping)) continue;
        for (std::atomic<uint64_t>& edge : edges.here().pages) {
            uint64_t page = edge.load(std::memory_order_relaxed);
            if (page >= mapping.from && page < mapping.to) take_page_back(page);
        }
    }
    forget_edges();
}

// Runs in the child of a fork, which has one thread.
void take_edges_back() {
    Session* const before = thread_session;
    for (Session& session : sessions) {
        thread_session = &session;
        if (find_arena()) take_session_edges_back();
    }
    thread_session = before;
}

}  // namespace

bool on_own_stack(uint64_t from, uint64_t to) {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
    void* stack = nullptr;
    size_t bytes = 0;
    bool known = pthread_attr_getstack(&attributes, &stack, &bytes) == 0;
    pthread_attr_destroy(&attributes);
    uint64_t low = reinterpret_cast<uint64_t>(stack);
    return known && from < low + bytes && low < to;
}

Pages inspect_pages(uint64_t from, uint64_t to) {
    if (on_own_stack(from, to)) return Pages::kOwnStack;
    Mappings mappings;
    Mapping mapping;
    uint64_t covered = from;
    bool movable = true;
    while (covered < to && mappings.next(mapping)) {
        if (mapping.to <= covered) continue;
        if (mapping.from > covered || !mapping.readable) return Pages::kUnmapped;
        movable = movable && mapping.own_and_writable();
        covered = mapping.to;
    }
    if (covered < to) return Pages::kUnmapped;
    return movable ? Pages::kMovable : Pages::kFixed;
}

// mremap with an old size of 0 makes a second mapping of shared pages, here of the arena's.
Moved move_to_arena(uint64_t from, uint64_t to, char* arena) {
    for (uint64_t done = from; done < to;) {
        uint64_t bytes = next_move(from, to, done);
        char* source = arena + (done - from);
        copy_pages(source, at(done), bytes);
        void* view = mremap(source, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at(done));
        if (view == MAP_FAILED) return move_from_arena(from, done, arena) ? Moved::kNothing : Moved::kStuck;
        madvise(view, bytes, MADV_DOFORK);
        done += bytes;
    }
    return Moved::kAll;
}

void forbid_growth(uint64_t from) { madvise(at(from), kPage, MADV_RANDOM); }

// The pieces come from one mapping, so the kernel makes one mapping of them again.
bool move_from_arena(uint64_t from, uint64_t to, const char* arena) {
    if (from == to) return true;
    void* all = mmap(nullptr, to - from, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return false;
    for (uint64_t done = from; done < to;) {
        uint64_t bytes = next_move(from, to, done);
        char* fresh = static_cast<char*>(all) + (done - from);
        touch_pages(fresh, bytes);
        copy_pages(fresh, arena + (done - from), bytes);
        if (mremap(fresh, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at(done)) == MAP_FAILED) {
            munmap(fresh, to - done);
            return false;
        }
        done += bytes;
    }
    return true;
}

// What is not read of the mappings might show the block, so they must include the arena itself.
bool take_block_back(uint64_t arena, uint64_t bytes) {
    if (!find_arena()) return false;
    bool found_arena = false, all = true;
    Mappings mappings;
    Mapping mapping;
    while (mappings.next(mapping)) {
        found_arena |= mapping.from <= arena && arena < mapping.to;
        const uint64_t shown = arena_behind(mapping);
        const uint64_t from = shown < arena ? arena : shown;
        const uint64_t to = least(shown + (mapping.to - mapping.from), arena + bytes);
        if (shown == 0 || from >= to) continue;
        const uint64_t place = mapping.from - shown;  // of a page, from its place in the arena
        all &= move_from_arena(from + place, to + place, reinterpret_cast<const char*>(from));
    }
    return found_arena && all;
}

void keep_edge_from_children(uint64_t page) {
    if (!find_arena()) return;
    if (!fork_watched.exchange(true)) pthread_atfork(nullptr, nullptr, take_edges_back);
    for (std::atomic<uint64_t>& edge : edges.here().pages) {
        uint64_t none = 0;
        if (edge.load(std::memory_order_relaxed) == 0 && edge.compare_exchange_strong(none, page)) return;
    }
}

void forget_edges() {
    for (std::atomic<uint64_t>& edge : edges.here().pages) edge.store(0, std::memory_order_relaxed);
}

void forget_edge(uint64_t page) {
    for (std::atomic<uint64_t>& edge : edges.here().pages) {
        uint64_t held = page;
        if (edge.load(std::memory_order_relaxed) == page && edge.compare_exchange_strong(held, 0)) return;
    }
}

}  // namespace smt::interpose::driver
