// Green contexts: sets of multiprocessors that streams can be confined to. Here they come in twos; what a set
// holds stands in the resource's own padding.
#include <algorithm>
#include <cstring>
#include <deque>

#include "runtime/device/hosted/backend.h"

namespace smt::runtime::device::hosted {

namespace {

constexpr unsigned kAlignment = 2;
constexpr unsigned kMost = 256;

struct Mask {
    uint64_t words[kMost / 64] = {};
    bool has(unsigned i) const { return words[i / 64] >> i % 64 & 1; }
    void add(unsigned i) { words[i / 64] |= 1ull << i % 64; }
};
static_assert(sizeof(Mask) <= sizeof(CUdevResource::_internal_padding));

Mask mask_of(const CUdevResource& resource) {
    Mask mask;
    std::memcpy(&mask, resource._internal_padding, sizeof mask);
    return mask;
}

CUdevResource resource_of(const std::vector<unsigned>& multiprocessors) {
    CUdevResource resource{};
    Mask mask;
    for (unsigned each : multiprocessors) mask.add(each);
    std::memcpy(resource._internal_padding, &mask, sizeof mask);
    resource.type = multiprocessors.empty() ? CU_DEV_RESOURCE_TYPE_INVALID : CU_DEV_RESOURCE_TYPE_SM;
    resource.sm.smCount = static_cast<unsigned>(multiprocessors.size());
    resource.sm.minSmPartitionSize = resource.sm.smCoscheduledAlignment = kAlignment;
    return resource;
}

std::vector<unsigned> members(const CUdevResource& resource) {
    std::vector<unsigned> members;
    const Mask mask = mask_of(resource);
    for (unsigned i = 0; i < kMost; ++i) {
        if (mask.has(i)) members.push_back(i);
    }
    return members;
}

struct Green {
    Places places;
};

}  // namespace

}  // namespace smt::runtime::device::hosted

using namespace smt::runtime::device::hosted;

DRIVER_EXPORT CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* resource,
                                              CUdevResourceType type) {
    DRIVER_ASKED(cuDeviceGetDevResource);
    if (!resource || type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_VALUE;
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    std::vector<unsigned> all(
        static_cast<size_t>(backend().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)));
    for (unsigned i = 0; i < all.size(); ++i) all[i] = i;
    *resource = resource_of(all);
    return CUDA_SUCCESS;
}

DRIVER_EXPORT CUresult cuDevSmResourceSplitByCount(CUdevResource* result, unsigned* groups,
                                                   const CUdevResource* input, CUdevResource* remaining,
                                                   unsigned, unsigned least) {
    DRIVER_ASKED(cuDevSmResourceSplitByCount, "least=%u", least);
    if (!groups || !input || input->type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_VALUE;
    std::vector<unsigned> left = members(*input);
    const unsigned size = (std::max(least, kAlignment) + kAlignment - 1) / kAlignment * kAlignment;
    if (size > left.size()) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    const auto possible = static_cast<unsigned>(left.size()) / size;
    *groups = result ? std::min(*groups, possible) : possible;
    for (unsigned i = 0; result && i < *groups; ++i) {
        result[i] = resource_of({left.begin(), left.begin() + size});
        left.erase(left.begin(), left.begin() + size);
    }
    if (remaining) *remaining = resource_of(left);
    return CUDA_SUCCESS;
}

DRIVER_EXPORT CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* description, CUdevResource* resources,
                                                 unsigned count) {
    DRIVER_ASKED(cuDevResourceGenerateDesc, "resources=%u", count);
    if (!description || !resources || count == 0) return CUDA_ERROR_INVALID_VALUE;
    static std::deque<Mask>& kept = *new std::deque<Mask>;  // never freed, as by the driver
    Lock lock(world());
    Mask* const all = &kept.emplace_back();
    for (unsigned i = 0; i < count; ++i) {
        for (unsigned each : members(resources[i])) all->add(each);
    }
    *description = reinterpret_cast<CUdevResourceDesc>(all);
    return CUDA_SUCCESS;
}

DRIVER_EXPORT CUresult cuGreenCtxCreate(CUgreenCtx* green, CUdevResourceDesc description, CUdevice,
                                        unsigned flags) {
    DRIVER_ASKED(cuGreenCtxCreate);
    if (!green || !description || flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
    const auto& mask = *reinterpret_cast<const Mask*>(description);
    std::vector<bool> places(
        static_cast<size_t>(backend().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)));
    for (unsigned i = 0; i < places.size(); ++i) places[i] = mask.has(i);
    *green =
        reinterpret_cast<CUgreenCtx>(new Green{std::make_shared<const std::vector<bool>>(std::move(places))});
    return CUDA_SUCCESS;
}

DRIVER_EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx green) {
    DRIVER_ASKED(cuGreenCtxDestroy);
    delete reinterpret_cast<Green*>(green);
    return CUDA_SUCCESS;
}

DRIVER_EXPORT CUresult cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx green, unsigned flags,
                                              int priority) {
    DRIVER_ASKED(cuGreenCtxStreamCreate, "priority=%d", priority);
    if (!stream || !green || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    Lock lock(world());
    *stream = make_stream(flags, priority, reinterpret_cast<const Green*>(green)->places);
    return CUDA_SUCCESS;
}
