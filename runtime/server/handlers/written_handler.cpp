// The map from opcodes to handlers, and the handlers' common functions.
#include "runtime/protocol/layout.h"
#include "runtime/server/fatal.h"
#include "runtime/server/handlers/handlers.h"
#include "runtime/server/lane.h"
#include "runtime/server/printf.h"
#include "runtime/server/session.h"

namespace smt::runtime::server {

Handler written_handler(protocol::Op op) {
    using namespace handlers;
    using protocol::Op;
    switch (op) {
        case Op::kLaunch:
            return handle_launch;
        case Op::kCopySlot:
            return handle_copy_slot;
        case Op::kCopy:
            return handle_copy;
        case Op::kMemAlloc:
            return handle_mem_alloc;
        case Op::kMemFree:
            return handle_mem_free;
        case Op::kHostAlloc:
            return handle_host_alloc;
        case Op::kHostAllocShowing:
            return handle_host_alloc_showing;
        case Op::kHostFree:
            return handle_host_free;
        case Op::kMemInfo:
            return handle_mem_info;
        case Op::kMemAllocAsync:
            return handle_mem_alloc_async;
        case Op::kMemFreeAsync:
            return handle_mem_free_async;
        case Op::kAddressReserve:
            return handle_address_reserve;
        case Op::kAddressFree:
            return handle_address_free;
        case Op::kUploadBegin:
            return handle_upload_begin;
        case Op::kUploadSlot:
            return handle_upload_slot;
        case Op::kDownload:
            return handle_download;
        case Op::kModuleLoad:
            return handle_module_load;
        case Op::kModuleUnload:
            return handle_module_unload;
        case Op::kGetFunction:
            return handle_get_function;
        case Op::kEnumerateFunctions:
            return handle_enumerate_functions;
        case Op::kFunctionAttribute:
            return handle_function_attribute;
        case Op::kGetGlobal:
            return handle_get_global;
        case Op::kGetManaged:
            return handle_get_managed;
        case Op::kStreamBeginCapture:
            return handle_begin_capture;
        case Op::kBeginCaptureToGraph:
            return handle_begin_capture_to_graph;
        case Op::kStreamEndCapture:
            return handle_end_capture;
        case Op::kStreamCaptureInfo:
            return handle_capture_info;
        case Op::kStreamUpdateCapture:
            return handle_update_capture;
        case Op::kGraphLaunch:
            return handle_graph_launch;
        case Op::kGraphKernelNode:
            return handle_graph_kernel_node;
        case Op::kGraphKernelNodeGet:
            return handle_graph_kernel_node_get;
        case Op::kGraphMemcpyNode:
            return handle_graph_memcpy_node;
        case Op::kGraphMemcpyNodeGet:
            return handle_graph_memcpy_node_get;
        case Op::kGraphChildNode:
            return handle_graph_child_node;
        case Op::kGraphHostNode:
            return handle_graph_host_node;
        case Op::kGraphHostNodeGet:
            return handle_graph_host_node_get;
        case Op::kLinkCreate:
            return handle_link_create;
        case Op::kLinkAdd:
            return handle_link_add;
        case Op::kLinkComplete:
            return handle_link_complete;
        case Op::kLinkDestroy:
            return handle_link_destroy;
        case Op::kShare:
            return handle_share;
        case Op::kOpenShared:
            return handle_open_shared;
        case Op::kCloseShared:
            return handle_close_shared;
        case Op::kClosePeer:
            return handle_close_peer;
        case Op::kPeerAccess:
            return handle_peer_access;
        case Op::kMemMap:
            return handle_mem_map;
        case Op::kSetAccess:
            return handle_set_access;
        case Op::kFindMapping:
            return handle_find_mapping;
        case Op::kAwaitSlot:
            return handle_await_slot;
        default:
            return nullptr;
    }
}

namespace handlers {

CUresult use_stream(Call& call, uint32_t reference, StreamPointer* stream) {
    CUresult status = call.find_stream(reference, stream);
    if (status == CUDA_SUCCESS) status = call.session.streams().prepare(**stream);
    if (status) return status;
    call.lane.uses(**stream);
    return CUDA_SUCCESS;
}

CUresult await(Call& call, Stream& stream) {
    CUresult status = call.session.streams().synchronize(stream);
    call.session.device_printf().collect(call.session);
    return status;
}

CUresult complete_slot(Call& call, uint32_t word, uint64_t value, CUresult error, const Stream* behind) {
    if (error && call.lane.leaves_open(error)) return error;
    auto& header = *reinterpret_cast<protocol::LaneHeader*>(call.lane.address());
    int32_t none = 0;
    if (error) header.async_error.compare_exchange_strong(none, error);
    Arena& arena = call.session.arena();
    const bool in_order =
        behind && call.driver.cuStreamWriteValue64_v2(behind->handle, arena.word_address(word), value,
                                                      CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS;
    if (!in_order) arena.word(word).store(value, std::memory_order_release);
    return is_fatal(error) ? error : CUDA_SUCCESS;
}

}  // namespace handlers

}  // namespace smt::runtime::server
