// Which GPU a program gets by `smt run --gpu any`: a table of loads, and the answer.
#include "tools/smt/gpu_choice.h"

#include <catch2/catch.hpp>
#include <vector>

namespace {

using smt::tools::choose_gpu;
using smt::tools::GpuLoad;

constexpr uint64_t kG = 1ull << 30;

TEST_CASE("gpu choice: the one with the fewest programs", "[gpu_choice]") {
    CHECK(choose_gpu({{80 * kG, 80 * kG, 0, 0}, {80 * kG, 80 * kG, 0, 0}}, 0) == 0u);
    CHECK(choose_gpu({{80 * kG, 80 * kG, 1, 0}, {80 * kG, 80 * kG, 0, 0}}, 0) == 1u);
    // ... even if it is busier, and has less memory that is free
    CHECK(choose_gpu({{80 * kG, 70 * kG, 3, 0.1}, {80 * kG, 20 * kG, 2, 1}}, 4 * kG) == 1u);
}

TEST_CASE("gpu choice: among as many programs the idler one, then the emptier one", "[gpu_choice]") {
    CHECK(choose_gpu({{80 * kG, 60 * kG, 1, 0.9}, {80 * kG, 20 * kG, 1, 0.2}}, 0) == 1u);
    CHECK(choose_gpu({{80 * kG, 20 * kG, 1, 0.50}, {80 * kG, 60 * kG, 1, 0.52}}, 0) == 1u);
    CHECK(choose_gpu({{80 * kG, 20 * kG, 1, 0}, {80 * kG, 60 * kG, 1, 0}}, 0) == 1u);
    CHECK(choose_gpu({{24 * kG, 24 * kG, 0, 0}, {80 * kG, 80 * kG, 0, 0}}, 0) == 1u);
}

TEST_CASE("gpu choice: where it fits goes before all else", "[gpu_choice]") {
    const std::vector<GpuLoad> loads = {{80 * kG, 10 * kG, 1, 0}, {80 * kG, 40 * kG, 5, 1}};
    CHECK(choose_gpu(loads, 0) == 0u);
    CHECK(choose_gpu(loads, 10 * kG) == 0u);
    CHECK(choose_gpu(loads, 10 * kG + 1) == 1u);
    // Nowhere now, so it waits where programs are fewest.
    CHECK(choose_gpu(loads, 50 * kG) == 0u);
}

TEST_CASE("gpu choice: a GPU that could never hold it is out", "[gpu_choice]") {
    CHECK(choose_gpu({{24 * kG, 24 * kG, 0, 0}, {80 * kG, 1 * kG, 9, 1}}, 30 * kG) == 1u);
    CHECK(choose_gpu({{24 * kG, 24 * kG, 0, 0}, {80 * kG, 80 * kG, 0, 0}}, 81 * kG) == std::nullopt);
    CHECK(choose_gpu({{0, 0, 0, 0}}, 81 * kG) == 0u);  // not known
    CHECK(choose_gpu({}, 0) == std::nullopt);
}

TEST_CASE("gpu choice: eight programs that come one by one spread evenly", "[gpu_choice]") {
    std::vector<GpuLoad> loads = {{80 * kG, 80 * kG, 0, 0}, {80 * kG, 80 * kG, 0, 0}};
    for (int i = 0; i < 8; ++i) {
        GpuLoad& load = loads[choose_gpu(loads, 8 * kG).value()];
        ++load.programs;
        load.free_bytes -= 8 * kG;
    }
    CHECK(loads[0].programs == 4);
    CHECK(loads[1].programs == 4);
}

}  // namespace
