// Where sessions lie. A session needs the same 512 GiB free in the server and in its client, so the
// plan names a few regions that programs rarely use, cut into slots; a slot belongs to one session.
//
//   session := arena (kArenaBytes), device range (kDeviceRangeBytes)
//
// Regions differ in kind, so that a client that cannot map one (a sanitizer's shadow, a runtime
// with a huge heap) is likely to map another.
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
    static int places();   // sessions that fit

    // A free slot of a region at or after `from`, taken; -1: none. Slots count within their region.
    int take(int region, int from);
    void give(int region, int slot);
    static uint64_t base(int region, int slot);

private:
    static constexpr int kMostSlots = 128;
    std::mutex mutex_;
    std::array<std::bitset<kMostSlots>, kRegions> taken_{};
};

}  // namespace smt::runtime::server
