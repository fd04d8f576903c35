// See graph_memory.h.
#include "runtime/server/memory/graph_memory.h"

#include <algorithm>
#include <utility>

#include "runtime/protocol/try.h"
#include "runtime/server/memory/pools.h"
#include "runtime/server/memory/tenant_memory.h"

namespace smt::runtime::server {

void GraphMemory::graph_is_gone(void* graph) {
    std::unique_ptr<GraphPointer> held(static_cast<GraphPointer*>(graph));
    (*held)->gone.store(true, std::memory_order_release);
}

// The first call for a capture gives its graph the user object that reports the graph's end.
CUresult GraphMemory::capture_of(CUstream stream, Capture** capture) {
    if (!driver_.cuUserObjectCreate || !driver_.cuGraphRetainUserObject)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    CUgraph graph = nullptr;
    if (CUresult failed =
            driver_.cuStreamGetCaptureInfo_v3(stream, &status, &id, &graph, nullptr, nullptr, nullptr))
        return failed;
    if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    *capture = &captures_[id];
    if ((*capture)->graph) return CUDA_SUCCESS;
    auto made = std::make_shared<Graph>();
    auto held = std::make_unique<GraphPointer>(made);
    CUuserObject object = nullptr;
    SMT_TRY(
        driver_.cuUserObjectCreate(&object, held.get(), graph_is_gone, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    (void)held.release();  // graph_is_gone deletes it
    if (CUresult failed = driver_.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE)) {
        driver_.cuUserObjectRelease(object, 1);
        return failed;
    }
    (*capture)->graph = std::move(made);
    return CUDA_SUCCESS;
}

// The tenant's memory is called without the lock, because it may call collect().
CUresult GraphMemory::allocate(uint64_t bytes, CUstream stream, CUdeviceptr* address) {
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    collect();
    GraphPointer graph;
    {
        std::lock_guard lock(mutex_);
        Capture* capture = nullptr;
        SMT_TRY(capture_of(stream, &capture));
        if (reuse(*capture, stream, bytes, address)) return CUDA_SUCCESS;
        graph = capture->graph;
    }
    SMT_TRY(memory_.allocate(bytes, address));
    const uint64_t taken = memory_.find(*address).bytes;
    std::lock_guard lock(mutex_);
    blocks_[*address] = {taken, {std::move(graph)}};
    bytes_ += taken;
    high_ = std::max(high_, reserved());
    return CUDA_SUCCESS;
}

// Takes the smallest block that is large enough and not more than twice too large.
bool GraphMemory::reuse(Capture& capture, CUstream stream, uint64_t bytes, CUdeviceptr* address) {
    auto found = capture.freed.find(stream);
    if (found == capture.freed.end()) return false;
    std::vector<CUdeviceptr>& freed = found->second;
    auto best = freed.end();
    for (auto it = freed.begin(); it != freed.end(); ++it) {
        const uint64_t size = blocks_[*it].bytes;
        if (size < bytes || size / 2 > std::max(bytes, kBlockBytes)) continue;
        if (best == freed.end() || size < blocks_[*best].bytes) best = it;
    }
    if (best == freed.end()) return false;
    *address = *best;
    freed.erase(best);
    Block& block = blocks_[*address];
    block.captured_free = false;
    memory_.note_reuse(*address, block.bytes, bytes);
    return true;
}

CUresult GraphMemory::free_captured(CUdeviceptr address, CUstream stream) {
    std::lock_guard lock(mutex_);
    auto found = blocks_.find(address);
    if (found == blocks_.end()) return CUDA_ERROR_INVALID_VALUE;
    Capture* capture = nullptr;
    SMT_TRY(capture_of(stream, &capture));
    Block& block = found->second;
    if (block.captured_free) return CUDA_ERROR_INVALID_VALUE;
    block.captured_free = true;
    if (block.graphs.front() == capture->graph) {
        capture->freed[stream].push_back(address);
    } else {
        // The block belongs to another graph: a launch of this graph frees it.
        block.graphs.push_back(capture->graph);
    }
    return CUDA_SUCCESS;
}

void GraphMemory::reorder(CUstream stream) {
    std::lock_guard lock(mutex_);
    for (auto& [id, capture] : captures_) {
        if (capture.freed.contains(stream)) capture.freed.clear();
    }
}

bool GraphMemory::owns(CUdeviceptr address) const {
    std::lock_guard lock(mutex_);
    return blocks_.contains(address);
}

// An earlier free is no error: a launch in between has allocated the block again.
CUresult GraphMemory::free(CUdeviceptr address, CUstream stream) {
    std::lock_guard lock(mutex_);
    auto found = blocks_.find(address);
    if (found == blocks_.end() || found->second.captured_free) return CUDA_ERROR_INVALID_VALUE;
    Block& block = found->second;
    if (stream) {
        if (!block.event) {
            SMT_TRY(driver_.cuEventCreate(&block.event, CU_EVENT_DISABLE_TIMING));
        }
        SMT_TRY(driver_.cuEventRecord(block.event, stream));
    }
    block.freed = true;
    return CUDA_SUCCESS;
}

bool GraphMemory::is_over(Block& block) {
    const auto gone = [](const GraphPointer& graph) { return graph->gone.load(std::memory_order_acquire); };
    if (!std::all_of(block.graphs.begin(), block.graphs.end(), gone)) return false;
    if (!block.captured_free && !block.freed) return false;
    if (block.event && driver_.cuEventQuery(block.event) == CUDA_ERROR_NOT_READY) return false;
    if (block.event) driver_.cuEventDestroy_v2(block.event);
    return true;
}

bool GraphMemory::any() const {
    std::lock_guard lock(mutex_);
    return !blocks_.empty() || !captures_.empty();
}

void GraphMemory::collect() {
    std::lock_guard lock(mutex_);
    if (blocks_.empty()) return;
    for (auto it = blocks_.begin(); it != blocks_.end();) {
        if (!is_over(it->second)) {
            ++it;
            continue;
        }
        bytes_ -= it->second.bytes;
        memory_.free(it->first);
        it = blocks_.erase(it);
    }
    std::erase_if(captures_,
                  [](const auto& each) { return !each.second.graph || each.second.graph->gone.load(); });
}

void GraphMemory::clear() {
    std::lock_guard lock(mutex_);
    for (auto& [address, block] : blocks_) {
        if (block.event) driver_.cuEventDestroy_v2(block.event);
    }
    blocks_.clear();
    captures_.clear();
    bytes_ = high_ = 0;
}

uint64_t GraphMemory::reserved() const { return Pools::in_steps(bytes_); }

CUresult GraphMemory::get_attribute(CUgraphMem_attribute attribute, uint64_t* value) const {
    std::lock_guard lock(mutex_);
    switch (attribute) {
        case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
        case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
            *value = reserved();
            return CUDA_SUCCESS;
        case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
            *value = high_;
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult GraphMemory::set_attribute(CUgraphMem_attribute attribute, uint64_t value) {
    std::lock_guard lock(mutex_);
    const bool high =
        attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
    if (!high || value != 0) return CUDA_ERROR_INVALID_VALUE;
    high_ = reserved();
    return CUDA_SUCCESS;
}

}  // namespace smt::runtime::server
