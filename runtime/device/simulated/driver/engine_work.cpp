// How a stream's work is begun, and what follows when it is over: kernels and copies on the machine, host
// functions on threads of their own, and what takes no time at once.
#include <algorithm>
#include <utility>

#include "runtime/device/simulated/driver/engine.h"

namespace smt::runtime::device::simulated {

using hosted::Lock;
using hosted::Node;
using hosted::world;

// After a fault has ended a tenant none of its work is carried out, and threads that wait for it go on.
void Engine::start(Lock& lock, const StreamPointer& stream) {
    const std::shared_ptr<Node> node = stream->queue.front();
    stream->under_way = true;
    if (is_lost(*stream)) {
        if (node->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) return carry_out(lock, stream, *node);
        return finish(*stream);
    }
    switch (node->type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return start_kernel(stream, *node);
        case CU_GRAPH_NODE_TYPE_MEMCPY:
        case CU_GRAPH_NODE_TYPE_MEMSET:
            return start_copy(stream, node);
        case CU_GRAPH_NODE_TYPE_HOST:
            return start_host_function(stream, node);
        default:
            return carry_out(lock, stream, *node);
    }
}

void Engine::start_kernel(const StreamPointer& stream, const Node& node) {
    auto grid =
        make_grid_(node.launch, stream->tenant, [this, stream](const GridResult&) { kernel_over(stream); });
    grid->priority = node.launch.has_priority ? node.launch.priority : stream->priority;
    grid->places = node.launch.places;
    grids_.emplace_back(stream, grid);
    machine_.launch(std::move(grid));
}

// A fault ends everything that its tenant has on the machine, or everything.
void Engine::kernel_over(const StreamPointer& stream) {
    std::erase_if(grids_, [&](const auto& each) { return each.first == stream; });
    done_by_machine_.push_back(stream);
    if (is_lost(*stream)) cancel_lost();
}

void Engine::cancel_lost() {
    for (const auto& [stream, grid] : grids_) {
        if (is_lost(*stream)) machine_.cancel(*grid);
    }
}

// Moves the bytes when the copy is over.
void Engine::start_copy(const StreamPointer& stream, const std::shared_ptr<Node>& node) {
    CopyEngine engine = CopyEngine::kWithin;
    uint64_t bytes = 0;
    if (node->type == CU_GRAPH_NODE_TYPE_MEMSET) {
        bytes = node->fill.width * node->fill.elementSize * std::max<size_t>(node->fill.height, 1) / 2;
    } else {
        const CUDA_MEMCPY3D& copy = node->copy;
        const auto device = [](CUmemorytype type, uint64_t address) {
            if (type == CU_MEMORYTYPE_HOST) return false;
            return type == CU_MEMORYTYPE_ARRAY || hosted::on_device(address);
        };
        const bool from = device(copy.srcMemoryType, copy.srcDevice),
                   to = device(copy.dstMemoryType, copy.dstDevice);
        if (!from || !to) engine = to ? CopyEngine::kToDevice : CopyEngine::kToHost;
        bytes = copy.WidthInBytes * copy.Height * copy.Depth;
    }
    machine_.copy(engine, bytes, [this, stream, node] {
        node->work();
        done_by_machine_.push_back(stream);
    });
}

// On a thread of its own: it may wait for other work of the device. Without one the tenant is lost, and no
// other.
void Engine::start_host_function(const StreamPointer& stream, const std::shared_ptr<Node>& node) {
    std::shared_ptr<Tenant> tenant = stream->tenant;
    if (tenant) {
        ++tenant->callbacks;
        tenant->active = RealTime::now();
    }
    const auto over = [this, stream, tenant] {  // with world()
        if (tenant) {
            --tenant->callbacks;
            tenant->active = RealTime::now();
        }
        done_by_others_.push_back(stream);
        attention_ = true;
        wake_.notify_all();
    };
    const auto fail = [tenant] {
        if (tenant) tenant->fault.store(CUDA_ERROR_OUT_OF_MEMORY);
    };
    const std::string why = Thread::detach(
        {"host function", tenant ? tenant->name : ""},
        [node, over] {
            node->work();
            Lock lock(world());
            over();
        },
        [fail, over](const std::string&) {
            Lock lock(world());
            fail();
            over();
        });
    if (why.empty()) return;
    fail();
    over();
}

// What takes no time: events, values.
void Engine::carry_out(Lock& lock, const StreamPointer& stream, const Node& node) {
    if (node.work) {
        lock.unlock();
        quietly(node.work);
        lock.lock();
        // A program may look at the word that was written.
        if (node.type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP && stream->tenant)
            stream->tenant->active = RealTime::now();
    }
    finish(*stream);
}

void Engine::finish(SimulatedStream& stream) {
    stream.under_way = false;
    stream.turns.pop_front();
    hosted::finish_front(stream);
    if (stream.queue.empty() && stream.tenant) stream.tenant->active = RealTime::now();
}

bool Engine::finish_completed() {
    std::vector<StreamPointer> done = std::move(done_by_machine_);
    done_by_machine_.clear();
    done.insert(done.end(), done_by_others_.begin(), done_by_others_.end());
    done_by_others_.clear();
    for (const StreamPointer& stream : done) finish(*stream);
    return !done.empty();
}

}  // namespace smt::runtime::device::simulated
