// Memory and events that processes of one tenant share. The driver's own handles between processes are not
// used: all sessions of a GPU are in this process. Memory of other GPUs comes from their servers.
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

CUresult shared_object(Call& call, const protocol::Share& request, Sharing::Object* object,
                       protocol::Shared* shared) {
    TenantMemory& memory = call.session.memory();
    if (request.kind == SharedKind::kMemory || request.kind == SharedKind::kPeer) {
        SharedBlockPointer block;
        SMT_TRY(request.kind == SharedKind::kPeer ? memory.share_peer(request.object, &block)
                                                  : memory.share(request.object, &block));
        shared->base = block->base + block->offset;
        shared->bytes = block->bytes;
        *object = std::const_pointer_cast<SharedBlock>(block);
        return CUDA_SUCCESS;
    }
    if (request.kind == SharedKind::kEvent) {
        EventPointer event;
        SMT_TRY(call.session.events().share(static_cast<uint32_t>(request.object), &event));
        *object = event;
        return CUDA_SUCCESS;
    }
    const bool exported = request.kind == SharedKind::kPhysical;
    if (!exported && request.kind != SharedKind::kPeerPhysical) return CUDA_ERROR_INVALID_VALUE;
    CUmemGenericAllocationHandle handle = request.object;
    call.uses.add(HandleKind::kPhysicalMemory, handle);
    if (call.uses.begin() != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
    PhysicalPointer physical;
    SMT_TRY(memory.share_physical(handle, exported, &physical));
    *object = physical;
    return CUDA_SUCCESS;
}

CUresult open_block(Call& call, const SharedBlockPointer& block, protocol::MemAllocated* opened) {
    CUdeviceptr address = 0;
    SMT_TRY(call.session.memory().open_shared(block, &address));
    *opened = {address, block->bytes};
    return CUDA_SUCCESS;
}

CUresult import_memory(Call& call, const PhysicalPointer& physical, protocol::MemAllocated* opened) {
    CUmemGenericAllocationHandle handle = 0;
    SMT_TRY(call.session.memory().import_physical(physical, &handle));
    call.adopt(HandleKind::kPhysicalMemory, handle);
    *opened = {handle, physical->bytes()};
    return CUDA_SUCCESS;
}

// Of a session on another GPU.
CUresult open_from_neighbour(Call& call, const protocol::OpenShared& request,
                             protocol::MemAllocated* opened) {
    if (request.kind == SharedKind::kEvent) return CUDA_ERROR_NOT_SUPPORTED;
    SharedBlockPointer block;
    SMT_TRY(call.session.server().neighbours().fetch(request, call.session.family(), &block));
    if (request.kind == SharedKind::kMemory) return open_block(call, block, opened);
    if (request.kind != SharedKind::kPeer) return import_memory(call, block->memory, opened);
    *opened = {block->base + block->offset, block->bytes};
    // What was freed there is unmapped, and work may still use it.
    if (call.session.memory().open_otherwise(*block)) SMT_TRY(call.session.streams().synchronize_all());
    return call.session.memory().open_peer(*block);
}

CUresult open_here(Call& call, const protocol::OpenShared& request, protocol::MemAllocated* opened) {
    const Sharing::Found found =
        call.session.server().sharing().find(request.kind, request.token, call.session.family());
    if (found.answer == Sharing::Answer::kForeign)
        call.session.note(fmt::format("it may not open {} of another tenant's (session {})",
                                      kind_name(request.kind), found.session));
    if (found.answer != Sharing::Answer::kFound || request.kind == SharedKind::kPeer)
        return CUDA_ERROR_INVALID_VALUE;  // of one GPU no session is another one's peer
    // As natively: what the process has itself is not opened, but memory of a descriptor is.
    const bool physical = request.kind == SharedKind::kPhysical || request.kind == SharedKind::kPeerPhysical;
    if (found.session == call.session.id() && !physical) return CUDA_ERROR_INVALID_CONTEXT;
    if (request.kind == SharedKind::kEvent)
        return call.session.events().open_shared(request.event,
                                                 std::static_pointer_cast<CUevent_st>(found.object));
    return physical ? import_memory(call, std::static_pointer_cast<PhysicalAllocation>(found.object), opened)
                    : open_block(call, std::static_pointer_cast<const SharedBlock>(found.object), opened);
}

}  // namespace

CUresult handle_share(Call& call) {
    protocol::Share request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    Sharing::Object object;
    protocol::Shared shared{};
    SMT_TRY(shared_object(call, request, &object, &shared));
    const auto token =
        call.session.server().sharing().add(request.kind, call.session.family(), call.session.id(), object,
                                            request.kind == SharedKind::kPhysical);
    if (!token) return CUDA_ERROR_OPERATING_SYSTEM;
    shared.token = *token;
    shared.server = call.session.server().neighbours().own_number();
    call.out.scalar(shared);
    return CUDA_SUCCESS;
}

CUresult handle_open_shared(Call& call) {
    protocol::OpenShared request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    protocol::MemAllocated opened{};
    const bool here =
        request.server == 0 || request.server == call.session.server().neighbours().own_number();
    SMT_TRY(here ? open_here(call, request, &opened) : open_from_neighbour(call, request, &opened));
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

CUresult handle_close_peer(Call& call) {
    protocol::AddressRange request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(call.session.streams().synchronize_all());
    return call.session.memory().close_peer(request.address, request.bytes);
}

CUresult handle_peer_access(Call& call) {
    protocol::Address request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    call.out.scalar<uint64_t>(call.session.memory().peer_is_open(request.address)
                                  ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                  : CU_MEM_ACCESS_FLAGS_PROT_NONE);
    return CUDA_SUCCESS;
}

}  // namespace smt::runtime::server::handlers
