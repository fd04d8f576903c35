// A copy between pageable memory and the device, cut into pieces that fit a staging slot.
//
//   To the device:   fill slot 0, announce it; fill slot 1, announce it ... the GPU empties slots
//                    while the processor fills others; reuse slot 0 once its word is written.
//                    A synchronous copy waits for the last slot's word.
//   From the device: announce up to kStagingSlots empty slots ahead, then drain them in order.
//
// A piece is part of one row, some rows of one slice, or some whole slices; its rows lie packed in the slot.
// A small copy cut into several pieces overlaps its two halves. To the device it is cut in two only.
// Measured: a record costs the server about 8 us, and two cores fill a slot of 512 KiB in 20 us.
#include <cstring>

#include "interpose/driver/copy.h"
#include "interpose/driver/copy_thread.h"
#include "interpose/driver/staging.h"
#include "interpose/transport/lane.h"
#include "interpose/transport/remote_call.h"

namespace smt::interpose::driver {

using protocol::CopySlot;
using protocol::kStagingSlots;
using protocol::Op;

namespace {

constexpr uint64_t kFewestPiecesUp = 2;
constexpr uint64_t kFewestPiecesDown = kStagingSlots;
constexpr uint64_t kLargestPiece = protocol::kStagingSlotBytes;
constexpr uint64_t kSmallestPiece = 64u << 10;

struct Piece {
    uint64_t x, y, z;
    uint64_t width, height, depth;

    bool one_row() const { return height == 1 && depth == 1; }
    uint64_t bytes() const { return width * height * depth; }
};

class Pieces {
public:
    // At least `fewest` pieces, unless they would then be smaller than kSmallestPiece.
    Pieces(const Transfer& t, uint64_t fewest) : t_(t) {
        uint64_t share = t.width * t.height * t.depth / fewest;
        uint64_t rounded = (share + kSmallestPiece - 1) / kSmallestPiece * kSmallestPiece;
        limit_ = rounded < kSmallestPiece ? kSmallestPiece : least(rounded, kLargestPiece);
    }

    bool next(Piece& piece) {
        if (z_ == t_.depth) return false;
        uint64_t width = least(t_.width - x_, limit_);
        uint64_t rows = width == t_.width ? limit_ / width : 1;
        uint64_t height = least(t_.height - y_, rows);
        uint64_t depth = y_ == 0 && rows >= t_.height ? least(t_.depth - z_, rows / t_.height) : 1;
        piece = {x_, y_, z_, width, height, depth};
        x_ += width;
        if (x_ == t_.width) x_ = 0, y_ += height;
        if (y_ == t_.height) y_ = 0, z_ += depth;
        return true;
    }

private:
    static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

    const Transfer& t_;
    uint64_t limit_;
    uint64_t x_ = 0, y_ = 0, z_ = 0;
};

char* host_row(const CopyEnd& end, const Piece& piece, uint64_t y, uint64_t z) {
    return reinterpret_cast<char*>(row_address(end, piece.y + y, piece.z + z) + piece.x);
}

void fill(char* slot, const CopyEnd& from, const Piece& piece) {
    for (uint64_t z = 0; z < piece.depth; ++z)
        for (uint64_t y = 0; y < piece.height; ++y, slot += piece.width)
            copy_on_two_cores(fill_bytes, slot, host_row(from, piece, y, z), piece.width);
}

void drain(const CopyEnd& to, const char* slot, const Piece& piece) {
    for (uint64_t z = 0; z < piece.depth; ++z)
        for (uint64_t y = 0; y < piece.height; ++y, slot += piece.width)
            copy_on_two_cores(drain_bytes, host_row(to, piece, y, z), slot, piece.width);
}

CUresult announce(const CopyEnd& device, const Piece& piece, const StagingSlot& slot, uint32_t stream,
                  bool to_device) {
    CopySlot record{device,     piece.width, piece.height, piece.depth,    stream,
                    slot.index, to_device,   slot.offset,  slot.done_value};
    if (device.place == Place::kArray) {
        record.device.x_bytes += piece.x;
        record.device.y += piece.y;
        record.device.z += piece.z;
    } else {
        record.device.address = row_address(device, piece.y, piece.z) + piece.x;
        if (piece.one_row()) record.device.pitch = record.device.height = 0;
    }
    RemoteCall call(Op::kCopySlot, sizeof record);
    if (call.open()) {
        call.in(record);
        if (call.post_quietly() == CUDA_SUCCESS) return CUDA_SUCCESS;
    }
    abandon_slot(slot);
    return call.status();
}

// A synchronous copy returns when the bytes have arrived: the program's next work may be on a stream that
// does not order with this one. All pieces are in one stream, so the last slot's word covers them.
CUresult copy_up(const Transfer& t, uint32_t stream, Manner manner) {
    Pieces pieces(t, kFewestPiecesUp);
    Piece piece;
    StagingSlot slot{};
    while (pieces.next(piece)) {
        CUresult status = acquire_slot(slot, stream, piece.bytes());
        if (status != CUDA_SUCCESS) return status;
        fill(slot.data, t.from, piece);
        status = announce(t.to, piece, slot, stream, true);
        if (status != CUDA_SUCCESS) return status;
    }
    if (manner == Manner::kAsynchronous) return CUDA_SUCCESS;
    return or_late_error(wait_slot(slot));
}

// `late`: the error is that of a record of this thread, not necessarily of the copy's.
CUresult copy_down(const Transfer& t, uint32_t stream, bool& late) {
    struct {
        Piece piece;
        StagingSlot slot;
    } under_way[kStagingSlots];
    Pieces pieces(t, kFewestPiecesDown);
    CUresult status = CUDA_SUCCESS;
    uint64_t announced = 0;
    uint64_t drained = 0;
    uint32_t held = 0;  // slots that are announced and not drained
    for (bool more = true; status == CUDA_SUCCESS; ++drained) {
        while (more && (held == 0 || slot_is_free(held))) {
            auto& [piece, slot] = under_way[announced % kStagingSlots];
            more = pieces.next(piece);
            if (!more) break;
            status = acquire_slot(slot, stream, protocol::kStagingSlotBytes, held);
            if (status == CUDA_SUCCESS) status = announce(t.from, piece, slot, stream, false);
            if (status != CUDA_SUCCESS) return status;
            held |= 1u << slot.index;
            ++announced;
        }
        if (drained == announced) break;
        const auto& [piece, slot] = under_way[drained % kStagingSlots];
        status = wait_slot(slot);
        if (status == CUDA_SUCCESS) late = (status = late_error()) != CUDA_SUCCESS;
        if (status == CUDA_SUCCESS) drain(t.to, slot.data, piece);
        held &= ~(1u << slot.index);
    }
    return status;
}

}  // namespace

CUresult copy_through_staging(const Transfer& t, bool to_device, uint32_t stream, Manner manner) {
    if (to_device) return copy_up(t, stream, manner);
    bool late = false;
    const CUresult earlier = copy_down(t, stream, late);
    if (late) copy_down(t, stream, late);  // in case that it was not the copy that failed
    return earlier;
}

}  // namespace smt::interpose::driver
