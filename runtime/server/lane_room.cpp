// A lane whose allocation has found no room: others are moved out for it, or its tenant asked to wait.
#include <fmt/format.h>

#include <chrono>

#include "opcodes.gen.h"
#include "runtime/device/call_clock.h"
#include "runtime/device/held_up.h"
#include "runtime/dispatch/clock_handoff.h"
#include "runtime/server/lane.h"
#include "runtime/server/memory/room_line.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"
#include "runtime/server/swapper.h"

namespace smt::runtime::server {

namespace {

using protocol::Op;

// Other allocations may take what was made free; then more is asked for.
constexpr int kTries = 12;

// Records that can be executed again if they have found no device memory.
bool allocates(Op op) {
    switch (op) {
        case Op::kMemAlloc:
        case Op::kMemAllocAsync:
            return true;
        default:
            break;
    }
    switch (static_cast<protocol::GeneratedOp>(op)) {
        case protocol::GeneratedOp::kArrayCreate_v2:
        case protocol::GeneratedOp::kArray3DCreate_v2:
        case protocol::GeneratedOp::kMipmappedArrayCreate:
        case protocol::GeneratedOp::kMemCreate:
            return true;
        default:
            return false;
    }
}

}  // namespace

void Lane::make_room(const protocol::RecordHeader& record, CUresult* status, uint32_t* reply_bytes) {
    Swapper* const swapper = session_.server().swapper();
    const Op op = static_cast<Op>(record.op);
    uint64_t missed = TenantMemory::missed();
    if (!swapper || (op != Op::kMemAlloc && op != Op::kMemAllocAsync)) return;
    if (missed == 0 || !session_.why_not_suspended().empty()) return;  // its limit, or it could not make room
    const device::HeldUp held(session_.id(), "device memory that others have");
    const auto interrupted = [&] { return stopping_.load() || session_.gate().keeps_back(); };
    Swapper::Request request(*swapper, session_);
    for (int tries = 0; tries < kTries && !stopping_.load(); ++tries) {
        let_go();
        request.ask(missed + (tries == 0 ? 0 : (uint64_t{1} << tries) * kChunkBytes));
        Swapper::Answer answer = Swapper::Answer::kInterrupt;
        while (answer == Swapper::Answer::kInterrupt && !stopping_.load()) {
            if (session_.gate().keeps_back()) stand();  // what it asks for it gets when it is in again
            const dispatch::ClockHandoff others(session_.device());
            answer = request.wait(interrupted);
        }
        if (answer != Swapper::Answer::kTryAgain) return;
        *reply_bytes = 0;
        *status = execute(record, reply_bytes);
        missed = TenantMemory::missed();
        if (*status != CUDA_ERROR_OUT_OF_MEMORY || missed == 0) return;
    }
}

void Lane::await_room(const protocol::RecordHeader& record, CUresult* status, uint32_t* reply_bytes) {
    if (*status != CUDA_ERROR_OUT_OF_MEMORY) return;
    const std::chrono::milliseconds longest = session_.memory_wait();
    if (longest == std::chrono::milliseconds::zero() || !allocates(static_cast<Op>(record.op))) return;
    const MemoryAccount& tenant = *session_.tenant_memory_account();
    const auto try_again = [&] {
        const uint64_t refused = tenant.refused();
        let_go();
        *reply_bytes = 0;
        *status = execute(record, reply_bytes);
        if (*status != CUDA_ERROR_OUT_OF_MEMORY) return RoomLine::Tried::kDone;
        return tenant.refused() != refused ? RoomLine::Tried::kNoRoomInLimit
                                           : RoomLine::Tried::kNoRoomInDevice;
    };
    // The first attempt did not look which it was.
    const RoomLine::Tried tried = try_again();
    if (tried == RoomLine::Tried::kDone) return;
    const bool limit = tried == RoomLine::Tried::kNoRoomInLimit;
    const std::string what =
        limit ? fmt::format("room within its memory limit of {} MiB", tenant.limit() >> 20) : "device memory";
    session_.note("waits for " + what);
    const device::InWait timed;
    const device::HeldUp held(session_.id(), what);
    const auto until = std::chrono::steady_clock::now() + longest;
    bool done = false;
    do {
        if (session_.gate().keeps_back()) stand();  // it is suspended, and loses its place in the line
        done = RoomLine::of_process().wait(
            {.tenant = &tenant,
             .reason = limit ? RoomLine::For::kLimit : RoomLine::For::kDevice,
             .until = until,
             .attempt = try_again,
             .gives_up = [&] { return stopping_.load() || session_.gate().keeps_back(); }});
    } while (!done && session_.gate().keeps_back() && !stopping_.load());
    const double seconds = std::chrono::duration<double>(held.lasted()).count();
    session_.note(fmt::format("{} {:.3f} s for {}", done ? "waited" : "waited in vain", seconds, what));
}

}  // namespace smt::runtime::server
