// A line is "from-to rwxp offset major:minor inode   name", all but the inode in hexadecimal.
#include "interpose/driver/mappings.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "interpose/process/session.h"

namespace smt::interpose::driver {
namespace {

// An arena's file, set by find_arena(): a forked child has the views of it but not the arena.
struct ArenaFile {
    std::atomic<uint64_t> device;
    std::atomic<uint64_t> inode;
};
constinit PerSession<ArenaFile> arena_files;

uint64_t arena_address() { return reinterpret_cast<uint64_t>(this_session().arena_base()); }

}  // namespace

Mappings::Mappings() : file_(open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}

Mappings::~Mappings() {
    if (file_ >= 0) close(file_);
}

int Mappings::get() {
    if (at_ == filled_) {
        if (file_ < 0) return -1;
        filled_ = read(file_, buffer_, sizeof buffer_);
        at_ = 0;
        if (filled_ <= 0) return filled_ = 0, -1;
    }
    return static_cast<unsigned char>(buffer_[at_++]);
}

bool Mappings::number(int base, char end, uint64_t& value) {
    value = 0;
    for (int c = get(); c != end; c = get()) {
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : base;
        if (digit >= base) return false;
        value = value * static_cast<uint64_t>(base) + static_cast<uint64_t>(digit);
    }
    return true;
}

bool Mappings::next(Mapping& mapping) {
    constexpr char kStack[] = "[stack]";
    int rights[5];
    uint64_t major, minor;
    if (!number(16, '-', mapping.from) || !number(16, ' ', mapping.to)) return false;
    for (int& right : rights) {
        right = get();
        if (right < 0) return false;
    }
    if (!number(16, ' ', mapping.offset) || !number(16, ':', major) || !number(16, ' ', minor) ||
        !number(10, ' ', mapping.inode))
        return false;
    mapping.device = major << 32 | minor;
    mapping.readable = rights[0] == 'r';
    mapping.writable = rights[1] == 'w';
    mapping.shared = rights[3] == 's';
    size_t same = 0;
    for (int c = get(); c >= 0 && c != '\n'; c = get())
        if (c != ' ') same = same < sizeof kStack - 1 && c == kStack[same] ? same + 1 : sizeof kStack;
    mapping.main_stack = same == sizeof kStack - 1;
    return true;
}

bool find_arena() {
    ArenaFile& file = arena_files.here();
    if (file.inode.load(std::memory_order_acquire) != 0) return true;
    if (!this_session().arena_base()) return false;
    Mappings mappings;
    Mapping mapping;
    while (mappings.next(mapping)) {
        if (arena_address() < mapping.from || arena_address() >= mapping.to) continue;
        file.device.store(mapping.device, std::memory_order_relaxed);
        file.inode.store(mapping.inode, std::memory_order_release);
        return mapping.inode != 0;
    }
    return false;
}

uint64_t arena_behind(const Mapping& mapping) {
    if (!mapping.shared || mapping.inode == 0 || !find_arena()) return 0;
    const ArenaFile& file = arena_files.here();
    if (mapping.inode != file.inode.load(std::memory_order_relaxed) ||
        mapping.device != file.device.load(std::memory_order_relaxed))
        return 0;
    uint64_t shown = arena_address() + mapping.offset;
    return shown == mapping.from ? 0 : shown;
}

}  // namespace smt::interpose::driver
