#include "runtime/device/spare_chunks.h"

#include <algorithm>
#include <iterator>

namespace smt::runtime::device {

bool SpareChunks::take(uint64_t bytes, MadeChunk* chunk) {
    const auto found =
        std::find_if(spare_.rbegin(), spare_.rend(), [=](const Spare& each) { return each.bytes == bytes; });
    if (found == spare_.rend()) return false;
    *chunk = found->chunk;
    bytes_ -= bytes;
    spare_.erase(std::prev(found.base()));
    return true;
}

std::vector<MadeChunk> SpareChunks::add(const MadeChunk& chunk, uint64_t bytes, Clock::time_point now) {
    if (bytes > most_bytes_) return {chunk};
    std::vector<MadeChunk> left;
    while (bytes_ + bytes > most_bytes_ || spare_.size() >= kMost) left.push_back(take_oldest());
    spare_.push_back({chunk, bytes, now});
    bytes_ += bytes;
    return left;
}

std::vector<MadeChunk> SpareChunks::take_unused(Clock::time_point now) {
    std::vector<MadeChunk> left;
    while (!spare_.empty() && now - spare_.front().since >= kLongest) left.push_back(take_oldest());
    return left;
}

std::vector<MadeChunk> SpareChunks::take_all() {
    std::vector<MadeChunk> left;
    while (!spare_.empty()) left.push_back(take_oldest());
    return left;
}

MadeChunk SpareChunks::take_oldest() {
    const Spare oldest = spare_.front();
    spare_.pop_front();
    bytes_ -= oldest.bytes;
    return oldest.chunk;
}

}  // namespace smt::runtime::device
