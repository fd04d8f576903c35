#include "runtime/dispatch/graph_doors.h"

#include <algorithm>
#include <cmath>

#include "runtime/protocol/try.h"

namespace smt::runtime::dispatch {

namespace {

constexpr uint32_t kGraphRun = 1;  // DoorLaunch::run of all nodes
constexpr uint64_t kTold = 2;      // launches after which the graph's time is known
constexpr size_t kNodesAtOnce = 256;

}  // namespace

GraphWords::~GraphWords() {
    for (const CUdeviceptr chunk : chunks_) memory_.give(chunk);
}

CUresult GraphWords::take(uint32_t lines, CUdeviceptr* memory) {
    if (lines > kMostLines) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(mutex_);
    if (auto& fitting = free_[lines]; !fitting.empty()) {
        *memory = fitting.back();
        fitting.pop_back();
        return CUDA_SUCCESS;
    }
    if (used_ + lines > kMostLines) {
        CUdeviceptr chunk = 0;
        SMT_TRY(memory_.take(&chunk));
        chunks_.push_back(chunk);
        used_ = 0;
    }
    *memory = chunks_.back() + uint64_t{used_} * kLineBytes;
    used_ += lines;
    return CUDA_SUCCESS;
}

void GraphWords::give(uint32_t lines, CUdeviceptr memory) {
    const std::lock_guard lock(mutex_);
    free_[lines].push_back(memory);
}

GraphDoors::~GraphDoors() {
    if (exec_) driver_.cuGraphExecDestroy(exec_);
    driver_.cuGraphDestroy(graph_);
    if (base_) words_.give(lines_, base_);
}

CUresult GraphDoors::open(size_t nodes) {
    if (nodes == 0 || nodes > kMostNodes) return CUDA_ERROR_INVALID_VALUE;
    const auto words = static_cast<uint32_t>(nodes);
    lines_ = 1 + kSets * ((words + GraphWords::kLineWords - 1) / GraphWords::kLineWords);
    nodes_.reserve(nodes);
    return words_.take(lines_, &base_);
}

CUresult GraphDoors::add(const Kernel& kernel) {
    nodes_.push_back({kernel});
    blocks_ += uint64_t{kernel.units} * kernel.unit;
    nodes_.back().step = door_step(pace_of(nodes_.back()), false, false);
    return set_door(nodes_.size() - 1, 0);
}

CUresult GraphDoors::instantiate(unsigned long long flags) {
    SMT_TRY(driver_.cuGraphInstantiateWithFlags(&exec_, graph_, flags));
    for (size_t i = 0; i < nodes_.size(); ++i)
        if (nodes_[i].nested) SMT_TRY(set_door(i, 0));
    CUDA_KERNEL_NODE_PARAMS first{};
    SMT_TRY(driver_.cuGraphKernelNodeGetParams_v2(nodes_.front().node, &first));
    form_.function = first.func ? first.func : reinterpret_cast<CUfunction>(first.kern);
    form_.form = Form::kGraph;
    return form_.function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DoorPace GraphDoors::pace_of(const Node& node) const {
    const auto block_ps = static_cast<uint64_t>(std::ceil(static_cast<double>(node.block_ps) * scale_));
    return door_pace(uint64_t{node.units} * node.unit, node.unit, node.places, block_ps, node.waits);
}

// A launch that is under way has nodes as they were, of which none decides on one that is changed here.
CUresult GraphDoors::chain_more() {
    if (last_ < kTold || chained_ == nodes_.size()) return CUDA_SUCCESS;
    if (chained_ == 0) {
        const double took = form_.queued.of(blocks_, 1).of(static_cast<double>(blocks_)) * 1e3;
        double expected = 0;
        for (const Node& node : nodes_)
            expected += static_cast<double>(node.block_ps) * node.units * node.unit;
        scale_ = expected > 0 && took > 0 ? std::min(1.0, took / expected) : 1;
    }
    const size_t end = std::min(chained_ + kNodesAtOnce, nodes_.size());
    for (bool decided = false; chained_ < end; ++chained_) {
        Node& node = nodes_[chained_];
        const bool decides = node.alone && chained_ + 1 < end && pace_of(nodes_[chained_ + 1]).quick;
        node.step = door_step(pace_of(node), decides, decided);
        decided = decides;
        SMT_TRY(set_door(chained_, node.from));
    }
    return CUDA_SUCCESS;
}

// The driver copies the values before it replaces the node's own.
CUresult GraphDoors::set_door(size_t index, uint32_t from) {
    const Node& node = nodes_[index];
    CUDA_KERNEL_NODE_PARAMS parameters{};
    SMT_TRY(driver_.cuGraphKernelNodeGetParams_v2(node.node, &parameters));
    if (!parameters.kernelParams) return CUDA_ERROR_NOT_SUPPORTED;
    smt::DoorLaunch door{base_, words(0) + index * sizeof(uint32_t), kGraphRun, from, node.units, node.step};
    std::vector<void*> each(parameters.kernelParams, parameters.kernelParams + node.parameters);
    each.back() = &door;
    parameters.kernelParams = each.data();
    parameters.extra = nullptr;
    return exec_ ? driver_.cuGraphExecKernelNodeSetParams_v2(exec_, node.node, &parameters)
                 : driver_.cuGraphKernelNodeSetParams_v2(node.node, &parameters);
}

CUresult GraphDoors::set_begin(Node& node, uint32_t from) {
    if (node.from == from) return CUDA_SUCCESS;
    SMT_TRY(set_door(static_cast<size_t>(&node - nodes_.data()), from));
    node.from = from;
    return CUDA_SUCCESS;
}

// A stop that was written late, when the graph was over, has arrived by then.
CUresult GraphDoors::prepare(CUstream stream, CUstream control, bool* anew) {
    *anew = !cleared_;
    if (cleared_) return CUDA_SUCCESS;
    SMT_TRY(driver_.cuStreamSynchronize(control));
    SMT_TRY(driver_.cuMemsetD8Async(base_, 0, sizeof(uint32_t), stream));
    cleared_ = true;
    return CUDA_SUCCESS;
}

CUresult GraphDoors::launch(CUstream stream, bool resumes, bool follows, uint64_t* number) {
    if (follows) SMT_TRY(driver_.cuMemcpyDtoDAsync_v2(words(set_of(last_)), words(0), bytes(), stream));
    if (!resumes) {
        for (Node& node : nodes_) node.done = 0;
        for (Node& node : nodes_) SMT_TRY(set_begin(node, 0));
        SMT_TRY(chain_more());
        SMT_TRY(driver_.cuMemsetD8Async(words(0), 0, bytes(), stream));
    } else {
        read_.resize(nodes_.size());
        for (size_t i = 0; i < nodes_.size(); ++i) {
            Node& node = nodes_[i];
            const bool ran = node.done == node.units;
            read_[i] = ran ? smt::kFinalFrontier : 0;
            if (!ran) SMT_TRY(set_begin(node, node.done));
        }
        SMT_TRY(driver_.cuMemcpyHtoDAsync_v2(words(0), read_.data(), bytes(), stream));
    }
    SMT_TRY(driver_.cuGraphLaunch(exec_, stream));
    *number = ++last_;
    return CUDA_SUCCESS;
}

CUresult GraphDoors::stop(CUstream control) {
    cleared_ = false;
    stopped_ = true;
    return driver_.cuStreamWriteValue32_v2(control, base_, kGraphRun, 0);
}

// Behind a launch that was stopped half way nothing ran. So the nodes' state is that of one launch.
CUresult GraphDoors::settle(CUstream errands, uint64_t first, uint64_t* done) {
    const uint64_t count = last_ - first + 1;
    std::fill_n(done, count, stopped_ ? 0 : blocks_);
    if (!stopped_) return CUDA_SUCCESS;
    read_.resize(nodes_.size());
    for (uint64_t i = 0; i < count; ++i) {
        const uint64_t number = first + i;
        const CUdeviceptr from = words(number == last_ ? 0 : set_of(number));
        SMT_TRY(driver_.cuMemcpyDtoHAsync_v2(read_.data(), from, bytes(), errands));
        SMT_TRY(driver_.cuStreamSynchronize(errands));
        done[i] = settle_nodes();
        if (done[i] < blocks_) break;
        for (Node& node : nodes_) node.done = 0;  // of the next one
    }
    stopped_ = false;
    return CUDA_SUCCESS;
}

uint64_t GraphDoors::settle_nodes() {
    uint64_t done = 0;
    for (size_t i = 0; i < nodes_.size(); ++i) {
        Node& node = nodes_[i];
        const bool stopped = read_[i] & smt::kFinalFrontier;
        const uint32_t reached =
            std::min(smt::door_reached(read_[i], node.from, node.step.early), node.units);
        node.done = stopped ? std::max(node.done, reached) : node.units;
        done += uint64_t{node.done} * node.unit;
    }
    return done;
}

}  // namespace smt::runtime::dispatch
