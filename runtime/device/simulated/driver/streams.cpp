#include "runtime/device/simulated/driver/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace smt::runtime::device::simulated {

std::unique_ptr<InstructionStream> Streams::begin(const Grid& grid) {
    if (folder_.empty() || seen_[fmt::format("{} {}", grid.name, grid.needs.threads)]++) return nullptr;
    auto stream = std::make_unique<InstructionStream>();
    stream->kernel = grid.name;
    stream->needs = grid.needs;
    stream->grid_blocks = grid.size.count();
    return stream;
}

std::unique_ptr<Block> Streams::watch(InstructionStream& stream, uint64_t index,
                                      std::unique_ptr<Block> block) const {
    const uint64_t apart = std::max<uint64_t>(1, stream.grid_blocks / kRecordedBlocks);
    if (index % apart || stream.blocks.size() >= kRecordedBlocks) return block;
    return std::make_unique<RecordedBlock>(std::move(block), stream);
}

void Streams::end(const InstructionStream& stream) {
    std::ofstream(fmt::format("{}/{}-{}.stream", folder_, stream.kernel, stream.needs.threads)) << stream;
}

}  // namespace smt::runtime::device::simulated
