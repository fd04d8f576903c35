#include "profiler/models/duration.h"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

namespace smt::profiler::models {
namespace {

using Rows = std::vector<TimedLaunch>;

// Launches of random shapes, and what a linear kernel takes for them.
Rows linear_rows(int count, double noise) {
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> part(0, 1);
    Rows rows;
    for (int i = 0; i < count; ++i) {
        const Launch launch{1000 + 9000 * part(random), 64 + 960 * part(random), 1e6 + 1e8 * part(random),
                            48e3 * part(random)};
        const double time = 5000 + 20 * launch.blocks + 30 * launch.block_threads +
                            1e-3 * launch.input_bytes + 0.5 * launch.shared_bytes;
        rows.push_back({launch, time * (1 + noise * (2 * part(random) - 1))});
    }
    return rows;
}

TEST_CASE("one feature by hand", "[duration]") {
    // Blocks 100 and 300: mean 200, deviation 100, so z is -1 and 1. y - mean is -50 and 50, their
    // correlation
    // 50. The weight is 50 / (1 + 0.25) = 40 for a deviation, 0.4 for a block; the intercept 150 - 0.4 * 200.
    const Rows rows{{{.blocks = 100}, 100}, {{.blocks = 300}, 200}};
    const Duration model = fit(rows, 0.25);
    CHECK(model.ns_per[0] == Approx(0.4));
    CHECK(model.intercept_ns == Approx(70));
    CHECK(model.block_ns == Approx(300.0 / 400));
    CHECK(model.predict({.blocks = 500}) == Approx(270));
}

TEST_CASE("two features by hand", "[duration]") {
    // z over four rows is (-1,-1) (-1,1) (1,-1) (1,1): without correlation, so each feature is as if alone.
    // y = 100 + 10 z1 + 6 z2; with penalty 1 both weights are halved.
    const Rows rows{{{.blocks = 1, .shared_bytes = 0}, 84},
                    {{.blocks = 1, .shared_bytes = 8}, 96},
                    {{.blocks = 3, .shared_bytes = 0}, 104},
                    {{.blocks = 3, .shared_bytes = 8}, 116}};
    const Duration model = fit(rows, 1);
    CHECK(model.ns_per[0] == Approx(5));        // 5 for a deviation of 1 block
    CHECK(model.ns_per[3] == Approx(3.0 / 4));  // 3 for one of 4 bytes
    CHECK(model.intercept_ns == Approx(100 - 5 * 2 - 0.75 * 4));
}

TEST_CASE("a linear kernel is found again, whatever the units of its features", "[duration]") {
    const Rows rows = linear_rows(100, 0);
    const Duration model = fit(rows, 1e-9);
    CHECK(model.ns_per[0] == Approx(20).epsilon(1e-6));
    CHECK(model.ns_per[1] == Approx(30).epsilon(1e-6));
    CHECK(model.ns_per[2] == Approx(1e-3).epsilon(1e-6));
    CHECK(model.ns_per[3] == Approx(0.5).epsilon(1e-6));
    CHECK(model.intercept_ns == Approx(5000).epsilon(1e-5));
    CHECK(*held_out_error(rows) < 0.001);
}

TEST_CASE("the error is of launches that were not fitted", "[duration]") {
    // Each of two is predicted from the other: 10 ns a block for 20 blocks that took 100, and 5 for 10.
    CHECK(*held_out_error(Rows{{{.blocks = 10}, 100}, {{.blocks = 20}, 100}}) == Approx((0.5 + 1.0) / 2));
    // Of three, each from the line through the other two: 20, 45 and 50.
    const Rows three{{{.blocks = 1}, 30}, {{.blocks = 2}, 40}, {{.blocks = 3}, 60}};
    CHECK(*held_out_error(three, 1e-9) == Approx((10 / 30.0 + 5 / 40.0 + 10 / 60.0) / 3).epsilon(1e-6));
    CHECK_FALSE(held_out_error(Rows{{{.blocks = 10}, 100}}));
    // Noise of up to 10 % either way, on average 5 %.
    const double error = *held_out_error(linear_rows(100, 0.1));
    CHECK(error > 0.03);
    CHECK(error < 0.07);
}

TEST_CASE("a single row, and rows that are all alike, give the mean time of a block", "[duration]") {
    const Duration one = fit(Rows{{{100, 256, 1 << 20, 1024}, 5000}});
    CHECK(one.predict({200, 256, 2 << 20, 1024}) == Approx(10000));
    CHECK(one.ns_per == std::array<double, 4>{});
    const Launch launch{100, 256, 1 << 20, 1024};
    const Duration alike = fit(Rows{{launch, 4000}, {launch, 6000}, {launch, 5000}});
    CHECK(alike.predict({50, 256, 1 << 20, 1024}) == Approx(2500));
    CHECK(fit({}).predict(launch) == 0);
}

TEST_CASE("a feature that does not vary has no weight", "[duration]") {
    const Rows rows{{{100, 256, 0, 0.1}, 1000}, {{200, 256, 0, 0.1}, 2000}, {{400, 256, 0, 0.1}, 4000}};
    const Duration model = fit(rows, 1e-9);
    CHECK(model.ns_per[0] == Approx(10));
    CHECK(model.ns_per[1] == 0);
    CHECK(model.ns_per[2] == 0);
    CHECK(model.ns_per[3] == 0);
    CHECK(model.predict({300, 1024, 1e9, 48000}) == Approx(3000));
}

TEST_CASE("a time that does not depend on the size is predicted for every size", "[duration]") {
    const Rows rows{{{.blocks = 100}, 700}, {{.blocks = 900}, 700}};
    CHECK(fit(rows).predict({.blocks = 5}) == Approx(700));
}

TEST_CASE("fewer rows than features: the rows are met, and features that say the same share", "[duration]") {
    const Rows rows{{{100, 128, 4000, 1000}, 1000}, {{300, 256, 12000, 2000}, 3000}};
    const Duration model = fit(rows);
    for (const TimedLaunch& row : rows)
        CHECK(model.predict(row.launch) == Approx(row.nanoseconds).epsilon(1e-3));
    // All four go from one deviation below the mean to one above: 250 ns each.
    CHECK(model.ns_per[0] * 100 == Approx(250).epsilon(1e-3));
    CHECK(model.ns_per[1] * 64 == Approx(250).epsilon(1e-3));
    CHECK(model.ns_per[2] * 4000 == Approx(250).epsilon(1e-3));
    CHECK(model.ns_per[3] * 500 == Approx(250).epsilon(1e-3));
}

TEST_CASE("where the line falls below zero, blocks are counted", "[duration]") {
    const Rows rows{{{.blocks = 1000}, 1000}, {{.blocks = 2000}, 5000}};  // 4 ns a block, 0 at 750
    const Duration model = fit(rows, 1e-9);
    CHECK(model.predict({.blocks = 1500}) == Approx(3000));
    CHECK(model.predict({.blocks = 100}) == Approx(200));  // 6000 ns for 3000 blocks
}

}  // namespace
}  // namespace smt::profiler::models
