// Asks the same questions again and again, from several threads; scenarios.py counts what the driver was
// asked.
#include <thread>
#include <vector>

#include "program.h"

namespace {

constexpr unsigned kMaps = 200, kThreads = 4, kRounds = 3;
constexpr char kImage[] = "FAKE\nkernel fill params 8,4,4\n";

CUresult encode(CUtensorMap* map, cuuint64_t address, cuuint32_t rank) {
    const cuuint64_t sizes[6] = {10, address, 30}, strides[5] = {64, 640};
    const cuuint32_t ones[6] = {1, 1, 1, 1, 1, 1};
    return cuTensorMapEncodeTiled(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank,
                                  reinterpret_cast<void*>(address), sizes, strides, ones, ones,
                                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                  CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

void ask_for_maps(cuuint64_t first) {
    for (unsigned i = 0; i < kMaps; ++i) {
        CUtensorMap map{};
        CHECK(encode(&map, first + 64 * i, 3));
        REQUIRE(map.opaque[0] == first + 64 * i && map.opaque[1] == 3 && map.opaque[3] == first + 64 * i);
        CHECK(encode(&map, first + 64 * i, 2));
        REQUIRE(map.opaque[1] == 2 && map.opaque[4] == 0);
    }
}

// Twice, so that the second answer is remembered.
void ask_for_clusters(CUfunction function, unsigned attributes) {
    CUlaunchAttribute listed[2] = {};
    listed[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    CUlaunchConfig config{};
    config.attrs = listed;
    config.numAttrs = attributes;
    for (int i = 0; i < 2; ++i) {
        int clusters = 0;
        CHECK(cuOccupancyMaxActiveClusters(&clusters, function, &config));
        REQUIRE(clusters == 4);
    }
}

// A limit that was set is the answer from then on.
void ask_for_limits() {
    for (size_t wanted = 2048; wanted <= 8192; wanted *= 2) {
        CHECK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, wanted));
        for (int i = 0; i < 2; ++i) {
            size_t limit = 0;
            CHECK(cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
            REQUIRE(limit == wanted);
        }
    }
}

CUfunction load(CUmodule* module) {
    CUfunction fill = nullptr;
    CHECK(cuModuleLoadData(module, kImage));
    CHECK(cuModuleGetFunction(&fill, *module, "fill"));
    return fill;
}

}  // namespace

int main() {
    preload::start();
    for (unsigned round = 0; round < kRounds; ++round) ask_for_maps(1 << 20);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kThreads; ++i)
        threads.emplace_back([] {
            for (unsigned round = 0; round < kRounds; ++round) ask_for_maps(1 << 24);
        });
    for (std::thread& each : threads) each.join();
    CUtensorMap map{};
    for (int i = 0; i < 2; ++i) FAILS(encode(&map, 0, 6), CUDA_ERROR_INVALID_VALUE);

    ask_for_limits();
    CUmodule module = nullptr;
    CUfunction fill = load(&module);
    ask_for_clusters(fill, 2);
    ask_for_clusters(fill, 1);
    CHECK(cuFuncSetAttribute(fill, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 4096));
    ask_for_clusters(fill, 2);
    CHECK(cuModuleUnload(module));
    ask_for_clusters(load(&module), 2);
    std::puts("asked");
}
