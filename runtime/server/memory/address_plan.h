// The address ranges of sessions. A session needs the same 512 GiB free in the server and in its
// client. The plan lists a few regions that programs rarely use, cut into slots. A slot belongs to one
// session. Any thread.
//
//   session := arena (kArenaBytes), device range (kDeviceRangeBytes)
//
// Regions differ in kind: a client that cannot map one (a sanitizer's shadow, a runtime with a large
// heap) is likely to map another.
//
// Servers of several GPUs in one folder avoid each other's slots as long as there are others, so that one can
// map memory of the other's sessions at its own addresses (memory/tenant_peers.cpp). A slot in use is a lock
// on a byte of a file there, which the kernel drops when the server ends.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <mutex>
#include <string>

#include "runtime/protocol/layout.h"

namespace smt::runtime::server {

class AddressPlan {
public:
    static constexpr uint64_t kSlotBytes = protocol::kArenaBytes + protocol::kDeviceRangeBytes;
    static constexpr int kRegions = 5;
    static int places();  // total number of slots

    ~AddressPlan();
    // Avoids slots of others with that file; before the first session. Without the file it does not.
    void share(const std::string& path);

    // Takes the first free slot of a region at or after `from`; -1: none. Slots are numbered per region.
    int take(int region, int from);
    bool take_exactly(int region, int slot);  // false: it is taken, or is none
    // Called periodically: keeps others off slots that were another server's when they were taken, as of the
    // process that this one takes over from.
    void lock_later();
    void give(int region, int slot);
    static uint64_t base(int region, int slot);
    // The begin of the device range of the plan that contains the address. 0: none does.
    static uint64_t device_range_of(uint64_t address);

private:
    static constexpr int kMostSlots = 128;
    bool lock(int region, int slot, bool wanted);
    void own(int region, int slot, bool locked);

    int file_ = -1;
    std::mutex mutex_;
    std::array<std::bitset<kMostSlots>, kRegions> taken_{};
    std::array<std::bitset<kMostSlots>, kRegions> unlocked_{};  // of those
};

}  // namespace smt::runtime::server
