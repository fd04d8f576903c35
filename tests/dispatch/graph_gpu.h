// Graphs for the GPU of door_gpu.h: their nodes are kernels with doors, and branches run beside each other.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "tests/dispatch/door_gpu.h"

namespace smt::tests {

struct FakeGraph;

struct FakeNode {
    FakeGraph* graph = nullptr;
    uint32_t name = 0, units = 0;
    std::vector<uint32_t> behind;  // names of nodes
    smt::DoorLaunch door{};        // of the graph
    smt::DoorLaunch in_exec{};
    void* pointers[2] = {};
};

// Nodes are given by their names. One instance of it. It outlives the stream that launches it.
struct FakeGraph {
    std::vector<std::unique_ptr<FakeNode>> nodes;
    int alive = 1, instances = 0, changes = 0;

    CUgraphNode add(uint32_t units, std::vector<uint32_t> behind) {
        auto node = std::make_unique<FakeNode>();
        node->graph = this;
        node->name = static_cast<uint32_t>(nodes.size());
        node->units = units;
        node->behind = std::move(behind);
        nodes.push_back(std::move(node));
        return reinterpret_cast<CUgraphNode>(nodes.back().get());
    }
};

inline CUresult set(FakeNode& node, smt::DoorLaunch* door, const CUDA_KERNEL_NODE_PARAMS& parameters) {
    CHECK(*static_cast<uint32_t*>(parameters.kernelParams[0]) == node.name);
    *door = *static_cast<const smt::DoorLaunch*>(parameters.kernelParams[1]);
    return CUDA_SUCCESS;
}

// A launch under way: units of all nodes that have begun, in any order that the edges and the index allow.
struct RunningGraph {
    std::vector<FakeNode> nodes;
    std::vector<uint32_t> next;
    std::mt19937_64 random;

    bool over(uint32_t name) const { return next[name] == nodes[name].units; }
    bool step(uint64_t& units) {
        for (;;) {
            std::vector<uint32_t> ready;
            for (const FakeNode& node : nodes) {
                const bool begins = std::all_of(node.behind.begin(), node.behind.end(),
                                                [&](uint32_t name) { return over(name); });
                if (begins && !over(node.name)) ready.push_back(node.name);
            }
            if (ready.empty()) return true;
            if (units == 0) return false;
            const FakeNode& node = nodes[ready[random() % ready.size()]];
            const uint32_t unit = next[node.name]++;
            if (unit < node.in_exec.from || unit >= node.in_exec.to) continue;
            if (!DoorGpu::admits(node.in_exec, unit)) continue;
            DoorGpu::the().ran.emplace_back(node.name, unit);
            --units;
        }
    }
};

inline DriverApi driver_with_graphs() {
    DriverApi driver = DoorGpu::driver();
    driver.cuGraphKernelNodeGetParams_v2 = [](CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS* parameters) {
        auto& node = *reinterpret_cast<FakeNode*>(handle);
        node.pointers[0] = &node.name;
        node.pointers[1] = &node.door;
        parameters->func = reinterpret_cast<CUfunction>(1);
        parameters->kernelParams = node.pointers;
        return CUDA_SUCCESS;
    };
    driver.cuGraphKernelNodeSetParams_v2 = [](CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS* parameters) {
        auto& node = *reinterpret_cast<FakeNode*>(handle);
        return set(node, &node.door, *parameters);
    };
    driver.cuGraphExecKernelNodeSetParams_v2 = [](CUgraphExec exec, CUgraphNode handle,
                                                  const CUDA_KERNEL_NODE_PARAMS* parameters) {
        auto& node = *reinterpret_cast<FakeNode*>(handle);
        CHECK(reinterpret_cast<FakeGraph*>(exec) == node.graph);
        ++node.graph->changes;
        return set(node, &node.in_exec, *parameters);
    };
    driver.cuGraphInstantiateWithFlags = [](CUgraphExec* exec, CUgraph handle, unsigned long long) {
        auto& graph = *reinterpret_cast<FakeGraph*>(handle);
        for (auto& node : graph.nodes) node->in_exec = node->door;
        ++graph.instances;
        *exec = reinterpret_cast<CUgraphExec>(handle);
        return CUDA_SUCCESS;
    };
    driver.cuGraphLaunch = [](CUgraphExec exec, CUstream stream) {
        CHECK(stream == DoorGpu::kProgram);
        auto running = std::make_shared<RunningGraph>();
        for (const auto& node : reinterpret_cast<FakeGraph*>(exec)->nodes) running->nodes.push_back(*node);
        running->next.resize(running->nodes.size());
        running->random.seed(DoorGpu::the().launches);
        DoorGpu::the().push([running](uint64_t& units) { return running->step(units); });
        return CUDA_SUCCESS;
    };
    driver.cuMemcpyDtoDAsync_v2 = [](CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
        DoorGpu::the().push(
            [=](uint64_t&) {
                std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
                return true;
            },
            0);
        return CUDA_SUCCESS;
    };
    driver.cuGraphExecDestroy = [](CUgraphExec exec) {
        --reinterpret_cast<FakeGraph*>(exec)->instances;
        return CUDA_SUCCESS;
    };
    driver.cuGraphDestroy = [](CUgraph graph) {
        --reinterpret_cast<FakeGraph*>(graph)->alive;
        return CUDA_SUCCESS;
    };
    return driver;
}

}  // namespace smt::tests
