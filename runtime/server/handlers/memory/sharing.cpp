// Memory and events that processes of one tenant share. The driver's own handles between processes are not
// used: all sessions are in this process.
#include "runtime/protocol/sharing.h"

#include <fmt/format.h>

#include <memory>

#include "runtime/protocol/try.h"
#include "runtime/server/handlers/handlers.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/server.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

namespace {

using protocol::SharedKind;

const char* kind_name(SharedKind kind) { return kind == SharedKind::kEvent ? "an event" : "memory"; }

CUresult shared_object(Call& call, const protocol::Share& request, Sharing::Object* object) {
    TenantMemory& memory = call.session.memory();
    if (request.kind == SharedKind::kMemory) {
        SharedBlockPointer block;
        SMT_TRY(memory.share(request.object, &block));
        *object = std::const_pointer_cast<SharedBlock>(block);
        return CUDA_SUCCESS;
    }
    if (request.kind == SharedKind::kEvent) {
        EventPointer event;
        SMT_TRY(call.session.events().share(static_cast<uint32_t>(request.object), &event));
        *object = event;
        return CUDA_SUCCESS;
    }
    if (request.kind != SharedKind::kPhysical) return CUDA_ERROR_INVALID_VALUE;
    CUmemGenericAllocationHandle handle = request.object;
    call.uses.add(HandleKind::kPhysicalMemory, handle);
    if (call.uses.begin() != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
    PhysicalPointer physical;
    SMT_TRY(memory.share_physical(handle, &physical));
    *object = physical;
    return CUDA_SUCCESS;
}

CUresult open_block(Call& call, const Sharing::Found& found, protocol::MemAllocated* opened) {
    const auto block = std::static_pointer_cast<const SharedBlock>(found.object);
    CUdeviceptr address = 0;
    SMT_TRY(call.session.memory().open_shared(block, &address));
    *opened = {address, block->bytes};
    return CUDA_SUCCESS;
}

CUresult import_memory(Call& call, const Sharing::Found& found, protocol::MemAllocated* opened) {
    const auto physical = std::static_pointer_cast<PhysicalAllocation>(found.object);
    CUmemGenericAllocationHandle handle = 0;
    SMT_TRY(call.session.memory().import_physical(physical, &handle));
    call.adopt(HandleKind::kPhysicalMemory, handle);
    *opened = {handle, physical->bytes()};
    return CUDA_SUCCESS;
}

}  // namespace

CUresult handle_share(Call& call) {
    protocol::Share request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    Sharing::Object object;
    SMT_TRY(shared_object(call, request, &object));
    const auto token =
        call.session.server().sharing().add(request.kind, call.session.family(), call.session.id(), object,
                                            request.kind == SharedKind::kPhysical);
    if (!token) return CUDA_ERROR_OPERATING_SYSTEM;
    call.out.scalar(*token);
    return CUDA_SUCCESS;
}

CUresult handle_open_shared(Call& call) {
    protocol::OpenShared request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    const Sharing::Found found =
        call.session.server().sharing().find(request.kind, request.token, call.session.family());
    if (found.answer == Sharing::Answer::kForeign)
        call.session.note(fmt::format("it may not open {} of another tenant's (session {})",
                                      kind_name(request.kind), found.session));
    if (found.answer != Sharing::Answer::kFound) return CUDA_ERROR_INVALID_VALUE;
    // As natively: what the process has itself is not opened, but memory of a descriptor is.
    if (found.session == call.session.id() && request.kind != SharedKind::kPhysical)
        return CUDA_ERROR_INVALID_CONTEXT;
    protocol::MemAllocated opened{};
    if (request.kind == SharedKind::kEvent)
        SMT_TRY(call.session.events().open_shared(request.event,
                                                  std::static_pointer_cast<CUevent_st>(found.object)));
    else if (request.kind == SharedKind::kMemory)
        SMT_TRY(open_block(call, found, &opened));
    else
        SMT_TRY(import_memory(call, found, &opened));
    call.out.scalar(opened);
    return CUDA_SUCCESS;
}

// Work of the session may still use the memory.
CUresult handle_close_shared(Call& call) {
    protocol::Address request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(call.session.streams().synchronize_all());
    return call.session.memory().close_shared(request.address);
}

}  // namespace smt::runtime::server::handlers
