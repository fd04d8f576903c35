// What the small programs of this folder share: checks that name the line, and a context.
//
// They are plain users of the driver API that know nothing of smt. Their images are texts that only
// the fake driver understands (tests/fakes/), so they run on that.
#pragma once

#include <cuda.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(call) preload::check(call, #call, __FILE__, __LINE__)
#define FAILS(call, error) preload::require((call) == (error), #call " returns " #error, __FILE__, __LINE__)
#define REQUIRE(condition) preload::require(condition, #condition, __FILE__, __LINE__)

namespace preload {

inline const char* name_of(CUresult status) {
    const char* name = nullptr;
    cuGetErrorName(status, &name);
    return name ? name : "?";
}

inline void check(CUresult status, const char* call, const char* file, int line) {
    if (status == CUDA_SUCCESS) return;
    std::fprintf(stderr, "%s:%d: %s returns %s (%d)\n", file, line, call, name_of(status),
                 static_cast<int>(status));
    std::exit(1);
}

inline void require(bool condition, const char* text, const char* file, int line) {
    if (condition) return;
    std::fprintf(stderr, "%s:%d: not true: %s\n", file, line, text);
    std::exit(1);
}

// A line that a script waits for.
inline void say(const char* line) {
    std::puts(line);
    std::fflush(stdout);
}

// The primary context of the first device, current in this thread.
inline CUcontext start() {
    CUdevice device = 0;
    CUcontext context = nullptr;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    return context;
}

}  // namespace preload
