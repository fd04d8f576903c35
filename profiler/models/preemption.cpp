#include "profiler/models/preemption.h"

#include <algorithm>

namespace smt::profiler::models {

uint32_t ticket_blocks(uint64_t block_ns) {
    const uint64_t each = std::max<uint64_t>(1, block_ns);
    return static_cast<uint32_t>(std::clamp<uint64_t>((kTicketNs + each / 2) / each, 1, kMostTicketBlocks));
}

double stop_ns(const Stopped& kernel) {
    const double block = kernel.block_ns * kernel.multiprocessors * kernel.ctas_per_sm;
    if (block <= 0) return 0;
    return kNoticeNs + ticket_blocks(static_cast<uint64_t>(block)) * block;
}

}  // namespace smt::profiler::models
