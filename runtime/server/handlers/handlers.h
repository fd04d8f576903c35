// The hand-written handlers, by area, and their common functions. Each decodes its request, checks it, calls
// the driver and replies (contract: call.h). written_handler.cpp maps opcodes to them.
#pragma once

#include "runtime/server/call.h"
#include "runtime/server/streams.h"

namespace smt::runtime::server::handlers {

// memory/memory.cpp
CUresult handle_mem_alloc(Call& call);
CUresult handle_mem_free(Call& call);
CUresult handle_host_alloc(Call& call);
CUresult handle_host_alloc_showing(Call& call);
CUresult handle_host_free(Call& call);
CUresult handle_mem_info(Call& call);
CUresult handle_mem_alloc_async(Call& call);
CUresult handle_mem_free_async(Call& call);
CUresult handle_address_reserve(Call& call);
CUresult handle_address_free(Call& call);
// memory/sharing.cpp
CUresult handle_share(Call& call);
CUresult handle_open_shared(Call& call);
CUresult handle_close_shared(Call& call);
CUresult handle_close_peer(Call& call);
CUresult handle_peer_access(Call& call);
// memory/served_virtual_memory.cpp
CUresult handle_mem_map(Call& call);
CUresult handle_set_access(Call& call);
CUresult handle_find_mapping(Call& call);
// memory/copy.cpp
CUresult handle_copy(Call& call);
CUresult handle_copy_slot(Call& call);
CUresult handle_await_slot(Call& call);
// code/image.cpp
CUresult handle_upload_begin(Call& call);
CUresult handle_upload_slot(Call& call);
CUresult handle_download(Call& call);
CUresult handle_module_load(Call& call);
CUresult handle_module_unload(Call& call);
// code/function.cpp
CUresult handle_get_function(Call& call);
CUresult handle_enumerate_functions(Call& call);
CUresult handle_function_attribute(Call& call);
CUresult handle_get_global(Call& call);
CUresult handle_get_managed(Call& call);
// code/launch.cpp
CUresult handle_launch(Call& call);
// graph/capture.cpp
CUresult handle_begin_capture(Call& call);
CUresult handle_begin_capture_to_graph(Call& call);
CUresult handle_end_capture(Call& call);
CUresult handle_capture_info(Call& call);
CUresult handle_update_capture(Call& call);
// graph/graph.cpp, graph/graph_kernel.cpp
CUresult handle_graph_launch(Call& call);
CUresult handle_graph_memcpy_node(Call& call);
CUresult handle_graph_memcpy_node_get(Call& call);
CUresult handle_graph_child_node(Call& call);
CUresult handle_graph_host_node(Call& call);
CUresult handle_graph_host_node_get(Call& call);
CUresult handle_graph_kernel_node(Call& call);
CUresult handle_graph_kernel_node_get(Call& call);
// code/link.cpp
CUresult handle_link_create(Call& call);
CUresult handle_link_add(Call& call);
CUresult handle_link_complete(Call& call);
CUresult handle_link_destroy(Call& call);

template <typename Request>
bool decode(Call& call, Request& request) {
    request = call.in.scalar<Request>();
    return call.in.good();
}

// As Call::stream(), for handlers that need the Stream and not only its handle.
CUresult use_stream(Call& call, uint32_t reference, StreamPointer* stream);

// Waits for the stream, then collects device printf output.
CUresult await(Call& call, Stream& stream);

// Completes a staging slot from the host, or behind the work of a stream. An error is stored for the client
// before that, because the client checks for it when it sees the slot complete. Returns fatal errors only.
CUresult complete_slot(Call& call, uint32_t word, uint64_t value, CUresult error,
                       const Stream* behind = nullptr);

}  // namespace smt::runtime::server::handlers
