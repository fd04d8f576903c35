// variables: under --memory 256M, an image whose variables take more is not loaded, and smaller ones count.
#include <string>

#include "tests/preload/program.h"

namespace {

constexpr size_t kMiB = 1u << 20;

CUresult load(size_t bytes, CUmodule* module) {
    const std::string text =
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .global .align 8 .b8 table[" +
        std::to_string(bytes) + "];\n.visible .entry nothing() { ret; }\n";
    return cuModuleLoadData(module, text.c_str());
}

size_t free_bytes() {
    size_t free = 0, total = 0;
    CHECK(cuMemGetInfo(&free, &total));
    return free;
}

}  // namespace

int main() {
    preload::start();
    const size_t before = free_bytes();
    CUmodule module = nullptr;
    FAILS(load(512 * kMiB, &module), CUDA_ERROR_OUT_OF_MEMORY);
    for (int i = 0; i < 3; ++i) {
        CUmodule another = nullptr;
        CHECK(load(150 * kMiB, &module));
        REQUIRE(free_bytes() == before - 150 * kMiB);
        FAILS(load(150 * kMiB, &another), CUDA_ERROR_OUT_OF_MEMORY);
        CHECK(cuModuleUnload(module));
        REQUIRE(free_bytes() == before);
    }
}
