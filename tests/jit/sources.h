// Sources for the toy worker (toy_worker.cpp), and images as a program has them.
#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "runtime/jit/compiler.h"
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

// By PTX a worker would run one block of it, so its text is rewritten.
inline const std::string kUneven = [] {
    std::string text = kScale;
    return text.insert(text.find("int i = "), "if (a[threadIdx.x] > 7) return;\n__syncthreads();\n");
}();

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

// As a program has it: what NVRTC makes of the source as it stands.
inline std::string plain_image(runtime::jit::Source source,
                               runtime::jit::Form form = runtime::jit::Form::kPtx,
                               const std::string& directory = "") {
    for (size_t at = 0; (at = source.text.find("//toy", at)) != source.text.npos; at += 5)
        source.text.replace(at, 5, "//was");
    source.text += "\n//toy managed none none\n//toy plain";
    runtime::jit::Order order{source, form, ""};
    order.directory = directory;
    runtime::jit::Compiler compiler(toy_settings());
    runtime::jit::Result result = compiler.compile(order);
    INFO(result.reason << result.log);
    REQUIRE(!result.image.empty());
    return result.image;
}

}  // namespace smt::tests
