// Sources for the toy worker (toy_worker.cpp), and images as a program has them.
#pragma once

#include <string>

#include "runtime/jit/settings.h"
#include "runtime/jit/source.h"

namespace smt::tests {

inline constexpr char kScale[] = R"(
extern "C" __global__ void scale(float* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] *= 2;
}
#ifdef TOY_REWRITTEN
extern "C" __global__ void smt_scale(float* a, int n, smt::Launch launch) {
    smt::Worker worker(launch);
    while (worker.next()) {
        int i = worker.block().x * blockDim.x + threadIdx.x;
        if (i < n) a[i] *= 2;
    }
}
#endif
)";

inline runtime::jit::Source source(const std::string& toy, const std::string& text = kScale) {
    runtime::jit::Source source;
    source.name = "test.cu";
    source.text = toy + "\n" + text;
    source.options = {"--gpu-architecture=compute_90"};
    return source;
}

inline runtime::jit::Source managed_scale() { return source("//toy managed scale smt_scale"); }

inline runtime::jit::Settings toy_settings(const std::string& cache_folder = "") {
    runtime::jit::Settings settings;
    settings.compiler = SMT_TEST_COMPILER;
    settings.cache_folder = cache_folder;
    return settings;
}

}  // namespace smt::tests
