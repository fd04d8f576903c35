// What another process needs of an arena to take it over.
#include <algorithm>

#include "runtime/protocol/try.h"
#include "runtime/server/memory/arena.h"

namespace smt::runtime::server {

namespace {

constexpr uint32_t kArenaPart = 0x41524e41;

struct SavedBlock {
    uint64_t offset;
    uint64_t bytes;
    uint64_t pinned;
    uint64_t host;
};

}  // namespace

bool Arena::shows_other_pages() const {
    std::lock_guard lock(mutex_);
    const auto shows = [](const auto& each) { return each.second.showing; };
    return std::any_of(blocks_.begin(), blocks_.end(), shows) ||
           std::any_of(dying_.begin(), dying_.end(), shows);
}

bool Arena::all_released() {
    release_dying();
    std::lock_guard lock(mutex_);
    return dying_.empty();
}

void Arena::save(protocol::StateWriter& out) {
    std::map<uint64_t, Block> dying;
    {
        std::lock_guard lock(mutex_);
        dying.swap(dying_);
    }
    for (const auto& [offset, block] : dying) give_pages(offset, block.bytes);
    std::lock_guard lock(mutex_);
    std::vector<SavedBlock> blocks;
    std::vector<uint64_t> holes;
    for (const auto& [offset, block] : blocks_)
        blocks.push_back({offset, block.bytes, block.pinned, block.host});
    for (const auto& [offset, bytes] : free_) holes.push_back(offset), holes.push_back(bytes);
    out.part(kArenaPart);
    out.list(blocks);
    out.list(holes);
    out.list(idle_staging_);
    out.list(idle_words_);
    out.scalar(next_word_);
}

CUresult Arena::restore(protocol::Reader& in, int file, uint64_t base) {
    file_ = file;
    if (!protocol::take_part(in, kArenaPart) || !map(base)) return CUDA_ERROR_INVALID_VALUE;
    const std::vector<SavedBlock> blocks = protocol::take_list<SavedBlock>(in);
    const std::vector<uint64_t> holes = protocol::take_list<uint64_t>(in);
    idle_staging_ = protocol::take_list<Staging>(in);
    idle_words_ = protocol::take_list<Word>(in);
    next_word_ = in.scalar<uint32_t>();
    if (!in.good() || next_word_ > protocol::kEventWords + protocol::kServerWords)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i + 1 < holes.size(); i += 2) free_[holes[i]] = holes[i + 1];
    SMT_TRY(register_words());
    for (const SavedBlock& each : blocks) {
        if (each.bytes > protocol::kArenaBytes || each.offset > protocol::kArenaBytes - each.bytes)
            return CUDA_ERROR_INVALID_VALUE;
        Block block{each.bytes, false, each.host != 0, false, {}};
        if (block.host && !block.charge.take(account_, block.bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
        if (each.pinned) SMT_TRY(pin(each.offset, each.bytes));
        block.pinned = each.pinned != 0;
        blocks_[each.offset] = std::move(block);
    }
    return CUDA_SUCCESS;
}

}  // namespace smt::runtime::server
