#include "runtime/device/simulated/exec/memory.h"

#include <sys/mman.h>

#include <cstring>
#include <iterator>

namespace smt::runtime::device::simulated {
namespace {

// Address space for memory of our own; pages come when they are touched.
constexpr uint64_t kReserved = 64ull << 30;
#ifdef __SANITIZE_THREAD__  // beside the sessions' slots, in what it leaves to a program
constexpr uint64_t kPlaces[] = {0x5600'0000'0000, 0x5620'0000'0000, 0x5640'0000'0000, 0x7f90'0000'0000};
#else
constexpr uint64_t kPlaces[] = {0x6e00'0000'0000, 0x6d00'0000'0000, 0x6c00'0000'0000, 0x5a00'0000'0000};
#endif
constexpr uint64_t kGuard = 4096;  // never live: what runs off an end is not in the next range

uint64_t reserve() {
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    for (uint64_t place : kPlaces) {
        void* at = mmap(reinterpret_cast<void*>(place), kReserved, PROT_READ | PROT_WRITE,
                        flags | MAP_FIXED_NOREPLACE, -1, 0);
        if (at == reinterpret_cast<void*>(place)) return place;
        if (at != MAP_FAILED) munmap(at, kReserved);
    }
    void* at = mmap(nullptr, kReserved, PROT_READ | PROT_WRITE, flags, -1, 0);
    return at == MAP_FAILED ? 0 : reinterpret_cast<uint64_t>(at);
}

}  // namespace

Memory::~Memory() {
    if (base_ != 0) munmap(reinterpret_cast<void*>(base_), kReserved);
}

// Cuts [begin, end) out of what is there and puts one range of the state in its place.
void Memory::mark(uint64_t begin, uint64_t end, State state) {
    auto at = ranges_.upper_bound(begin);
    if (at != ranges_.begin()) at = std::prev(at);
    while (at != ranges_.end() && at->second.begin < end) {
        Range old = at->second;
        if (old.end <= begin) {
            ++at;
            continue;
        }
        at = ranges_.erase(at);
        if (old.begin < begin) ranges_[old.begin] = {old.begin, begin, old.state};
        if (old.end > end) at = ranges_.insert_or_assign(end, Range{end, old.end, old.state}).first;
    }
    if (state != State::kUnknown) ranges_[begin] = {begin, end, state};
    generation_.fetch_add(1, std::memory_order_release);
}

void Memory::allocated(uint64_t address, uint64_t bytes) {
    if (bytes == 0) return;
    std::lock_guard lock(mutex_);
    mark(address, address + bytes, State::kLive);
}

void Memory::freed(uint64_t address, uint64_t bytes) {
    if (bytes == 0) return;
    std::lock_guard lock(mutex_);
    mark(address, address + bytes, State::kFreed);
}

void Memory::forget(uint64_t address, uint64_t bytes) {
    if (bytes == 0) return;
    std::lock_guard lock(mutex_);
    mark(address, address + bytes, State::kUnknown);
}

uint64_t Memory::obtain(uint64_t bytes, uint64_t alignment) {
    if (bytes == 0 || alignment == 0 || bytes > kReserved) return 0;
    std::lock_guard lock(mutex_);
    uint64_t room = round_up(bytes, 256);
    uint64_t address = 0;
    for (auto idle = idle_.lower_bound(room); idle != idle_.end() && idle->first <= 2 * room; ++idle) {
        if (idle->second % alignment != 0) continue;
        address = idle->second;
        room = idle->first;
        idle_.erase(idle);
        std::memset(reinterpret_cast<void*>(address), 0, room);
        break;
    }
    if (address == 0) {
        if (base_ == 0) base_ = next_ = reserve();
        if (base_ == 0) return 0;
        uint64_t place = round_up(next_ + kGuard, alignment < 256 ? 256 : alignment);
        if (place + room > base_ + kReserved) return 0;
        address = place;
        next_ = place + room;
    }
    own_[address] = room;
    mark(address, address + bytes, State::kLive);
    return address;
}

void Memory::give_back(uint64_t address) {
    std::lock_guard lock(mutex_);
    auto own = own_.find(address);
    if (own == own_.end()) return;
    idle_.emplace(own->second, address);
    mark(address, address + own->second, State::kFreed);
    own_.erase(own);
}

Memory::Range Memory::find(uint64_t address) const {
    std::lock_guard lock(mutex_);
    auto at = ranges_.upper_bound(address);
    if (at != ranges_.begin() && std::prev(at)->second.end > address) return std::prev(at)->second;
    return {};
}

}  // namespace smt::runtime::device::simulated
