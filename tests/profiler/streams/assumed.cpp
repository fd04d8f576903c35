#include "tests/profiler/streams/assumed.h"

#include <algorithm>

namespace smt::tests {

using runtime::device::simulated::InstructionStream;

namespace {

constexpr double kSectorsOfRequest = 4;

}  // namespace

void AssumedMultiprocessor::add(const InstructionStream& stream, int blocks, size_t which) {
    for (int i = 0; i < blocks; ++i) {
        const size_t block = static_cast<size_t>(i) % stream.blocks.size();
        for (size_t w = 0; w < stream.blocks[block].warps.size(); ++w) {
            const auto& list = stream.blocks[block].warps[w];
            if (list.empty()) continue;
            // Not in step: as if the blocks had come one after the other.
            const size_t at = list.size() * static_cast<size_t>(i) / static_cast<size_t>(blocks);
            schedulers_[warps_++ % schedulers_.size()].warps.push_back({&stream, block, w, which, at});
        }
    }
}

void AssumedMultiprocessor::issue(Warp& warp, long now) {
    const auto& list = warp.stream->blocks[warp.block].warps[warp.warp];
    const InstructionStream::Executed& what = list[warp.at];
    warp.at = (warp.at + 1) % list.size();
    warp.ready = static_cast<double>(now + 1);
    if (!warp.stream->instructions[what.instruction].to_memory()) return;
    const double own = std::max(1.0, what.transactions / kSectorsOfRequest);
    requests_ += own;
    const double latency =
        memory_.latency + (memory_.contention * requests_ + own - 1) / memory_.requests_per_cycle;
    warp.ready = static_cast<double>(now) + latency;
    under_way_.push({warp.ready, own});
}

std::array<double, 2> AssumedMultiprocessor::run(long first, long all) {
    std::array<double, 2> issued{};
    for (long now = 0; now < all; ++now) {
        while (!under_way_.empty() && under_way_.top().over <= static_cast<double>(now)) {
            requests_ -= under_way_.top().requests;
            under_way_.pop();
        }
        for (Scheduler& scheduler : schedulers_) {
            const size_t count = scheduler.warps.size();
            for (size_t i = 0; i < count; ++i) {
                Warp& warp = scheduler.warps[(scheduler.turn + i) % count];
                if (warp.ready > static_cast<double>(now)) continue;
                issue(warp, now);
                issued[warp.which] += now >= first;
                scheduler.turn = (scheduler.turn + i + 1) % count;
                break;
            }
        }
    }
    for (double& each : issued) each /= static_cast<double>(all - first);
    return issued;
}

}  // namespace smt::tests
