// Memory that graphs allocate: cuMemAllocAsync and cuMemFreeAsync on a stream that captures.
//
// The driver would make nodes of them, with memory of its own pool; here a graph's memory is the tenant's own, like all
// of it, and is there from the capture on:
//
//   allocated in a capture   a block of the tenant's memory, for as long as the graph or anything made of it is there
//   freed in a capture       the block may serve again, in that capture behind the free in the same stream's order
//   freed outside of one     the program no longer uses it; a graph that is launched again still may
//   back to the tenant       when the graph and all that was made of it is gone, and it was freed
//
// Whether anything made of a graph is left the driver tells: the graph holds a user object, as its clones, its child
// graph nodes and its executable graphs do, and the last one's end calls it, when no launch of it is under way.
//
// Any thread may call anything. Locks: this one, then the tenant's memory. The driver's call of a user object takes none.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "driver_api.gen.h"

namespace smt::runtime::server::handlers {

class TenantMemory;

class GraphMemory {
public:
    GraphMemory(const DriverApi& driver, TenantMemory& memory) : driver_(driver), memory_(memory) {}
    GraphMemory(const GraphMemory&) = delete;
    GraphMemory& operator=(const GraphMemory&) = delete;

    // The stream captures. Freed must be what some capture allocated, and only once.
    CUresult allocate(uint64_t bytes, CUstream stream, CUdeviceptr* address);
    CUresult free_captured(CUdeviceptr address, CUstream stream);
    // The order of what the stream captured so far is no longer its own (cuStreamUpdateCaptureDependencies).
    void reorder(CUstream stream);

    bool owns(CUdeviceptr address) const;
    // Outside of captures, in the stream's order; null: the tenant's work is over.
    CUresult free(CUdeviceptr address, CUstream stream);

    void collect();   // memory of graphs that are gone
    void clear();     // the tenant's graphs are gone, and its memory is about to go

    // CUgraphMem_attribute: in use is what graphs hold.
    CUresult get_attribute(CUgraphMem_attribute attribute, uint64_t* value) const;
    CUresult set_attribute(CUgraphMem_attribute attribute, uint64_t value);

private:
    struct Graph {
        std::atomic<bool> gone{false};
    };
    using GraphPointer = std::shared_ptr<Graph>;
    struct Capture {
        GraphPointer graph;
        std::unordered_map<CUstream, std::vector<CUdeviceptr>> freed;   // oldest first
    };
    struct Block {
        uint64_t bytes = 0;
        std::vector<GraphPointer> graphs;   // that may touch it when they are launched
        bool captured_free = false;
        bool freed = false;
        CUevent event = nullptr;            // of the free, until it is over
    };

    static void graph_is_gone(void* graph);
    CUresult capture_of(CUstream stream, Capture** capture);
    bool reuse(Capture& capture, CUstream stream, uint64_t bytes, CUdeviceptr* address);
    bool is_over(Block& block);
    uint64_t reserved() const;

    const DriverApi& driver_;
    TenantMemory& memory_;

    mutable std::mutex mutex_;
    std::unordered_map<cuuint64_t, Capture> captures_;   // by the driver's number
    std::map<CUdeviceptr, Block> blocks_;
    uint64_t bytes_ = 0;   // of blocks_
    uint64_t high_ = 0;
};

}  // namespace smt::runtime::server::handlers
