// Pages change hands by mremap, which replaces what was mapped in one step.
#include "interpose/driver/host_pages.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

namespace smt::interpose::driver {
namespace {

// How much is exchanged at a time: little enough that the copy's double need of memory is small and
// few writes of other threads can fall between copy and exchange, much enough for few mappings.
constexpr uint64_t kMoveIn = 2ull << 20;
constexpr uint64_t kMoveOut = 64ull << 20;

constexpr uint32_t kEdges = 4096;
constinit std::atomic<uint64_t> edges[kEdges]{};
constinit std::atomic<bool> fork_watched{false};

// Reads /proc/self/maps line by line: "from-to rwxp ..." in hexadecimal.
class Mappings {
public:
    Mappings() : file_(open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}
    ~Mappings() {
        if (file_ >= 0) close(file_);
    }

    bool next(uint64_t& from, uint64_t& to, char (&rights)[4]) {
        int c;
        if (!number('-', from) || !number(' ', to)) return false;
        for (char& right : rights) {
            if ((c = get()) < 0) return false;
            right = static_cast<char>(c);
        }
        while ((c = get()) >= 0 && c != '\n') {
        }
        return true;
    }

private:
    int get() {
        if (at_ == filled_) {
            if (file_ < 0) return -1;
            filled_ = read(file_, buffer_, sizeof buffer_);
            at_ = 0;
            if (filled_ <= 0) return filled_ = 0, -1;
        }
        return static_cast<unsigned char>(buffer_[at_++]);
    }
    bool number(char end, uint64_t& value) {
        value = 0;
        for (int c = get(); c != end; c = get()) {
            int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
            if (digit < 0) return false;
            value = value << 4 | static_cast<uint64_t>(digit);
        }
        return true;
    }

    int file_;
    char buffer_[4096];
    ssize_t filled_ = 0;
    ssize_t at_ = 0;
};

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

void* at(uint64_t address) { return reinterpret_cast<void*>(address); }

uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

// In the child of a fork: one thread, nobody else looks.
void take_edges_back() {
    for (std::atomic<uint64_t>& edge : edges) {
        uint64_t page = edge.exchange(0, std::memory_order_relaxed);
        if (page == 0) continue;
        char kept[kPage];
        std::memcpy(kept, at(page), kPage);
        void* fresh =
            mmap(at(page), kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        if (fresh != MAP_FAILED) std::memcpy(fresh, kept, kPage);
    }
}

}  // namespace

Pages inspect_pages(uint64_t from, uint64_t to) {
    if (on_own_stack(from, to)) return Pages::kOwnStack;
    Mappings mappings;
    uint64_t covered = from;
    uint64_t low, high;
    char rights[4];
    bool movable = true;
    while (covered < to && mappings.next(low, high, rights)) {
        if (high <= covered) continue;
        if (low > covered || rights[0] != 'r') return Pages::kUnmapped;
        movable = movable && rights[1] == 'w' && rights[3] == 'p';
        covered = high;
    }
    if (covered < to) return Pages::kUnmapped;
    return movable ? Pages::kMovable : Pages::kFixed;
}

// mremap with an old size of 0 makes a second mapping of shared pages, here of the arena's.
Moved move_to_arena(uint64_t from, uint64_t to, char* arena) {
    for (uint64_t done = from; done < to;) {
        uint64_t bytes = least(to - done, kMoveIn);
        char* source = arena + (done - from);
        std::memcpy(source, at(done), bytes);
        void* view = mremap(source, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at(done));
        if (view == MAP_FAILED) return move_from_arena(from, done, arena) ? Moved::kNothing : Moved::kStuck;
        madvise(view, bytes, MADV_DOFORK);
        done += bytes;
    }
    return Moved::kAll;
}

bool move_from_arena(uint64_t from, uint64_t to, const char* arena) {
    for (uint64_t done = from; done < to;) {
        uint64_t bytes = least(to - done, kMoveOut);
        void* fresh = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (fresh == MAP_FAILED) return false;
        std::memcpy(fresh, arena + (done - from), bytes);
        if (mremap(fresh, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at(done)) == MAP_FAILED) {
            munmap(fresh, bytes);
            return false;
        }
        done += bytes;
    }
    return true;
}

void keep_edge_from_children(uint64_t page) {
    if (!fork_watched.exchange(true)) pthread_atfork(nullptr, nullptr, take_edges_back);
    for (std::atomic<uint64_t>& edge : edges) {
        uint64_t none = 0;
        if (edge.load(std::memory_order_relaxed) == 0 && edge.compare_exchange_strong(none, page)) return;
    }
}

void forget_edge(uint64_t page) {
    for (std::atomic<uint64_t>& edge : edges) {
        uint64_t held = page;
        if (edge.load(std::memory_order_relaxed) == page && edge.compare_exchange_strong(held, 0)) return;
    }
}

}  // namespace smt::interpose::driver
