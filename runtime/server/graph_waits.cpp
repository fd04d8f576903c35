#include "runtime/server/graph_waits.h"

#include <utility>

#include "runtime/server/callbacks.h"
#include "runtime/server/objects/events.h"

namespace smt::runtime::server {

namespace {

constexpr size_t kMostWords = 8192;     // of the arena's: others are for host functions and staging
constexpr unsigned kMostInBatch = 250;  // the driver's limit is 256

CUstreamBatchMemOpParams write_of(CUdeviceptr address, uint64_t value) {
    CUstreamBatchMemOpParams operation{};
    operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    operation.writeValue.address = address;
    operation.writeValue.value64 = value;
    return operation;
}

}  // namespace

void GraphWaits::graph_is_gone(void* wait) {
    std::unique_ptr<WaitPointer> held(static_cast<WaitPointer*>(wait));
    (*held)->gone.store(true, std::memory_order_release);
}

GraphWaits::WaitPointer GraphWaits::take_wait(CUstream stream) {
    if (!driver_.cuStreamBatchMemOp_v2 || !driver_.cuGraphBatchMemOpNodeGetParams ||
        !driver_.cuUserObjectCreate || !driver_.cuGraphRetainUserObject)
        return nullptr;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    CUgraph graph = nullptr;
    const CUresult asked =
        driver_.cuStreamGetCaptureInfo_v3(stream, &status, &id, &graph, nullptr, nullptr, nullptr);
    if (asked != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_ACTIVE || words() >= kMostWords)
        return nullptr;
    const Arena::Word word = arena_.take_word();
    if (word.index == 0) return nullptr;
    auto wait = std::make_shared<Wait>();
    wait->index = word.index;
    wait->resting = word.value + 2;
    arena_.word(wait->index).store(wait->resting, std::memory_order_release);
    auto held = std::make_unique<WaitPointer>(wait);
    CUuserObject object = nullptr;
    CUresult made =
        driver_.cuUserObjectCreate(&object, held.get(), graph_is_gone, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    if (made == CUDA_SUCCESS) {
        held.release();
        made = driver_.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
        if (made != CUDA_SUCCESS) driver_.cuUserObjectRelease(object, 1);
    }
    if (made == CUDA_SUCCESS) return wait;
    give(*wait);
    return nullptr;
}

// No launch is under way, so nothing writes the word any more.
void GraphWaits::give(const Wait& wait) {
    arena_.word(wait.index).store(wait.resting, std::memory_order_release);
    arena_.give_word({wait.index, wait.resting});
}

// The list of a stream's waits may still read the word.
void GraphWaits::collect() {
    std::erase_if(waits_, [&](const auto& each) {
        const WaitPointer& wait = each.second;
        if (!wait->gone.load(std::memory_order_acquire) || wait.use_count() > 1) return false;
        give(*wait);
        return true;
    });
}

CUresult GraphWaits::capture(CUstream stream, const CUstreamBatchMemOpParams* operations, unsigned count,
                             unsigned flags, const std::function<CUresult()>& plain) {
    {
        std::lock_guard lock(mutex_);
        collect();
    }
    const WaitPointer wait = count <= kMostInBatch ? take_wait(stream) : nullptr;
    if (!wait) return plain();
    expect_nodes();
    {
        std::lock_guard lock(mutex_);
        waits_[wait->index] = wait;
    }
    const CUdeviceptr address = arena_.word_address(wait->index);
    std::vector<CUstreamBatchMemOpParams> batch{write_of(address, wait->resting - 1)};
    batch.insert(batch.end(), operations, operations + count);
    batch.push_back(write_of(address, wait->resting));
    return driver_.cuStreamBatchMemOp_v2(stream, static_cast<unsigned>(batch.size()), batch.data(), flags);
}

GraphWaits::WaitPointer GraphWaits::wait_of(CUgraphNode node) const {
    CUDA_BATCH_MEM_OP_NODE_PARAMS parameters{};
    if (!driver_.cuGraphBatchMemOpNodeGetParams ||
        driver_.cuGraphBatchMemOpNodeGetParams(node, &parameters) != CUDA_SUCCESS || parameters.count < 3)
        return nullptr;
    const auto& first = parameters.paramArray[0].writeValue;
    const CUdeviceptr words = arena_.word_address(0);
    if (first.operation != CU_STREAM_MEM_OP_WRITE_VALUE_64 || first.address < words) return nullptr;
    std::lock_guard lock(mutex_);
    const auto found = waits_.find(static_cast<uint32_t>((first.address - words) / sizeof(uint64_t)));
    return found != waits_.end() && arena_.word_address(found->first) == first.address ? found->second
                                                                                       : nullptr;
}

void GraphWaits::read(CUgraphNode node, CUgraphNodeType type, Part* part) const {
    CUevent event = nullptr;
    CUDA_HOST_NODE_PARAMS host{};
    switch (type) {
        case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
            if (WaitPointer wait = wait_of(node)) part->waits.push_back(std::move(wait));
            break;
        case CU_GRAPH_NODE_TYPE_HOST:
            if (driver_.cuGraphHostNodeGetParams(node, &host) != CUDA_SUCCESS) break;
            if (dispatch::WaitWord calls = callbacks_.calls(host); calls.word)
                part->functions.push_back(std::move(calls));
            break;
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
            if (driver_.cuGraphEventWaitNodeGetEvent &&
                driver_.cuGraphEventWaitNodeGetEvent(node, &event) == CUDA_SUCCESS)
                part->waits_for.push_back(event);
            break;
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
            if (driver_.cuGraphEventRecordNodeGetEvent &&
                driver_.cuGraphEventRecordNodeGetEvent(node, &event) == CUDA_SUCCESS)
                part->records.push_back(event);
            break;
        default:
            break;
    }
}

void GraphWaits::read(CUgraph graph, Exec* exec) const {
    std::vector<CUgraph> left{graph};
    while (!left.empty()) {
        const CUgraph next = left.back();
        left.pop_back();
        size_t count = 0;
        if (driver_.cuGraphGetNodes(next, nullptr, &count) != CUDA_SUCCESS || count == 0) continue;
        std::vector<CUgraphNode> nodes(count);
        if (driver_.cuGraphGetNodes(next, nodes.data(), &count) != CUDA_SUCCESS) continue;
        nodes.resize(count);
        for (const CUgraphNode node : nodes) {
            CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
            CUgraph child = nullptr;
            if (driver_.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) continue;
            if (type == CU_GRAPH_NODE_TYPE_GRAPH &&
                driver_.cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS)
                left.push_back(child);
            Part part;
            read(node, type, &part);
            if (!part.empty()) exec->emplace(node, std::move(part));
        }
    }
}

void GraphWaits::made(CUgraphExec exec, CUgraph graph) {
    if (!any_.load(std::memory_order_relaxed)) return;
    Exec found;
    read(graph, &found);
    std::lock_guard lock(mutex_);
    execs_.erase(exec);
    if (!found.empty()) execs_.emplace(exec, std::move(found));
}

void GraphWaits::change(CUgraphExec exec, CUgraphNode node, Part part) {
    std::lock_guard lock(mutex_);
    if (!part.empty())
        execs_[exec][node] = std::move(part);
    else if (auto found = execs_.find(exec); found != execs_.end())
        found->second.erase(node);
}

void GraphWaits::changed(CUgraphExec exec, CUgraphNode node, CUgraph child) {
    if (!any_.load(std::memory_order_relaxed)) return;
    Exec found;
    read(child, &found);
    Part part;
    for (auto& [in_child, more] : found) {
        part.waits.insert(part.waits.end(), more.waits.begin(), more.waits.end());
        part.functions.insert(part.functions.end(), more.functions.begin(), more.functions.end());
        part.waits_for.insert(part.waits_for.end(), more.waits_for.begin(), more.waits_for.end());
        part.records.insert(part.records.end(), more.records.begin(), more.records.end());
    }
    change(exec, node, std::move(part));
}

void GraphWaits::changed(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS& host) {
    Part part;
    if (dispatch::WaitWord calls = callbacks_.calls(host); calls.word)
        part.functions.push_back(std::move(calls));
    change(exec, node, std::move(part));
}

void GraphWaits::changed(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type, CUevent event) {
    Part part;
    (type == CU_GRAPH_NODE_TYPE_WAIT_EVENT ? part.waits_for : part.records).push_back(event);
    change(exec, node, std::move(part));
}

void GraphWaits::gone(CUgraphExec exec) {
    if (!any_.load(std::memory_order_relaxed)) return;
    std::lock_guard lock(mutex_);
    execs_.erase(exec);
    collect();
}

void GraphWaits::clear() {
    std::lock_guard lock(mutex_);
    execs_.clear();
    collect();
}

GraphWaits::Launch GraphWaits::launch(CUgraphExec exec) {
    if (!any_.load(std::memory_order_relaxed)) return {};
    Launch launch;
    std::lock_guard lock(mutex_);
    const auto found = execs_.find(exec);
    if (found == execs_.end()) return {};
    for (auto& [node, part] : found->second) {
        std::erase_if(part.waits, [](const WaitPointer& wait) { return wait->gone.load(); });
        for (const WaitPointer& wait : part.waits)
            launch.nodes.push_back({{wait, &arena_.word(wait->index)}, wait->resting});
        launch.nodes.insert(launch.nodes.end(), part.functions.begin(), part.functions.end());
        launch.records.insert(launch.records.end(), part.records.begin(), part.records.end());
        for (const CUevent event : part.waits_for) {
            if (dispatch::WaitWord behind = events_.recorded_behind(event); behind.waits())
                launch.nodes.push_back(std::move(behind));
        }
    }
    return launch;
}

size_t GraphWaits::words() const {
    std::lock_guard lock(mutex_);
    return waits_.size();
}

}  // namespace smt::runtime::server
