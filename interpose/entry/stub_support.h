// Helpers of the generated stubs (stubs.gen.cpp), included there only.
#pragma once

#include <cuda.h>
#include <cudaProfiler.h>

#include <cstdint>
#include <cstring>

#include "interpose/driver/callback.h"
#include "interpose/driver/objects.h"
#include "interpose/transport/remote_call.h"
#include "runtime/protocol/api/sizes.h"
#include "runtime/protocol/layout.h"

#define SMT_EXPORT __attribute__((visibility("default")))

// Parameters for an entry point of which only the name is known. Eight words forward any call with integer
// parameters (six in registers, the rest on the stack).
#define SMT_ANY_PARAMETERS \
    uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h
#define SMT_ANY_ARGUMENTS a, b, c, d, e, f, g, h

namespace smt::interpose {

using protocol::pool_value_bytes;
using protocol::rows;
using protocol::times;

// Native fallback: calls the real driver's function; NOT_SUPPORTED where the driver has none.
template <typename... Parameters, typename... Arguments>
CUresult forward(CUresult (*function)(Parameters...), Arguments... arguments) {
    return function ? function(arguments...) : CUDA_ERROR_NOT_SUPPORTED;
}

template <typename... Words>
CUresult forward_any(void (*function)(), Words... words) {
    if (!function) return CUDA_ERROR_NOT_SUPPORTED;
    return reinterpret_cast<CUresult (*)(Words...)>(function)(words...);
}

inline CUstream canonical(CUstream stream, CUstream default_stream) {
    return stream ? stream : default_stream;
}

// Upper bounds of the bytes that codec.h writes. Counts come from the application and are unchecked; a sum of
// these bounds never wraps.
template <typename T>
constexpr uint64_t scalar_bound() {
    return (sizeof(T) + 7) & ~7ull;
}

template <typename T>
constexpr uint64_t array_bound(const void* values, uint64_t count) {
    constexpr uint64_t kTooMany = protocol::kMaxRecordBytes;
    if (!values) return 8;
    return 16 + (count < kTooMany ? count : kTooMany) * sizeof(T);
}

inline uint64_t string_bound(const char* text) { return text ? 17 + strlen(text) : 8; }

// A launch configuration: the struct without its pointers, then the attributes as an array.
inline uint64_t launch_config_bound(const CUlaunchConfig& config) {
    return scalar_bound<CUlaunchConfig>() + array_bound<CUlaunchAttribute>(config.attrs, config.numAttrs);
}

inline void pack_launch_config(RemoteCall& call, CUlaunchConfig config) {
    const CUlaunchAttribute* attributes = config.attrs;
    config.attrs = nullptr;
    config.hStream = nullptr;
    call.in(config);
    call.in_array(attributes, config.numAttrs);
}

}  // namespace smt::interpose
