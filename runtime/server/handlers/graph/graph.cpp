// Graphs: launches, and their copy and host nodes. Kernel nodes: graph_kernel.cpp.
#include <algorithm>
#include <utility>

#include "runtime/protocol/try.h"
#include "runtime/server/code/code_table.h"
#include "runtime/server/fatal.h"
#include "runtime/server/handlers/graph/graph_place.h"
#include "runtime/server/handlers/handlers.h"
#include "runtime/server/handlers/memory/copy_plan.h"
#include "runtime/server/lane.h"
#include "runtime/server/printf.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

using protocol::NodeOperation;

CUresult read_node(Call& call, CUgraphNode* node) {
    if (!decode(call, *node)) return CUDA_ERROR_INVALID_VALUE;
    call.uses.add(HandleKind::kGraphNode, *node);
    return call.uses.begin();
}

namespace {

// What the graph waits for, and the events that it records, are known to the dispatcher.
CUresult launch_graph(Call& call, CUgraphExec exec, Stream& stream) {
    Streams& streams = call.session.streams();
    GraphWaits::Launch launch = call.session.graph_waits().launch(exec);
    const device::LaunchesOf watched(call.session.launch_of(call.session.journal_name_of_graphs()));
    const auto enqueue = [&] { return call.driver.cuGraphLaunch(exec, stream.handle); };
    SMT_TRY(launch.nodes.empty() ? enqueue()
                                 : streams.enqueue_wait(stream, enqueue, std::move(launch.nodes)));
    if (launch.records.empty()) return CUDA_SUCCESS;
    const dispatch::WaitWord behind = stream.pending_wait();
    for (const CUevent event : launch.records) call.session.events().recorded(event, behind);
    return CUDA_SUCCESS;
}

// In the journal, of a preemptible tenant's.
void note_graph(Call& call, const Stream& stream, uint32_t treatment) {
    journal::Entry entry;
    entry.kind = journal::Kind::kLaunch;
    entry.session = call.session.id();
    entry.lane = call.lane.index();
    entry.stream = stream.reference;
    entry.name = call.session.journal_name_of_graphs();
    entry.value = treatment;
    entry.text = call.session.journal_name();
    std::fill_n(entry.grid, 3, 1);
    std::fill_n(entry.block, 3, 1);
    call.session.device().write(call.session.journal(), entry, &call.session);
}

CUresult launch_with_doors(Call& call, Stream& stream, GraphCopies::DoorsPointer doors, uint32_t treatment) {
    dispatch::ManagedStream* managed = nullptr;
    SMT_TRY(call.session.streams().manage(stream, &managed));
    dispatch::Work work;
    work.function = &doors->form();
    work.entry.name = call.session.journal_name_of_graphs();
    work.entry.value = treatment;
    work.total = doors->blocks();
    work.graph = std::move(doors);
    return managed->launch(std::move(work));
}

}  // namespace

CUresult handle_graph_launch(Call& call) {
    protocol::GraphLaunch request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    auto exec = reinterpret_cast<CUgraphExec>(request.exec);
    call.uses.add(HandleKind::kGraphExec, exec);
    SMT_TRY(call.uses.begin());
    StreamPointer stream;
    SMT_TRY(call.launch_stream(request.stream, &stream));
    Streams& streams = call.session.streams();
    if (streams.capturing(stream->handle)) {  // a marker would become a node
        SMT_TRY(stream->guard());
        return call.driver.cuGraphLaunch(exec, stream->handle);
    }
    SMT_TRY(call.session.stand_back());
    const bool prints = call.session.code().graphs_print().load(std::memory_order_relaxed);
    GraphCopies::Launch copy;
    SMT_TRY(
        call.session.graph_copies().launch(exec, stream, call.session.code(), call.session.memory(), &copy));
    if (prints && !copy.treatment.empty())
        copy.treatment = "unmanaged: a graph of a program of which one has a kernel that may print";
    const uint32_t treatment = copy.treatment.empty() ? 0 : call.session.journal().name(copy.treatment);
    if (treatment) note_graph(call, *stream, treatment);
    if (copy.doors && !prints) {
        call.lane.launches(*stream, call.session.journal_name_of_graphs());
        return launch_with_doors(call, *stream, std::move(copy.doors), treatment);
    }
    dispatch::UnmanagedPass pass;
    const dispatch::UnmanagedLaunch launch{
        request.exec, call.session.journal_name_of_graphs(), treatment, nullptr, 0, 0, 0};
    SMT_TRY(streams.enter(*stream, call.lane, launch, &pass));
    call.lane.launches(*stream, call.session.journal_name_of_graphs());
    if (prints) {
        pass.drop();  // the printing turn may depend on other tenants' work
        return call.session.device_printf().launch(call.session, stream->handle, [&] {
            call.session.code().output_expected().store(true);
            return launch_graph(call, exec, *stream);
        });
    }
    CUresult status = launch_graph(call, exec, *stream);
    return status == CUDA_SUCCESS ? behind_launch(pass.launched()) : status;
}

CUresult handle_graph_memcpy_node(Call& call) {
    auto request = call.in.scalar<protocol::GraphCopyNode>();
    NodePlace place;
    SMT_TRY(read_place(call, request, &place));
    CopyPlan plan;
    SMT_TRY(plan_copy(call, request.copy, &plan));
    SMT_TRY(call.uses.begin());
    CUDA_MEMCPY3D shape = plan.shape();
    CUresult status = CUDA_SUCCESS;
    switch (place.operation) {
        case NodeOperation::kAdd:
            status = call.driver.cuGraphAddMemcpyNode(&place.node, place.graph, place.dependencies,
                                                      place.dependency_count, &shape, call.context());
            break;
        case NodeOperation::kSet:
            status = call.driver.cuGraphMemcpyNodeSetParams(place.node, &shape);
            break;
        case NodeOperation::kExecSet:
            status =
                call.driver.cuGraphExecMemcpyNodeSetParams(place.exec, place.node, &shape, call.context());
            if (status == CUDA_SUCCESS)
                call.session.graph_copies().changed(place.exec, place.node, [&](CUgraphNode cloned) {
                    return call.driver.cuGraphMemcpyNodeSetParams(cloned, &shape);
                });
            break;
    }
    return answer_node(call, place, status);
}

CUresult handle_graph_memcpy_node_get(Call& call) {
    CUgraphNode node = nullptr;
    SMT_TRY(read_node(call, &node));
    CUDA_MEMCPY3D shape{};
    CUresult status = call.driver.cuGraphMemcpyNodeGetParams(node, &shape);
    if (status) return status;
    call.known(HandleKind::kArray, shape.srcArray);  // null: the array no longer exists
    call.known(HandleKind::kArray, shape.dstArray);
    call.out.scalar(shape);
    return CUDA_SUCCESS;
}

// A child graph that is moved keeps its id. Copies use the generated call (cuGraphAddChildGraphNode).
CUresult handle_graph_child_node(Call& call) {
    auto request = call.in.scalar<protocol::GraphChildNode>();
    NodePlace place;
    SMT_TRY(read_place(call, request, &place));
    if (place.operation != NodeOperation::kAdd) return CUDA_ERROR_INVALID_VALUE;
    const char* edges = nullptr;
    if (request.has_edge_data)
        edges = call.in.take(uint64_t{request.dependency_count} * sizeof(CUgraphEdgeData));
    if (!call.in.good()) return CUDA_ERROR_INVALID_VALUE;
    auto child = reinterpret_cast<CUgraph>(request.child);
    call.uses.add(HandleKind::kGraph, child);
    SMT_TRY(call.uses.begin());
    Handles& handles = call.session.handles();
    SMT_TRY(handles.may_move(child, place.graph));
    if (!call.driver.cuGraphAddNode_v2) return CUDA_ERROR_NOT_SUPPORTED;
    CUgraphNodeParams parameters{};
    parameters.type = CU_GRAPH_NODE_TYPE_GRAPH;
    parameters.graph.graph = child;
    parameters.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    CUresult status = call.driver.cuGraphAddNode_v2(&place.node, place.graph, place.dependencies,
                                                    reinterpret_cast<const CUgraphEdgeData*>(edges),
                                                    place.dependency_count, &parameters);
    if (status) return status;
    const CUgraphNode node = place.node;
    status = answer_node(call, place, status);
    handles.move_into(child, node);
    return status;
}

CUresult handle_graph_host_node(Call& call) {
    auto request = call.in.scalar<protocol::GraphHostNode>();
    NodePlace place;
    SMT_TRY(read_place(call, request, &place));
    if (request.function == 0) return CUDA_ERROR_INVALID_VALUE;
    SMT_TRY(call.uses.begin());
    CUDA_HOST_NODE_PARAMS ours = call.session.callbacks().node(request.function, request.user_data);
    if (!ours.fn) return CUDA_ERROR_OUT_OF_MEMORY;
    GraphWaits& waits = call.session.graph_waits();
    waits.expect_nodes();
    CUresult status = CUDA_SUCCESS;
    switch (place.operation) {
        case NodeOperation::kAdd:
            status = call.driver.cuGraphAddHostNode(&place.node, place.graph, place.dependencies,
                                                    place.dependency_count, &ours);
            break;
        case NodeOperation::kSet:
            status = call.driver.cuGraphHostNodeSetParams(place.node, &ours);
            break;
        case NodeOperation::kExecSet:
            status = call.driver.cuGraphExecHostNodeSetParams(place.exec, place.node, &ours);
            if (status == CUDA_SUCCESS) waits.changed(place.exec, place.node, ours);
            break;
    }
    return answer_node(call, place, status);
}

CUresult handle_graph_host_node_get(Call& call) {
    CUgraphNode node = nullptr;
    SMT_TRY(read_node(call, &node));
    CUDA_HOST_NODE_PARAMS ours{};
    CUresult status = call.driver.cuGraphHostNodeGetParams(node, &ours);
    if (status) return status;
    uint64_t function = 0, user_data = 0;
    if (!call.session.callbacks().application_function(ours, &function, &user_data))
        return CUDA_ERROR_INVALID_VALUE;
    call.out.scalar(function);
    call.out.scalar(user_data);
    return CUDA_SUCCESS;
}

}  // namespace smt::runtime::server::handlers
