// What becomes of each node of a graph in its copy:
//
//   kernel        gets the words of the graph in place of the door's zeros
//   fill, copy    a kernel that does it, with the same edges (dispatch/moves.h); of copies those within
//                 device memory
//   child graph   likewise, inside
//   empty         stays
//   any other     there is no copy: it would run although a kernel in front of it was stopped
#include "runtime/server/graph_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "runtime/dispatch/quiesce.h"
#include "runtime/protocol/try.h"
#include "runtime/server/memory/tenant_memory.h"

namespace smt::runtime::server {

namespace {

using dispatch::GraphDoors;
using dispatch::MoveLaunch;

struct Edge {
    CUgraphNode from, to;
    CUgraphEdgeData data;
};

const char* kind_of_node(CUgraphNodeType type) {
    switch (type) {
        case CU_GRAPH_NODE_TYPE_HOST:
            return "a host function";
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
            return "a wait for an event";
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
            return "an event";
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
            return "a wait for a value, or its write";
        default:
            return "a node of an unknown kind";
    }
}

class GraphCopy {
public:
    GraphCopy(dispatch::Dispatcher& dispatcher, const dispatch::Tenant& tenant, const CodeTable& code,
              const TenantMemory& memory)
        : dispatcher_(dispatcher), driver_(dispatcher.driver()), code_(code), memory_(memory) {
        multiprocessors_ = tenant.places
                               ? tenant.places->count()
                               : static_cast<unsigned>(dispatcher.device().properties().multiprocessors);
    }

    // Each: false with why() set, if there is no copy.
    bool read(CUgraph graph);
    bool give_doors(GraphDoors& doors, unsigned long long flags);
    const std::string& why() const { return why_; }
    static bool has_moves(const DriverApi& driver, CUgraph graph);

private:
    bool refuse(std::string why) {
        why_ = std::move(why);
        return false;
    }
    bool needs(const char* what, CUresult status) {
        return status == CUDA_SUCCESS ||
               refuse(fmt::format("a graph of which the driver makes no copy: {}, error {}", what,
                                  static_cast<int>(status)));
    }
    bool read_node(CUgraph graph, CUgraphNode node);
    bool read_child(CUgraph graph);
    bool read_kernel(CUgraphNode node);
    bool read_fill(CUgraph graph, CUgraphNode node);
    bool read_copy(CUgraph graph, CUgraphNode node);
    bool replace(CUgraph graph, CUgraphNode node, MoveLaunch& launch);
    CUresult find_edges(CUgraph graph, std::vector<Edge>& edges) const;
    bool edges_of(CUgraph graph, std::vector<Edge>& edges);
    uint32_t unit_of(CUgraphNode node, const LoadedKernel& kernel) const;
    bool cooperative(CUgraphNode node) const;
    uint64_t places(const LoadedKernel& kernel, const CUDA_KERNEL_NODE_PARAMS& node) const;
    void chain(CUgraph graph, size_t first);

    dispatch::Dispatcher& dispatcher_;
    const DriverApi& driver_;
    const CodeTable& code_;
    const TenantMemory& memory_;
    unsigned multiprocessors_ = 0;
    std::vector<GraphDoors::Kernel> kernels_;
    bool nested_ = false;  // what is read is a child graph
    uint64_t blocks_ = 0;
    std::string why_;
};

std::vector<CUgraphNode> nodes_in(const DriverApi& driver, CUgraph graph) {
    size_t count = 0;
    if (driver.cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS || count == 0) return {};
    std::vector<CUgraphNode> nodes(count);
    if (driver.cuGraphGetNodes(graph, nodes.data(), &count) != CUDA_SUCCESS) return {};
    nodes.resize(count);
    return nodes;
}

// Also of the graphs in it.
bool GraphCopy::has_moves(const DriverApi& driver, CUgraph graph) {
    const std::vector<CUgraphNode> nodes = nodes_in(driver, graph);
    return std::any_of(nodes.begin(), nodes.end(), [&](CUgraphNode node) {
        CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
        CUgraph child = nullptr;
        if (driver.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) return false;
        return type == CU_GRAPH_NODE_TYPE_MEMSET || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
               (type == CU_GRAPH_NODE_TYPE_GRAPH &&
                driver.cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS &&
                has_moves(driver, child));
    });
}

bool GraphCopy::read(CUgraph graph) {
    const size_t first = kernels_.size();
    for (CUgraphNode node : nodes_in(driver_, graph))
        if (!read_node(graph, node)) return false;
    chain(graph, first);
    return true;
}

bool GraphCopy::read_child(CUgraph graph) {
    const bool outer = std::exchange(nested_, true);
    const bool whole = read(graph);
    nested_ = outer;
    return whole;
}

bool GraphCopy::read_node(CUgraph graph, CUgraphNode node) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CUgraph child = nullptr;
    if (!needs("a node's kind", driver_.cuGraphNodeGetType(node, &type))) return false;
    switch (type) {
        case CU_GRAPH_NODE_TYPE_EMPTY:
            return true;
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return read_kernel(node);
        case CU_GRAPH_NODE_TYPE_MEMSET:
            return read_fill(graph, node);
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            return read_copy(graph, node);
        case CU_GRAPH_NODE_TYPE_GRAPH:
            return needs("a child graph", driver_.cuGraphChildGraphNodeGetGraph(node, &child)) &&
                   read_child(child);
        default:
            return refuse(fmt::format("a graph with {}, which would not wait for a stopped kernel",
                                      kind_of_node(type)));
    }
}

// A driver that does not tell attributes has none.
bool GraphCopy::cooperative(CUgraphNode node) const {
    CUkernelNodeAttrValue value{};
    return driver_.cuGraphKernelNodeGetAttribute &&
           driver_.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) ==
               CUDA_SUCCESS &&
           value.cooperative != 0;
}

// Blocks of a cluster; 1 without clusters. 0: clusters may have two sizes.
uint32_t GraphCopy::unit_of(CUgraphNode node, const LoadedKernel& kernel) const {
    const uint32_t own = kernel.at_door.cluster.load(std::memory_order_relaxed);
    CUkernelNodeAttrValue value{};
    const auto asked = [&](CUlaunchAttributeID attribute) {
        value = {};
        return driver_.cuGraphKernelNodeGetAttribute &&
               driver_.cuGraphKernelNodeGetAttribute(node, attribute, &value) == CUDA_SUCCESS;
    };
    const auto blocks = [](const auto& size) { return uint64_t{size.x} * size.y * size.z; };
    if (asked(CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION) && blocks(value.preferredClusterDim) > 1)
        return 0;
    constexpr uint64_t kMostInCluster = 1024;
    if (!asked(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) || blocks(value.clusterDim) == 0) return own;
    return blocks(value.clusterDim) > kMostInCluster ? 0 : static_cast<uint32_t>(blocks(value.clusterDim));
}

// Blocks that the device runs at once; all, where that is not known.
uint64_t GraphCopy::places(const LoadedKernel& kernel, const CUDA_KERNEL_NODE_PARAMS& node) const {
    int fits = 0;
    const unsigned threads = node.blockDimX * node.blockDimY * node.blockDimZ;
    if (driver_.cuOccupancyMaxActiveBlocksPerMultiprocessor(&fits, kernel.function, static_cast<int>(threads),
                                                            node.sharedMemBytes) != CUDA_SUCCESS)
        return smt::kMostDoorUnits;
    return static_cast<uint64_t>(std::max(fits, 1)) * multiprocessors_;
}

// Which kernels the next one in the list waits for alone. `first`: of the graph's.
void GraphCopy::chain(CUgraph graph, size_t first) {
    std::vector<Edge> edges;
    if (find_edges(graph, edges) != CUDA_SUCCESS) return;
    std::map<CUgraphNode, std::vector<CUgraphNode>> before;
    for (const Edge& edge : edges) before[edge.to].push_back(edge.from);
    for (size_t i = first; i + 1 < kernels_.size(); ++i)
        kernels_[i].alone |= before[kernels_[i + 1].node] == std::vector{kernels_[i].node};
}

bool GraphCopy::read_kernel(CUgraphNode node) {
    CUDA_KERNEL_NODE_PARAMS set{};
    if (!needs("a kernel's parameters", driver_.cuGraphKernelNodeGetParams_v2(node, &set))) return false;
    const LoadedKernel* kernel = code_.find(set.func, set.kern);
    if (!kernel) return refuse("a graph with a kernel that is unloaded");
    if (!kernel->at_door.function)
        return refuse(fmt::format("a graph with a kernel that has no door: {}", kernel->name));
    if (cooperative(node)) return refuse(fmt::format("a graph with a cooperative kernel: {}", kernel->name));
    const uint64_t blocks = uint64_t{set.gridDimX} * set.gridDimY * set.gridDimZ;
    const uint32_t unit = unit_of(node, *kernel);
    if (unit == 0 || blocks % unit != 0 || blocks > smt::kMostDoorUnits || !set.kernelParams)
        return refuse(fmt::format("a graph with a launch that no door is for: {}", kernel->name));
    const uint32_t threads = set.blockDimX * set.blockDimY * set.blockDimZ;
    kernels_.push_back({.node = node,
                        .parameters = kernel->parameters.size() + 1,
                        .units = static_cast<uint32_t>(blocks / unit),
                        .unit = unit,
                        .places = places(*kernel, set),
                        .block_ps = kernel->at_door.queued.of(blocks, threads).block_ps(),
                        .nested = nested_});
    kernels_.back().waits = kernel->at_door.waits;
    blocks_ += blocks;
    return true;
}

CUresult GraphCopy::find_edges(CUgraph graph, std::vector<Edge>& edges) const {
    size_t count = 0;
    if (!driver_.cuGraphGetEdges_v2) return CUDA_ERROR_NOT_SUPPORTED;
    SMT_TRY(driver_.cuGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &count));
    std::vector<CUgraphNode> from(count), to(count);
    std::vector<CUgraphEdgeData> data(count);
    if (count) SMT_TRY(driver_.cuGraphGetEdges_v2(graph, from.data(), to.data(), data.data(), &count));
    for (size_t i = 0; i < count; ++i) edges.push_back({from[i], to[i], data[i]});
    return CUDA_SUCCESS;
}

bool GraphCopy::edges_of(CUgraph graph, std::vector<Edge>& edges) {
    if (!driver_.cuGraphGetEdges_v2 || !driver_.cuGraphAddDependencies_v2)
        return refuse("a graph with a fill or a copy, of which the driver does not tell the edges");
    return needs("its edges", find_edges(graph, edges));
}

// The kernel that does what a fill or copy node does, with the node's edges.
bool GraphCopy::replace(CUgraph graph, CUgraphNode node, MoveLaunch& launch) {
    std::vector<Edge> edges;
    if (!edges_of(graph, edges)) return false;
    const std::span<void*> parameters = launch.parameters();
    CUDA_KERNEL_NODE_PARAMS kernel{};
    kernel.func = launch.form->function;
    kernel.gridDimX = launch.blocks;
    kernel.gridDimY = kernel.gridDimZ = kernel.blockDimY = kernel.blockDimZ = 1;
    kernel.blockDimX = MoveLaunch::kThreads;
    kernel.kernelParams = parameters.data();
    CUgraphNode made = nullptr;
    if (!needs("a kernel that fills or copies",
               driver_.cuGraphAddKernelNode_v2(&made, graph, nullptr, 0, &kernel)))
        return false;
    for (const Edge& edge : edges) {
        if (edge.from != node && edge.to != node) continue;
        const CUgraphNode from = edge.from == node ? made : edge.from, to = edge.to == node ? made : edge.to;
        if (!needs("an edge", driver_.cuGraphAddDependencies_v2(graph, &from, &to, &edge.data, 1)))
            return false;
    }
    if (!needs("a node's end", driver_.cuGraphDestroyNode(node))) return false;
    kernels_.push_back({.node = made,
                        .parameters = parameters.size(),
                        .units = launch.blocks,
                        .places = multiprocessors_,
                        .block_ps = MoveLaunch::kBlockPs,
                        .nested = nested_});
    blocks_ += launch.blocks;
    return true;
}

bool GraphCopy::read_fill(CUgraph graph, CUgraphNode node) {
    CUDA_MEMSET_NODE_PARAMS fill{};
    MoveLaunch launch;
    if (!needs("a fill", driver_.cuGraphMemsetNodeGetParams(node, &fill))) return false;
    if (dispatcher_.supplies().moves().plan(fill, &launch) != CUDA_SUCCESS)
        return refuse("a graph with a fill that no kernel does");
    return replace(graph, node, launch);
}

bool GraphCopy::read_copy(CUgraph graph, CUgraphNode node) {
    CUDA_MEMCPY3D copy{};
    MoveLaunch launch;
    if (driver_.cuGraphMemcpyNodeGetParams(node, &copy) != CUDA_SUCCESS ||
        dispatcher_.supplies().moves().plan(
            copy, [&](CUdeviceptr address) { return memory_.in_device_range(address, 1); }, &launch) !=
            CUDA_SUCCESS)
        return refuse("a graph with a copy that is not within device memory, or is a box or of an array");
    return replace(graph, node, launch);
}

bool GraphCopy::give_doors(GraphDoors& doors, unsigned long long flags) {
    if (kernels_.empty()) return refuse("a graph without kernels");
    if (kernels_.size() > GraphDoors::kMostNodes || blocks_ > smt::kMostDoorUnits)
        return refuse("a graph with more kernels, or more of their blocks, than there are words for");
    if (!needs("its words", doors.open(kernels_.size()))) return false;
    for (const GraphDoors::Kernel& each : kernels_)
        if (!needs("a kernel's door", doors.add(each))) return false;
    return needs("its instance", doors.instantiate(flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
}

}  // namespace

std::shared_ptr<GraphDoors> copy_with_doors(dispatch::Dispatcher& dispatcher, const dispatch::Tenant& tenant,
                                            const CodeTable& code, const TenantMemory& memory, CUgraph graph,
                                            unsigned long long flags, std::string* why) {
    const DriverApi& driver = dispatcher.driver();
    if (!dispatcher.supplies().moves().loaded() && GraphCopy::has_moves(driver, graph)) {
        const dispatch::Quiesce others(dispatcher, tenant);
        if (dispatcher.supplies().moves().load() != CUDA_SUCCESS) {
            *why = "a graph with a fill or a copy: the kernel for it could not be loaded";
            return nullptr;
        }
    }
    CUgraph copy = nullptr;
    if (const CUresult status = driver.cuGraphClone(&copy, graph); status != CUDA_SUCCESS) {
        *why = "a graph that the driver does not copy";
        return nullptr;
    }
    auto doors = std::make_shared<GraphDoors>(dispatcher.supplies().graph_words(), copy);
    GraphCopy making(dispatcher, tenant, code, memory);
    if (making.read(copy) && making.give_doors(*doors, flags)) return doors;
    *why = making.why();
    return nullptr;
}

}  // namespace smt::runtime::server
