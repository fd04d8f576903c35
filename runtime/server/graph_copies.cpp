#include "runtime/server/graph_copies.h"

#include <utility>

#include "runtime/protocol/try.h"
#include "runtime/server/graph_copy.h"

namespace smt::runtime::server {

namespace {

// A program that changes a graph between launches would wait for a new copy each time.
constexpr unsigned kMostCopies = 16;

// A stream that captures is not asked: that would break the capture.
enum class Idle { kYes, kNo, kNotAsked };

Idle whether_idle(const DriverApi& driver, CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (driver.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
        status != CU_STREAM_CAPTURE_STATUS_NONE)
        return Idle::kNotAsked;
    return driver.cuStreamQuery(stream) == CUDA_SUCCESS ? Idle::kYes : Idle::kNo;
}

constexpr const char* kStopped = "has a door: a graph, each kernel of which has one";
constexpr const char* kUnmanagedGraph = "unmanaged: ";

}  // namespace

GraphCopies::CopiedPointer GraphCopies::find(CUgraphExec exec) const {
    if (!any_.load(std::memory_order_relaxed)) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto found = copied_.find(exec);
    return found == copied_.end() ? nullptr : found->second;
}

void GraphCopies::made(CUgraphExec exec, CUgraph graph, unsigned long long flags) {
    if (dispatcher_.policy().stops != schedule::Policy::Stops::kNone || tenant_.tried())
        take(exec, graph, flags);
}

void GraphCopies::updated(CUgraphExec exec, CUgraph graph) {
    if (const CopiedPointer copied = find(exec)) take(exec, graph, copied->flags);
}

void GraphCopies::take(CUgraphExec exec, CUgraph graph, unsigned long long flags) {
    CopiedPointer copied = find(exec);
    if (!copied) copied = std::make_shared<Copied>();
    retire(*copied);
    if (copied->clone) driver_.cuGraphDestroy(std::exchange(copied->clone, nullptr));
    copied->flags = flags;
    copied->why.clear();
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
        copied->why = "a graph that device code may launch";
    if (driver_.cuGraphClone(&copied->clone, graph) != CUDA_SUCCESS) {
        copied->clone = nullptr;
        copied->why = "a graph that the driver does not copy";
    }
    const std::lock_guard lock(mutex_);
    copied_[exec] = copied;
    any_.store(true, std::memory_order_relaxed);
}

void GraphCopies::changed(CUgraphExec exec, CUgraphNode node,
                          const std::function<CUresult(CUgraphNode)>& set) {
    const CopiedPointer copied = find(exec);
    if (!copied || !copied->clone) return;
    CUgraphNode cloned = nullptr;
    const bool found = driver_.cuGraphNodeFindInClone &&
                       driver_.cuGraphNodeFindInClone(&cloned, node, copied->clone) == CUDA_SUCCESS;
    if (!found || set(cloned) != CUDA_SUCCESS)
        copied->why = "a graph of which the program changed a node that its copy does not have";
    retire(*copied);
}

void GraphCopies::changed_otherwise(CUgraphExec exec, const char* how) {
    if (const CopiedPointer copied = find(exec)) {
        copied->why = how;
        retire(*copied);
    }
}

void GraphCopies::retire(Copied& copied) {
    const std::lock_guard lock(mutex_);
    if (copied.doors) retired_.push_back({std::move(copied.doors), copied.stream});
    copied.doors = nullptr;
    collect();
}

// A copy is destroyed once no launch of it is kept or under way.
void GraphCopies::collect() {
    std::erase_if(retired_, [&](const Retired& each) {
        if (each.doors.use_count() > 1) return false;
        const StreamPointer stream = each.stream.lock();
        return !stream || whether_idle(driver_, stream->handle) == Idle::kYes;
    });
}

void GraphCopies::gone(CUgraphExec exec) {
    const CopiedPointer copied = find(exec);
    if (!copied) return;
    {
        const std::lock_guard lock(mutex_);
        copied_.erase(exec);
    }
    retire(*copied);
    if (copied->clone) driver_.cuGraphDestroy(copied->clone);
}

void GraphCopies::clear() {
    const std::lock_guard lock(mutex_);
    for (auto& [exec, copied] : copied_)
        if (copied->clone) driver_.cuGraphDestroy(copied->clone);
    copied_.clear();
    retired_.clear();
}

// As the driver orders all launches of one executable graph. The copy is another one.
CUresult GraphCopies::order_behind(Copied& copied, const StreamPointer& stream) {
    const StreamPointer before = copied.stream.lock();
    copied.stream = stream;
    if (!before || before == stream) return CUDA_SUCCESS;
    if (whether_idle(driver_, before->handle) == Idle::kNotAsked) return CUDA_SUCCESS;
    SMT_TRY(before->guard());
    if (whether_idle(driver_, before->handle) != Idle::kNo) return CUDA_SUCCESS;
    CUevent behind = nullptr;
    SMT_TRY(driver_.cuEventCreate(&behind, CU_EVENT_DISABLE_TIMING));
    CUresult status = driver_.cuEventRecord(behind, before->handle);
    if (status == CUDA_SUCCESS) status = driver_.cuStreamWaitEvent(stream->handle, behind, 0);
    driver_.cuEventDestroy_v2(behind);
    return status;
}

void GraphCopies::make_doors(Copied& copied, const CodeTable& code, const TenantMemory& memory) {
    if (++copied.made > kMostCopies) {
        copied.why = "a graph that the program changes between its launches";
        return;
    }
    copied.doors =
        copy_with_doors(dispatcher_, tenant_, code, memory, copied.clone, copied.flags, &copied.why);
}

CUresult GraphCopies::launch(CUgraphExec exec, const StreamPointer& stream, const CodeTable& code,
                             const TenantMemory& memory, Launch* launch) {
    const bool preemptible = tenant_.preemptible.load(std::memory_order_relaxed);
    const CopiedPointer copied = find(exec);
    if (!copied) {
        if (preemptible)
            launch->treatment = std::string(kUnmanagedGraph) + "a graph made when no policy could stop it";
        return CUDA_SUCCESS;
    }
    if (copied->doors || preemptible)
        SMT_TRY(order_behind(*copied, stream));
    else
        copied->stream = stream;
    if (!preemptible) return CUDA_SUCCESS;
    if (copied->why.empty() && !copied->doors) make_doors(*copied, code, memory);
    launch->treatment = copied->why.empty() ? kStopped : kUnmanagedGraph + copied->why;
    launch->doors = copied->doors;
    return CUDA_SUCCESS;
}

}  // namespace smt::runtime::server
