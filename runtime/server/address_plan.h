// The address ranges of sessions. A session needs the same 512 GiB free in the server and in its
// client. The plan lists a few regions that programs rarely use, cut into slots. A slot belongs to one
// session. Any thread.
//
//   session := arena (kArenaBytes), device range (kDeviceRangeBytes)
//
// Regions differ in kind: a client that cannot map one (a sanitizer's shadow, a runtime with a large
// heap) is likely to map another.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <mutex>

#include "runtime/protocol/layout.h"

namespace smt::runtime::server {

class AddressPlan {
public:
    static constexpr uint64_t kSlotBytes = protocol::kArenaBytes + protocol::kDeviceRangeBytes;
    static constexpr int kRegions = 5;
    static int places();  // total number of slots

    // Takes the first free slot of a region at or after `from`; -1: none. Slots are numbered per region.
    int take(int region, int from);
    bool take_exactly(int region, int slot);  // false: it is taken, or is none
    void give(int region, int slot);
    static uint64_t base(int region, int slot);

private:
    static constexpr int kMostSlots = 128;
    std::mutex mutex_;
    std::array<std::bitset<kMostSlots>, kRegions> taken_{};
};

}  // namespace smt::runtime::server
