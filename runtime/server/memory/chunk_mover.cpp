// See chunk_mover.h.
#include "runtime/server/memory/chunk_mover.h"

#include <algorithm>
#include <utility>

#include "runtime/protocol/try.h"

namespace smt::runtime::server {

namespace {

using MoveClock = std::chrono::steady_clock;

}  // namespace

ChunkMover::ChunkMover(device::Device& device, MakeBlock make_block)
    : device_(device), driver_(device.driver()), make_block_(std::move(make_block)) {}

CUresult ChunkMover::Copying::settle() {
    const CUresult over = driver.cuStreamSynchronize(stream);
    for (const auto& block : blocks) block->let_go();
    blocks.clear();
    return over;
}

// A stream for these copies alone: they take long, and would hold up what other sessions need on a shared
// one. Also after an error the copies have ended when it returns.
CUresult ChunkMover::with_stream(const Copies& copies) {
    Copying copying{driver_};
    SMT_TRY(driver_.cuStreamCreate(&copying.stream, CU_STREAM_NON_BLOCKING));
    const CUresult enqueued = copies(copying), over = copying.settle();
    driver_.cuStreamDestroy_v2(copying.stream);
    return enqueued != CUDA_SUCCESS ? enqueued : over;
}

// False: there is no host memory, as the outcome says.
bool ChunkMover::next_piece(Filling& filling, uint64_t bytes, Copying& copying, Piece* piece,
                            Outcome* outcome) {
    if (!filling.block || filling.used == filling.block->bytes()) {
        const auto begun = MoveClock::now();
        const auto settle = [&] { filling.status = copying.settle(); };
        filling.block = make_block_(filling.left, settle, &outcome->block);
        filling.used = 0;
        outcome->making_host_memory += MoveClock::now() - begun;
        if (filling.block) copying.blocks.push_back(filling.block);
        const bool copies_failed = filling.status != CUDA_SUCCESS;
        if (!filling.block || copies_failed) {
            outcome->failed = copies_failed ? "cuMemcpyDtoHAsync" : "host memory";
            return false;
        }
    }
    *piece = {filling.block, filling.used, std::min(bytes, filling.block->bytes() - filling.used)};
    filling.used += piece->bytes;
    filling.left -= piece->bytes;
    filling.block->use(filling.used);
    return true;
}

ChunkMover::Outcome ChunkMover::copy_out(const std::vector<Chunk>& chunks) {
    Filling filling;
    for (const Chunk& chunk : chunks) filling.left += chunk.bytes;
    if (filling.left == 0) return {};
    const auto begun = MoveClock::now();
    Outcome outcome;
    Places copied;
    const auto copy = [&](const Chunk& chunk, Copying& copying) {
        Place& place = copied[chunk.base];
        place = {chunk.bytes, chunk.kept};
        for (uint64_t at = 0; at < chunk.bytes; at += place.pieces.back().bytes) {
            Piece piece;
            if (!next_piece(filling, chunk.bytes - at, copying, &piece, &outcome))
                return filling.status != CUDA_SUCCESS ? filling.status : CUDA_ERROR_OUT_OF_MEMORY;
            place.pieces.push_back(piece);
            SMT_TRY(driver_.cuMemcpyDtoHAsync_v2(piece.block->at(piece.offset), chunk.base + at, piece.bytes,
                                                 copying.stream));
        }
        return CUDA_SUCCESS;
    };
    outcome.status = with_stream([&](Copying& copying) {
        for (const Chunk& chunk : chunks) SMT_TRY(copy(chunk, copying));
        return CUDA_SUCCESS;
    });
    outcome.copying = MoveClock::now() - begun;
    if (outcome.status == CUDA_SUCCESS)
        places_.merge(copied);
    else if (!outcome.failed)
        outcome.failed = "cuMemcpyDtoHAsync";
    return outcome;
}

CUresult ChunkMover::unmap(uint64_t base, Place& place) {
    SMT_TRY(driver_.cuMemUnmap(base, place.bytes));
    device_.physical_memory().forget(place.kept);
    place.kept = 0;
    if (place.state == State::kCopied) bytes_away_.fetch_add(place.bytes, std::memory_order_relaxed);
    place.state = State::kAway;
    return CUDA_SUCCESS;
}

CUresult ChunkMover::release(uint64_t base) {
    const auto found = places_.find(base);
    if (found == places_.end() || found->second.state != State::kCopied) return CUDA_ERROR_INVALID_VALUE;
    const CUresult status = unmap(base, found->second);
    if (status != CUDA_SUCCESS) places_.erase(found);
    return status;
}

CUresult ChunkMover::fill(uint64_t base, Place& place) {
    if (place.state == State::kEmpty) return CUDA_SUCCESS;
    device::PhysicalMemory& source = device_.physical_memory();
    device::PhysicalMemory::Made made;
    SMT_TRY(source.make(place.bytes, &made));
    CUresult status = driver_.cuMemMap(base, place.bytes, 0, made.handle, 0);
    if (status == CUDA_SUCCESS) {
        CUmemAccessDesc access{};
        access.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_.device()};
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        status = driver_.cuMemSetAccess(base, place.bytes, &access, 1);
        if (status != CUDA_SUCCESS) driver_.cuMemUnmap(base, place.bytes);
    }
    driver_.cuMemRelease(made.handle);  // the mapping keeps the memory
    if (status != CUDA_SUCCESS) return source.forget(made.id), status;
    place.kept = made.id;
    place.state = State::kEmpty;
    return CUDA_SUCCESS;
}

CUresult ChunkMover::copy_in(uint64_t base, const Place& place, Copying& copying, Outcome* outcome) {
    CUresult settled = CUDA_SUCCESS;
    const auto settle = [&] { settled = copying.settle(); };
    for (const Piece& piece : place.pieces) {
        if (copying.blocks.empty() || copying.blocks.back() != piece.block) {
            if (!piece.block->hold(settle, &outcome->block)) {
                outcome->failed = "host memory";
                return CUDA_ERROR_OPERATING_SYSTEM;
            }
            copying.blocks.push_back(piece.block);
            SMT_TRY(settled);
        }
        SMT_TRY(
            driver_.cuMemcpyHtoDAsync_v2(base, piece.block->at(piece.offset), piece.bytes, copying.stream));
        base += piece.bytes;
    }
    return CUDA_SUCCESS;
}

void ChunkMover::in_order(std::vector<uint64_t>& bases) const {
    const auto place = [this](uint64_t base) {
        const auto found = places_.find(base);
        if (found == places_.end() || found->second.pieces.empty()) return std::pair<uint64_t, uint64_t>{};
        const Piece& first = found->second.pieces.front();
        return std::pair{first.block->number(), first.offset};
    };
    std::sort(bases.begin(), bases.end(), [&](uint64_t a, uint64_t b) { return place(a) < place(b); });
}

ChunkMover::Outcome ChunkMover::bring_in(std::vector<uint64_t> bases) {
    in_order(bases);
    Outcome outcome;
    const auto each = [&](const auto& does) {
        for (const uint64_t base : bases) {
            const auto found = places_.find(base);
            if (found == places_.end() || found->second.state == State::kCopied) continue;
            SMT_TRY(does(base, found->second));
        }
        return CUDA_SUCCESS;
    };
    const auto begun = MoveClock::now();
    outcome.status = each([&](uint64_t base, Place& place) { return fill(base, place); });
    const auto mapped = MoveClock::now();
    outcome.mapping = mapped - begun;
    if (outcome.status != CUDA_SUCCESS) {
        outcome.failed = "cuMemCreate or cuMemMap";
    } else {
        outcome.status = with_stream([&](Copying& copying) {
            return each([&](uint64_t base, Place& place) { return copy_in(base, place, copying, &outcome); });
        });
        outcome.copying = MoveClock::now() - mapped;
        if (outcome.status != CUDA_SUCCESS && !outcome.failed) outcome.failed = "cuMemcpyHtoDAsync";
    }
    const bool good = outcome.status == CUDA_SUCCESS;
    each([&](uint64_t base, Place& place) {
        if (place.state != State::kEmpty) return CUDA_SUCCESS;
        if (!good) return unmap(base, place), CUDA_SUCCESS;  // what cannot be unmapped is filled next time
        place.state = State::kCopied;
        bytes_away_.fetch_sub(place.bytes, std::memory_order_relaxed);
        return CUDA_SUCCESS;
    });
    return outcome;
}

void ChunkMover::forget_copy(uint64_t base) {
    const auto found = places_.find(base);
    if (found != places_.end() && found->second.state == State::kCopied) places_.erase(found);
}

bool ChunkMover::drop(uint64_t base) {
    const auto found = places_.find(base);
    if (found == places_.end()) return true;
    Place& place = found->second;
    const bool here = place.state == State::kCopied;
    if (place.state == State::kEmpty) unmap(base, place);
    if (!here) bytes_away_.fetch_sub(place.bytes, std::memory_order_relaxed);
    places_.erase(found);
    return here;
}

std::vector<uint64_t> ChunkMover::in(State state) const {
    std::vector<uint64_t> bases;
    for (const auto& [base, place] : places_)
        if (place.state == state) bases.push_back(base);
    return bases;
}

std::vector<uint64_t> ChunkMover::copied() const { return in(State::kCopied); }

std::vector<uint64_t> ChunkMover::away() const {
    std::vector<uint64_t> bases = in(State::kAway);
    const std::vector<uint64_t> empty = in(State::kEmpty);
    bases.insert(bases.end(), empty.begin(), empty.end());
    in_order(bases);
    return bases;
}

uint64_t ChunkMover::kept(uint64_t base) const {
    const auto found = places_.find(base);
    return found == places_.end() ? 0 : found->second.kept;
}

uint64_t ChunkMover::bytes(uint64_t base) const {
    const auto found = places_.find(base);
    return found == places_.end() ? 0 : found->second.bytes;
}

bool ChunkMover::pinned() const {
    return std::all_of(places_.begin(), places_.end(), [](const auto& each) {
        const std::vector<Piece>& pieces = each.second.pieces;
        return std::all_of(pieces.begin(), pieces.end(),
                           [](const Piece& piece) { return piece.block->pinned(); });
    });
}

}  // namespace smt::runtime::server
