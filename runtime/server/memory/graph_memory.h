// Memory that graphs allocate: cuMemAllocAsync and cuMemFreeAsync on a capturing stream.
//
// The driver would make graph nodes of these calls, with memory of its own pool. Here a graph's memory comes
// from the tenant's own memory and exists from the capture on:
//
//   allocated in a capture   a block of the tenant's memory, while the graph or any derived object exists
//   freed in a capture       the same capture may reuse the block behind the free in the same stream's order
//   freed outside a capture  the program no longer uses it; a later launch of the graph may
//   back to the tenant       once it was freed, and the graph and all derived objects are gone
//
// The driver reports the end of the derived objects: the graph, its clones, its child graph nodes and its
// executable graphs hold a user object, and the driver calls its destructor when the last of them is
// destroyed and no launch of it is under way.
//
// Any thread. Lock order: this object's, then the tenant's memory. The user object's destructor takes no
// lock.
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

namespace smt::runtime::server {

class TenantMemory;

class GraphMemory {
public:
    GraphMemory(const DriverApi& driver, TenantMemory& memory) : driver_(driver), memory_(memory) {}
    GraphMemory(const GraphMemory&) = delete;
    GraphMemory& operator=(const GraphMemory&) = delete;

    // The stream must be capturing. free_captured() takes an address that a capture allocated, once.
    CUresult allocate(uint64_t bytes, CUstream stream, CUdeviceptr* address);
    CUresult free_captured(CUdeviceptr address, CUstream stream);
    // The stream's later nodes no longer follow its earlier ones (cuStreamUpdateCaptureDependencies).
    void reorder(CUstream stream);

    bool owns(CUdeviceptr address) const;
    // Outside captures, in the stream's order. Null stream: the tenant's work is complete.
    CUresult free(CUdeviceptr address, CUstream stream);

    bool any() const;  // graphs hold memory, or a capture is under way
    void collect();    // returns the memory of graphs that are gone
    void clear();      // before the tenant's memory is freed, after its graphs are destroyed

    // CUgraphMem_attribute. "Used" is the memory that graphs hold.
    CUresult get_attribute(CUgraphMem_attribute attribute, uint64_t* value) const;
    CUresult set_attribute(CUgraphMem_attribute attribute, uint64_t value);

private:
    struct Graph {
        std::atomic<bool> gone{false};
    };
    using GraphPointer = std::shared_ptr<Graph>;
    struct Capture {
        GraphPointer graph;
        std::unordered_map<CUstream, std::vector<CUdeviceptr>> freed;  // oldest first
    };
    struct Block {
        uint64_t bytes = 0;
        std::vector<GraphPointer> graphs;  // their launches may access it
        bool captured_free = false;
        bool freed = false;
        CUevent event = nullptr;  // behind the free, until it has completed
    };

    static void graph_is_gone(void* graph);
    CUresult capture_of(CUstream stream, Capture** capture);
    bool reuse(Capture& capture, CUstream stream, uint64_t bytes, CUdeviceptr* address);
    bool is_over(Block& block);
    uint64_t reserved() const;

    const DriverApi& driver_;
    TenantMemory& memory_;

    mutable std::mutex mutex_;
    std::unordered_map<cuuint64_t, Capture> captures_;  // by the driver's capture id
    std::map<CUdeviceptr, Block> blocks_;
    uint64_t bytes_ = 0;  // of blocks_
    uint64_t high_ = 0;
};

}  // namespace smt::runtime::server
