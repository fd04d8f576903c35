#include "runtime/server/memory/address_plan.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace smt::runtime::server {

namespace {

struct Region {
    uint64_t base;
    int slots;
};

constexpr int kSlotsOfTib = static_cast<int>((1ull << 40) / AddressPlan::kSlotBytes);

// 32 TiB and above: higher than programs' low mappings, lower than executables and libraries. The next two
// regions follow the same idea. The last two are in the part that ThreadSanitizer leaves to a program: below
// its libraries and around its executable, so a slot there may be occupied.
constexpr Region kPlan[AddressPlan::kRegions] = {
    {0x2000'0000'0000, 48 * kSlotsOfTib}, {0x6000'0000'0000, 24 * kSlotsOfTib},
    {0x1800'0000'0000, 8 * kSlotsOfTib},  {0x7e80'0000'0000, kSlotsOfTib},
    {0x5500'0000'0000, kSlotsOfTib},
};

// ThreadSanitizer aborts a process that maps memory outside the part that it leaves to the program.
#ifdef __SANITIZE_THREAD__
constexpr int kFirstRegion = 3;
#else
constexpr int kFirstRegion = 0;
#endif

}  // namespace

int AddressPlan::places() {
    int all = 0;
    for (int region = kFirstRegion; region < kRegions; ++region)
        all += std::min(kPlan[region].slots, kMostSlots);
    return all;
}

AddressPlan::~AddressPlan() {
    if (file_ >= 0) close(file_);
}

void AddressPlan::share(const std::string& path) {
    file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

// False: another server has the slot. Without a file there is no other server.
bool AddressPlan::lock(int region, int slot, bool wanted) {
    if (file_ < 0) return true;
    struct flock range{};
    range.l_type = wanted ? F_WRLCK : F_UNLCK;
    range.l_whence = SEEK_SET;
    range.l_start = region * kMostSlots + slot;
    range.l_len = 1;
    return fcntl(file_, F_SETLK, &range) == 0 || (errno != EAGAIN && errno != EACCES);
}

int AddressPlan::take(int region, int from) {
    if (region < kFirstRegion) return -1;
    std::lock_guard guard(mutex_);
    for (const bool alone : {true, false}) {
        for (int slot = from; slot < kPlan[region].slots && slot < kMostSlots; ++slot) {
            if (taken_[region][slot]) continue;
            const bool locked = lock(region, slot, true);
            if (!locked && alone) continue;
            own(region, slot, locked);
            return slot;
        }
    }
    return -1;
}

bool AddressPlan::take_exactly(int region, int slot) {
    if (region < kFirstRegion || region >= kRegions || slot < 0 || slot >= kPlan[region].slots ||
        slot >= kMostSlots)
        return false;
    std::lock_guard guard(mutex_);
    if (taken_[region][slot]) return false;
    own(region, slot, lock(region, slot, true));  // the process that it is taken over from may still have it
    return true;
}

void AddressPlan::own(int region, int slot, bool locked) {
    taken_[region].set(slot);
    unlocked_[region].set(slot, !locked);
}

void AddressPlan::lock_later() {
    std::lock_guard guard(mutex_);
    for (int region = kFirstRegion; region < kRegions; ++region) {
        for (int slot = 0; unlocked_[region].any() && slot < kMostSlots; ++slot)
            if (unlocked_[region][slot] && lock(region, slot, true)) unlocked_[region].reset(slot);
    }
}

void AddressPlan::give(int region, int slot) {
    std::lock_guard guard(mutex_);
    taken_[region].reset(slot);
    unlocked_[region].reset(slot);
    lock(region, slot, false);
}

uint64_t AddressPlan::base(int region, int slot) {
    return kPlan[region].base + static_cast<uint64_t>(slot) * kSlotBytes;
}

uint64_t AddressPlan::device_range_of(uint64_t address) {
    for (const Region& region : kPlan) {
        const uint64_t slot = (address - region.base) / kSlotBytes;
        const uint64_t range = region.base + slot * kSlotBytes + protocol::kArenaBytes;
        if (address >= region.base && slot < static_cast<uint64_t>(region.slots) && address >= range)
            return range;
    }
    return 0;
}

}  // namespace smt::runtime::server
