// The locks of one call; see handles.h.
#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "runtime/server/objects/handles.h"

namespace smt::runtime::server {

namespace {

// Array locks are shared: a copy to or from an array may block, and the driver accepts concurrent copies.
bool shared(HandleKind kind) { return kind == HandleKind::kArray || kind == HandleKind::kMipmappedArray; }

uint64_t read(const void* handle) {
    uint64_t id = 0;
    std::memcpy(&id, handle, sizeof id);
    return id;
}

}  // namespace

CUresult Uses::begin() {
    if (slots_.empty()) return CUDA_SUCCESS;
    std::vector<Wanted> wanted(slots_.size());
    for (;;) {
        if (!look_up(wanted)) return CUDA_ERROR_INVALID_HANDLE;
        lock(wanted);
        std::unique_lock guard(handles_.mutex_);
        const Found found = look_again(wanted);
        const CUresult status = found == Found::kAll ? check(wanted) : CUDA_ERROR_INVALID_HANDLE;
        if (status == CUDA_SUCCESS) {
            hand_over(wanted);
            return CUDA_SUCCESS;
        }
        guard.unlock();
        unlock();
        if (found != Found::kMoved) return status;
    }
}

bool Uses::look_up(std::vector<Wanted>& wanted) const {
    std::lock_guard guard(handles_.mutex_);
    for (size_t i = 0; i < slots_.size(); ++i) {
        wanted[i].object = handles_.by_id(slots_[i].kind, read(slots_[i].handle));
        if (!wanted[i].object) return false;
        wanted[i].family = wanted[i].object->family;
    }
    return true;
}

void Uses::lock(const std::vector<Wanted>& wanted) {
    std::vector<Lock> needed;
    for (size_t i = 0; i < slots_.size(); ++i)
        needed.push_back({wanted[i].family, shared(slots_[i].kind) && !slots_[i].taken});
    const auto key = [&](const Lock& each) {  // exclusive locks sort before shared ones of the same family
        return std::tuple(each.family == handles_.captures_family_, each.family.get(), each.shared);
    };
    std::sort(needed.begin(), needed.end(), [&](const Lock& a, const Lock& b) { return key(a) < key(b); });
    const auto same = [](const Lock& a, const Lock& b) { return a.family == b.family; };
    needed.erase(std::unique(needed.begin(), needed.end(), same), needed.end());
    for (const Lock& each : needed) {
        if (each.shared)
            each.family->mutex.lock_shared();
        else
            each.family->mutex.lock();
    }
    locks_ = std::move(needed);
}

// While this thread waited for a lock, an object may have left the table or moved to another family.
Uses::Found Uses::look_again(const std::vector<Wanted>& wanted) const {
    Found found = Found::kAll;
    for (const auto& [object, family] : wanted) {
        if (handles_.by_id(object->kind, object->id) != object) return Found::kGone;
        if (object->family != family) found = Found::kMoved;
    }
    return found;
}

CUresult Uses::check(const std::vector<Wanted>& wanted) {
    if (locks_.back().family == handles_.captures_family_ && capture_broke(wanted))
        return CUDA_ERROR_INVALID_HANDLE;
    for (size_t i = 0; i < slots_.size(); ++i) {
        const Object& object = *wanted[i].object;
        if (!slots_[i].taken) continue;
        if (!object.own && object.kind != HandleKind::kGraphNode) return CUDA_ERROR_INVALID_VALUE;
        if (object.family == handles_.captures_family_) return CUDA_ERROR_ILLEGAL_STATE;
    }
    return CUDA_SUCCESS;
}

void Uses::hand_over(const std::vector<Wanted>& wanted) {
    for (size_t i = 0; i < slots_.size(); ++i) {
        Object& object = *wanted[i].object;
        std::memcpy(slots_[i].handle, &object.value, sizeof object.value);
        if (slots_[i].taken && --object.references == 0) handles_.remove(&object);
    }
}

// The driver drops a capture's graph as soon as the capture breaks.
bool Uses::capture_broke(const std::vector<Wanted>& wanted) {
    for (const auto& [object, family] : wanted) {
        CUstream origin = nullptr;
        const Handles::Capture* capture = handles_.capture_into(object.get(), &origin);
        if (!capture) continue;
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
        cuuint64_t id = 0;
        CUgraph graph = nullptr;
        const CUgraphNode* nodes = nullptr;
        const CUgraphEdgeData* edges = nullptr;  // the driver may refuse the query without it
        size_t count = 0;
        const CUresult asked =
            driver_.cuStreamGetCaptureInfo_v3(origin, &status, &id, &graph, &nodes, &edges, &count);
        if (asked == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE) continue;
        handles_.remove(capture->graph);
        return true;
    }
    return false;
}

void Uses::hold_captures() {
    const bool held = std::any_of(locks_.begin(), locks_.end(),
                                  [&](const Lock& each) { return each.family == handles_.captures_family_; });
    if (held) return;
    locks_.push_back({handles_.captures_family_, false});
    handles_.captures_family_->mutex.lock();
}

void Uses::unlock() {
    for (const Lock& each : locks_) {
        if (each.shared)
            each.family->mutex.unlock_shared();
        else
            each.family->mutex.unlock();
    }
    locks_.clear();
}

void Uses::end() {
    unlock();
    slots_.clear();
}

}  // namespace smt::runtime::server
