// Memory and events that processes of one tenant share (runtime/protocol/sharing.h). A handle is a token of
// the server's. Opened memory lies in this process's own device range.
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "driver.gen.h"
#include "interpose/driver/call_despite_error.h"
#include "interpose/driver/context.h"
#include "interpose/driver/memory.h"
#include "interpose/driver/objects.h"
#include "interpose/driver/order.h"
#include "interpose/driver/peers.h"
#include "interpose/driver/ranges.h"
#include "interpose/process/state.h"
#include "interpose/transport/remote_call.h"
#include "runtime/protocol/handshake.h"
#include "runtime/protocol/packet.h"
#include "runtime/protocol/try.h"

namespace smt::interpose::driver {

using protocol::Op;
using protocol::OpenShared;
using protocol::Shared;
using protocol::SharedHandle;
using protocol::SharedKind;

CUresult share_object(SharedKind kind, uint64_t object, Shared& shared) {
    RemoteCall call(Op::kShare, sizeof(protocol::Share));
    if (!call.open()) return call.status();
    call.in(protocol::Share{kind, 0, object});
    SMT_TRY(call.wait());
    call.out(&shared);
    return CUDA_SUCCESS;
}

CUresult open_shared(const OpenShared& wanted, protocol::MemAllocated& opened) {
    RemoteCall call(Op::kOpenShared, sizeof wanted);
    if (!call.open()) return call.status();
    call.in(wanted);
    SMT_TRY(call.wait());
    call.out(&opened);
    return CUDA_SUCCESS;
}

namespace {

// Handle: CUipcMemHandle or CUipcEventHandle.
template <typename Handle>
void pack(SharedKind kind, const Shared& shared, Handle& handle) {
    static_assert(sizeof(SharedHandle) <= sizeof(Handle));
    const SharedHandle packed{.kind = kind, .token = shared.token, .server = shared.server};
    std::memset(&handle, 0, sizeof handle);
    std::memcpy(&handle, &packed, sizeof packed);
}

template <typename Handle>
bool unpack(const Handle& handle, SharedKind kind, SharedHandle& packed) {
    std::memcpy(static_cast<void*>(&packed), &handle, sizeof packed);
    return packed.magic == protocol::kMagic && packed.kind == kind;
}

// A descriptor that stands for the memory; -1: the system gives none. The server has another open description
// of the same file, and sees by the lock whether a copy of this one is left.
int make_descriptor(const Shared& shared) {
    const int file = memfd_create("smt-shared-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0) return -1;
    const SharedHandle content{.kind = SharedKind::kPhysical, .token = shared.token, .server = shared.server};
    constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    const protocol::Descriptor message{.token = shared.token};
    if (write(file, &content, sizeof content) == sizeof content && fcntl(file, F_ADD_SEALS, kSeals) == 0 &&
        flock(file, LOCK_SH) == 0 &&
        protocol::send_packet(this_session().control_socket(), &message, sizeof message, file))
        return file;
    close(file);
    return -1;
}

}  // namespace

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(require_context());
    Range range;
    if (!find_range(address, range) || range.memory != Memory::kDevice) return CUDA_ERROR_INVALID_VALUE;
    Shared shared{};
    SMT_TRY(share_object(SharedKind::kMemory, range.base, shared));
    pack(SharedKind::kMemory, shared, *handle);
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned int flags) {
    SharedHandle packed{};
    if (!address || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(require_context());
    if (!unpack(handle, SharedKind::kMemory, packed)) return CUDA_ERROR_INVALID_VALUE;
    protocol::MemAllocated opened{};
    SMT_TRY(open_shared({SharedKind::kMemory, 0, packed.token, packed.server}, opened));
    const CUresult status =
        count_range({.base = opened.address, .bytes = opened.bytes, .memory = Memory::kOpened});
    if (status != CUDA_SUCCESS) return give_back(Op::kCloseShared, opened.address), status;
    *address = opened.address;
    return CUDA_SUCCESS;
}

// The range leaves the map first, as in cuMemFree.
CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
    SMT_TRY(require_context());
    if (!uncount_range(address)) return CUDA_ERROR_INVALID_VALUE;
    return give_back(Op::kCloseShared, address);
}

CUresult cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event) {
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    Event* object = find_event(event);
    if (!object) return CUDA_ERROR_INVALID_HANDLE;
    if (!object->between_processes()) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(order_after(*object));  // another thread's record makes the event
    Shared shared{};
    SMT_TRY(share_object(SharedKind::kEvent, object->index, shared));
    pack(SharedKind::kEvent, shared, *handle);
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent* event, CUipcEventHandle handle) {
    SharedHandle packed{};
    if (!event) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(require_context());
    if (!unpack(handle, SharedKind::kEvent, packed)) return CUDA_ERROR_INVALID_VALUE;
    Event* made = new_event();
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    made->flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
    protocol::MemAllocated nothing{};
    CUresult status = order_after(*made);
    if (status == CUDA_SUCCESS)
        status = open_shared({SharedKind::kEvent, made->index, packed.token, packed.server}, nothing);
    if (status != CUDA_SUCCESS) return release(made), status;
    note_use(*made);
    *event = reinterpret_cast<CUevent>(made);
    return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* handle, CUmemGenericAllocationHandle memory,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
    if (!handle || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    Shared shared{};
    SMT_TRY(share_object(SharedKind::kPhysical, memory, shared));
    const int file = make_descriptor(shared);
    if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    std::memcpy(handle, &file, sizeof file);
    return CUDA_SUCCESS;
}

// `handle` is the descriptor itself, which stays the caller's.
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* memory, void* handle,
                                        CUmemAllocationHandleType type) {
    if (!memory) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    const int file = static_cast<int>(reinterpret_cast<intptr_t>(handle));
    SharedHandle content{};
    struct stat facts{};
    const bool ours = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size == sizeof content &&
                      pread(file, &content, sizeof content, 0) == sizeof content &&
                      content.magic == protocol::kMagic && content.kind == SharedKind::kPhysical;
    if (!ours) return CUDA_ERROR_INVALID_VALUE;
    protocol::MemAllocated opened{};
    SMT_TRY(open_shared({SharedKind::kPhysical, 0, content.token, content.server}, opened));
    *memory = opened.address;
    return CUDA_SUCCESS;
}

}  // namespace smt::interpose::driver
