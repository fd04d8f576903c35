// What probes of streams and kernels share; each of them is one file for nvcc besides.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

// Of the runtime's calls and the driver's.
#define CHECK(call)                                                                             \
    do {                                                                                        \
        const auto status_ = static_cast<int>(call);                                            \
        if (status_)                                                                            \
            std::printf("{\"error\": \"%s:%d %s: %d\"}\n", __FILE__, __LINE__, #call, status_), \
                std::exit(1);                                                                   \
    } while (0)

__device__ inline unsigned long long now() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
}
