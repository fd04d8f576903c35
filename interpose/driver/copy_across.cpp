// Copies where the process has sessions with several devices. A server reaches memory of another one only
// where that was opened to it (peers.h). What else goes from one device to another passes through memory of
// this process, piece by piece. Unless the stream's own device reaches both ends the call returns when the
// copy is done: after the stream's earlier work, and before its later work.
//
//   ends                                          path
//   all that the stream's device reaches          transfer_here()
//   all that another device of the ends reaches   a copy in that device's session
//   memory of two devices                         down from the one, up to the other
//   pinned memory of another session              as pageable memory, once the stream's earlier work is done
//   any other                                     transfer_here()
#include <algorithm>
#include <cstdlib>

#include "driver.gen.h"
#include "interpose/driver/copy.h"
#include "interpose/driver/place.h"
#include "interpose/driver/ranges.h"
#include "runtime/protocol/try.h"

namespace smt::interpose::driver {

namespace {

constexpr uint64_t kPieceBytes = 4u << 20;

// Whose memory an end is: `device` or `host` (pinned, registered or managed memory), or none of any session.
struct Owner {
    Session* device = nullptr;
    Session* host = nullptr;
    uint32_t peers = 0;  // Range::peers of a device's memory

    bool is_reached_by(const Session& session) const {
        return !device || device == &session || (peers >> session.number() & 1) != 0;
    }
};

Owner owner_of(const CopyEnd& end) {
    if (end.place == Place::kArray) {
        Session* const session = place_of_object(end.address);
        return {.device = session ? session : &this_session()};
    }
    Range range;
    if (!find_range(end.address, range)) return {};
    if (on_device(range.memory)) return {.device = range.session, .peers = range.peers};
    return {.host = range.session};
}

// Part of a Transfer whose linear ends are normalised.
CopyEnd part_of(const CopyEnd& end, uint64_t x, uint64_t y, uint64_t z) {
    CopyEnd part = end;
    if (end.place == Place::kArray) {
        part.x_bytes += x, part.y += y, part.z += z;
    } else {
        part.address = row_address(end, y, z) + x;
    }
    return part;
}

struct Route {
    Session* from;
    Session* to;
    CUstream stream;
};

CUresult carry_rows(const Transfer& t, const Route& route, char* piece, uint64_t x, uint64_t y, uint64_t z,
                    uint64_t width, uint64_t rows) {
    const CopyEnd here = host_end(piece);
    {
        const InSession in(route.from);
        const Transfer down{here, part_of(t.from, x, y, z), width, rows, 1};
        SMT_TRY(transfer_here(down, route.stream, Manner::kSynchronous));
    }
    const InSession in(route.to);
    const Transfer up{part_of(t.to, x, y, z), here, width, rows, 1};
    return transfer_here(up, route.stream, Manner::kSynchronous);
}

CUresult carry(const Transfer& t, const Route& route, char* piece) {
    const uint64_t width = std::min(t.width, kPieceBytes);
    const uint64_t rows = std::min(t.height, std::max<uint64_t>(kPieceBytes / width, 1));
    for (uint64_t z = 0; z < t.depth; ++z)
        for (uint64_t y = 0; y < t.height; y += rows)
            for (uint64_t x = 0; x < t.width; x += width)
                SMT_TRY(carry_rows(t, route, piece, x, y, z, std::min(width, t.width - x),
                                   std::min(rows, t.height - y)));
    return CUDA_SUCCESS;
}

CUresult copy_between(Transfer t, const Route& route) {
    uint64_t span = 0;
    if (!normalise(t.to, t.width, t.height, t.depth, span) ||
        !normalise(t.from, t.width, t.height, t.depth, span))
        return CUDA_ERROR_INVALID_VALUE;
    const uint64_t most = std::min<uint64_t>(t.width, kPieceBytes) *
                          std::min(t.height, std::max<uint64_t>(kPieceBytes / t.width, 1));
    auto* const piece = static_cast<char*>(std::malloc(most));
    if (!piece) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult status = carry(t, route, piece);
    std::free(piece);
    return status;
}

// The stream's device reaches both ends. A call that waits is in order with the other device's work, too.
CUresult copy_to_peer(const Transfer& t, CUstream stream, Manner manner, Session* peer) {
    if (manner == Manner::kAsynchronous) return transfer_here(t, stream, manner);
    {
        const InSession in(peer);
        SMT_TRY(driver::cuStreamSynchronize(CU_STREAM_LEGACY));
    }
    SMT_TRY(transfer_here(t, stream, manner));
    return driver::cuStreamSynchronize(stream);
}

// All of it is in the other session, whose work the stream's later work cannot wait for.
CUresult copy_there(const Transfer& t, Session* session, CUstream stream) {
    const InSession in(session);
    SMT_TRY(transfer_here(t, stream, Manner::kSynchronous));
    return driver::cuStreamSynchronize(stream);
}

}  // namespace

CUresult transfer_anywhere(const Transfer& t, CUstream stream, Manner manner) {
    if (t.width == 0 || t.height == 0 || t.depth == 0) return CUDA_SUCCESS;
    const Owner to = owner_of(t.to), from = owner_of(t.from);
    Session* const here = &this_session();
    bool between = to.device && from.device && to.device != from.device;
    Session* place = to.device ? to.device : from.device ? from.device : here;
    for (Session* const each : {here, to.device, from.device}) {
        if (!between || !to.is_reached_by(*each) || !from.is_reached_by(*each)) continue;
        place = each;
        between = false;
    }
    Session* const peer = to.device == here ? from.device : to.device;
    if (!between && to.device && from.device && place == here && peer != here)
        return copy_to_peer(t, stream, manner, peer);
    const bool lent = from.host && from.host != place;
    if (!between && place == here && !lent) return transfer_here(t, stream, manner);

    if (capture_of(stream) != CU_STREAM_CAPTURE_STATUS_NONE) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    SMT_TRY(driver::cuStreamSynchronize(stream));
    // A default stream of the other device: the one that is behind that device's work if the call waits too.
    const CUstream other = manner == Manner::kSynchronous ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD;
    if (between) return copy_between(t, {from.device, to.device, other});
    return place == here ? transfer_here(t, stream, manner) : copy_there(t, place, other);
}

}  // namespace smt::interpose::driver
