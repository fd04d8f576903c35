#include "runtime/device/simulated/machine/occupancy.h"

#include <algorithm>

namespace smt::runtime::device::simulated {

namespace {

constexpr uint32_t round_up(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

uint32_t BlockNeeds::warp_registers() const { return round_up(registers * kWarpThreads, kRegisterUnit); }

uint32_t BlockNeeds::shared_allocated() const {
    return round_up(shared_bytes + kReservedSharedBytes, kSharedUnit);
}

bool BlockNeeds::possible() const {
    if (threads == 0 || threads > kMostBlockThreads || registers > kMostThreadRegisters) return false;
    // The hardware's own check counts registers in all sub-partitions alike.
    if (warp_registers() * round_up(warps(), kPartitions) > kRegisters) return false;
    return shared_bytes <= kMostBlockSharedBytes && barriers <= kMostBarriers;
}

uint32_t blocks_per_multiprocessor(const BlockNeeds& needs) {
    if (!needs.possible()) return 0;
    uint32_t blocks = std::min(kMostBlocks, kMostWarps / needs.warps());
    if (needs.registers) {
        const uint32_t warps = kRegisters / kPartitions / needs.warp_registers() * kPartitions;
        blocks = std::min(blocks, warps / needs.warps());
    }
    if (needs.barriers) blocks = std::min(blocks, kMostBarriers / needs.barriers);
    return std::min(blocks, kSharedBytes / needs.shared_allocated());
}

uint32_t dynamic_shared_for(const BlockNeeds& needs, uint32_t blocks) {
    if (blocks == 0) return 0;
    const uint32_t share = kSharedBytes / blocks / kSharedUnit * kSharedUnit;
    const uint32_t taken = needs.shared_bytes + kReservedSharedBytes;
    if (share <= taken) return 0;
    return std::min(share - taken, kMostBlockSharedBytes - needs.shared_bytes);
}

}  // namespace smt::runtime::device::simulated
