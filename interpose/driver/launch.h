// Common parts of a launch and a graph's kernel node: checks of the configuration and packing of the
// parameters.
#pragma once

#include <cuda.h>

#include <cstring>

#include "interpose/driver/objects.h"
#include "interpose/transport/remote_call.h"

namespace smt::interpose {

// The parameters of a launch: one pointer each, or one buffer (`extra`).
struct Parameters {
    void** each = nullptr;
    const void* buffer = nullptr;
    size_t buffer_bytes = 0;  // at most those of the function's parameters
};

// INVALID_VALUE when they are missing or given twice, LAUNCH_OUT_OF_RESOURCES where the buffer is longer than
// the parameters. It may be shorter, and the rest is zero: NCCL has one parameter of 4 KB, and gives the part
// that a launch needs. As the driver (tools/bench/probes/parameter_buffers.cpp).
CUresult find_parameters(const Function& function, void** kernel_params, void** extra,
                         Parameters& parameters);

// Whether the driver presumably accepts this configuration. Other configurations are sent as a synchronous
// call, so that the application gets the driver's own error at once.
inline bool plausible(const Function& function, const protocol::Launch& launch) {
    const uint32_t* grid = launch.grid;
    const uint32_t* block = launch.block;
    bool grid_fits = grid[0] - 1u < 0x7fffffffu && grid[1] - 1u < 0xffffu && grid[2] - 1u < 0xffffu;
    bool block_fits = block[0] - 1u < 1024u && block[1] - 1u < 1024u && block[2] - 1u < 64u;
    uint32_t threads = block[0] * block[1] * block[2];
    auto limit = [&](CUfunction_attribute attribute) {
        return static_cast<uint32_t>(function.attributes[attribute].load(std::memory_order_relaxed));
    };
    return grid_fits && block_fits && threads <= limit(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) &&
           launch.shared_bytes <= limit(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
}

// Whether a parameter, or an aligned part of one, is an address of managed memory.
bool takes_managed(const Function& function, const Parameters& parameters);

// Copies the parameters to `to`, which has room for function.parameter_bytes.
inline void pack_parameters(const Function& function, const Parameters& parameters, char* to) {
    if (parameters.buffer) {
        std::memcpy(to, parameters.buffer, parameters.buffer_bytes);
        std::memset(to + parameters.buffer_bytes, 0, function.parameter_bytes - parameters.buffer_bytes);
        return;
    }
    if (!parameters.each) return;  // it has none
    for (uint32_t i = 0; i < function.parameter_count; ++i) {
        protocol::ParameterInfo info = function.parameters[i];
        // Fast path: nearly every parameter is a pointer, a number or a small struct of them.
        if (info.bytes == 8)
            std::memcpy(to + info.offset, parameters.each[i], 8);
        else if (info.bytes == 4)
            std::memcpy(to + info.offset, parameters.each[i], 4);
        else
            std::memcpy(to + info.offset, parameters.each[i], info.bytes);
    }
}

// Managed memory is host memory, which a GPU on PCIe cannot update atomically with the processor:
// system-scope atomics would silently lose updates of either. false: the kernel has such atomics and takes
// managed memory.
inline bool atomics_hold(const Function& function, const Parameters& parameters) {
    return !function.system_atomics || !takes_managed(function, parameters);
}

// An upper bound of the bytes of Launch, its attributes and its parameters in a record. Attributes and
// parameter_bytes must be set.
inline uint64_t launch_bound(const protocol::Launch& launch) {
    return sizeof(protocol::Launch) + launch.attribute_count * sizeof(CUlaunchAttribute) +
           launch.parameter_bytes + 16;
}

}  // namespace smt::interpose
