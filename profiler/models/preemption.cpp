#include "profiler/models/preemption.h"

#include <algorithm>

namespace smt::profiler::models {

namespace {

uint32_t blocks_for(uint64_t ticket_ns, uint64_t block_ns) {
    const uint64_t each = std::max<uint64_t>(1, block_ns);
    return static_cast<uint32_t>(std::clamp<uint64_t>((ticket_ns + each / 2) / each, 1, kMostTicketBlocks));
}

}  // namespace

uint32_t ticket_blocks(uint64_t block_ns) { return blocks_for(kTicketNs, block_ns); }

uint32_t long_ticket_blocks(uint64_t block_ns) { return blocks_for(2 * kTicketNs, block_ns); }

uint32_t preemptible_ticket_blocks(uint64_t block_ns) {
    return std::max(blocks_for(kTicketNs / 2, block_ns), std::min(2u, ticket_blocks(block_ns)));
}

double stop_ns(const Stopped& kernel) {
    const double block = kernel.block_ns * kernel.multiprocessors * kernel.ctas_per_sm;
    if (block <= 0) return 0;
    return kNoticeNs + preemptible_ticket_blocks(static_cast<uint64_t>(block)) * block;
}

}  // namespace smt::profiler::models
