#include "runtime/server/code/spare_images.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace smt::tests {

namespace {

using runtime::server::SpareImage;
using runtime::server::SpareImages;

SpareImage image(const std::string& key, uint64_t bytes, uintptr_t module) {
    return {key, bytes, reinterpret_cast<CUmodule>(module), nullptr, {"kernel of " + key}};
}

std::vector<uintptr_t> modules_of(const std::vector<SpareImage>& images) {
    std::vector<uintptr_t> all;
    for (const SpareImage& each : images) all.push_back(reinterpret_cast<uintptr_t>(each.module));
    return all;
}

}  // namespace

TEST_CASE("spare images: one is one session's at a time, and the newest of its code") {
    SpareImages spare(100);
    CHECK(!spare.take("a"));
    CHECK(spare.keep(image("a", 10, 1)).empty());
    CHECK(spare.keep(image("b", 10, 2)).empty());
    CHECK(spare.keep(image("a", 10, 3)).empty());
    auto taken = spare.take("a");
    REQUIRE(taken);
    CHECK(taken->module == reinterpret_cast<CUmodule>(3));
    CHECK(taken->kernels.contains("kernel of a"));
    taken = spare.take("a");
    REQUIRE(taken);
    CHECK(taken->module == reinterpret_cast<CUmodule>(1));
    CHECK(!spare.take("a"));
    CHECK(modules_of(spare.take_all()) == std::vector<uintptr_t>{2});
    CHECK(!spare.take("b"));
}

TEST_CASE("spare images: the oldest leave for room") {
    SpareImages spare(100);
    CHECK(spare.keep(image("a", 40, 1)).empty());
    CHECK(spare.keep(image("b", 40, 2)).empty());
    CHECK(modules_of(spare.keep(image("c", 90, 3))) == std::vector<uintptr_t>{1, 2});
    CHECK(spare.take("c"));
    CHECK(spare.keep(image("d", 100, 4)).empty());  // all of the room is free again
    CHECK(spare.keeps(100));
    CHECK(!spare.keeps(101));
    CHECK(!SpareImages(0).keeps(1));
    CHECK(!SpareImages(UINT64_MAX).keeps(SpareImages::kLargest + 1));
}

}  // namespace smt::tests
