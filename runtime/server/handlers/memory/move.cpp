#include "runtime/server/handlers/memory/move.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/dispatch/dispatcher.h"
#include "runtime/dispatch/quiesce.h"
#include "runtime/protocol/try.h"
#include "runtime/server/handlers/memory/constant_write.h"
#include "runtime/server/lane.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"
#include "served.gen.h"

namespace smt::runtime::server {

namespace handlers {

CUresult launch_move(Call& call, Stream& stream, const PlanMove& plan) {
    Session& session = call.session;
    const dispatch::Tenant& tenant = session.dispatched();
    dispatch::ManagedStream* const managed = stream.managed.load(std::memory_order_acquire);
    if (!managed || !tenant.preemptible.load(std::memory_order_relaxed) ||
        session.streams().capturing(stream.handle) || !managed->ends_with_door())
        return CUDA_ERROR_NOT_SUPPORTED;
    dispatch::Moves& moves = session.server().dispatcher().supplies().moves();
    if (moves.failed()) return CUDA_ERROR_NOT_SUPPORTED;
    if (!moves.loaded()) {
        const dispatch::Quiesce others(session.server().dispatcher(), tenant);
        const CUresult status = moves.load();
        if (status != CUDA_SUCCESS) {
            session.server().note(
                fmt::format("fills and copies wait for launches that may be stopped: error "
                            "{} when the kernels for them were loaded",
                            static_cast<int>(status)));
            return CUDA_ERROR_NOT_SUPPORTED;
        }
    }
    dispatch::MoveLaunch launch;
    SMT_TRY(plan(moves, &launch));
    dispatch::Work work;
    static_cast<dispatch::KernelCall&>(work) = launch.call();
    work.entry.kind = journal::Kind::kLaunch;
    work.entry.session = session.id();
    work.entry.lane = call.lane.index();
    work.entry.stream = stream.reference;
    work.entry.name = session.journal_name_of_moves();
    work.entry.value = session.journal_treatment_of_moves();
    work.entry.text = session.journal_name();
    std::copy_n(work.grid, 3, work.entry.grid);
    std::copy_n(work.block, 3, work.entry.block);
    work.total = launch.blocks;
    const journal::Entry entry = work.entry;
    call.lane.launches(stream, entry.name);
    SMT_TRY(managed->launch(std::move(work)));
    if (!session.device().properties().keeps_sessions_apart) session.journal().write(entry);
    return CUDA_SUCCESS;
}

}  // namespace handlers

namespace served {

namespace {

// `function`: the driver's, with the address, these arguments and then a stream. Null: it has none.
template <typename Function, typename... Arguments>
CUresult fill(Call& call, const StreamPointer& stream, CUDA_MEMSET_NODE_PARAMS what, const Function& function,
              Arguments... arguments) {
    if (!function) return CUDA_ERROR_NOT_SUPPORTED;
    const handlers::ConstantWrite constant(call, &what.dst);
    CUresult status = CUDA_ERROR_NOT_SUPPORTED;
    if (!constant.any())
        status = handlers::launch_move(
            call, *stream,
            [&](dispatch::Moves& moves, dispatch::MoveLaunch* launch) { return moves.plan(what, launch); });
    if (status != CUDA_ERROR_NOT_SUPPORTED) return status;
    SMT_TRY(stream->guard());
    return constant.follow(*stream, function(what.dst, arguments..., stream->handle));
}

CUDA_MEMSET_NODE_PARAMS row(CUdeviceptr to, unsigned value, unsigned bytes, size_t count) {
    return {to, 0, value, bytes, count, 1};
}

}  // namespace

CUresult cuMemsetD8Async(Call& call, CUdeviceptr to, unsigned char value, size_t count,
                         const StreamPointer& stream) {
    return fill(call, stream, row(to, value, 1, count), call.driver.cuMemsetD8Async, value, count);
}

CUresult cuMemsetD16Async(Call& call, CUdeviceptr to, unsigned short value, size_t count,
                          const StreamPointer& stream) {
    return fill(call, stream, row(to, value, 2, count), call.driver.cuMemsetD16Async, value, count);
}

CUresult cuMemsetD32Async(Call& call, CUdeviceptr to, unsigned value, size_t count,
                          const StreamPointer& stream) {
    return fill(call, stream, row(to, value, 4, count), call.driver.cuMemsetD32Async, value, count);
}

CUresult cuMemsetD2D8Async(Call& call, CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                           size_t height, const StreamPointer& stream) {
    return fill(call, stream, {to, pitch, value, 1, width, height}, call.driver.cuMemsetD2D8Async, pitch,
                value, width, height);
}

CUresult cuMemsetD2D16Async(Call& call, CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                            size_t height, const StreamPointer& stream) {
    return fill(call, stream, {to, pitch, value, 2, width, height}, call.driver.cuMemsetD2D16Async, pitch,
                value, width, height);
}

CUresult cuMemsetD2D32Async(Call& call, CUdeviceptr to, size_t pitch, unsigned value, size_t width,
                            size_t height, const StreamPointer& stream) {
    return fill(call, stream, {to, pitch, value, 4, width, height}, call.driver.cuMemsetD2D32Async, pitch,
                value, width, height);
}

}  // namespace served

}  // namespace smt::runtime::server
