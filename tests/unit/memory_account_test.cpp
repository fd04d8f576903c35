#include "runtime/server/memory/memory_account.h"

#include <catch2/catch.hpp>
#include <utility>

#include "runtime/server/memory/array_size.h"

namespace smt::runtime::server {
namespace {

TEST_CASE("what charges take is held, up to the limit, until they go", "[memory_account]") {
    const auto account = std::make_shared<MemoryAccount>(100);
    Charge first;
    CHECK(first.take(account, 60));
    {
        Charge second;
        CHECK_FALSE(second.take(account, 41));
        CHECK(second.take(account, 40));
        CHECK(account->held() == 100);
        CHECK_FALSE(first.take(account, 61));
        CHECK(first.take(account, 10));
        CHECK(account->held() == 50);
        Charge moved = std::move(second);
        CHECK(account->held() == 50);
        CHECK(moved.bytes() == 40);
    }
    CHECK(account->held() == 10);
    first = {};
    CHECK(account->held() == 0);
    CHECK_FALSE(first.take(account, ~uint64_t{0}));
}

TEST_CASE("an account without a limit holds what is taken", "[memory_account]") {
    const auto account = std::make_shared<MemoryAccount>(0);
    Charge charge;
    CHECK(charge.take(account, 1ull << 50));
    CHECK(account->held() == 1ull << 50);
}

CUDA_ARRAY3D_DESCRIPTOR shape(size_t width, size_t height, size_t depth, CUarray_format format,
                              unsigned channels, unsigned flags = 0) {
    CUDA_ARRAY3D_DESCRIPTOR made{};
    made.Width = width;
    made.Height = height;
    made.Depth = depth;
    made.Format = format;
    made.NumChannels = channels;
    made.Flags = flags;
    return made;
}

TEST_CASE("what copies address an array by", "[array_size]") {
    // As an H100 takes copies of arrays of 64 x 32 texels.
    const auto row = [](CUarray_format format, unsigned channels) {
        return 64 / element_of(format, channels)->side * element_of(format, channels)->bytes;
    };
    CHECK(row(CU_AD_FORMAT_UNSIGNED_INT8, 1) == 64);
    CHECK(row(CU_AD_FORMAT_UNSIGNED_INT32, 4) == 1024);
    CHECK(row(CU_AD_FORMAT_UNORM_INT8X2, 2) == 128);
    CHECK(row(CU_AD_FORMAT_UNORM_INT16X4, 4) == 512);
    CHECK(row(CU_AD_FORMAT_UNORM_INT_101010_2, 4) == 256);
    for (const auto format : {CU_AD_FORMAT_BC1_UNORM, CU_AD_FORMAT_BC1_UNORM_SRGB, CU_AD_FORMAT_BC4_UNORM,
                              CU_AD_FORMAT_BC4_SNORM})
        CHECK(row(format, 4) == 128);
    for (const auto format : {CU_AD_FORMAT_BC2_UNORM, CU_AD_FORMAT_BC3_UNORM_SRGB, CU_AD_FORMAT_BC5_SNORM,
                              CU_AD_FORMAT_BC6H_SF16, CU_AD_FORMAT_BC7_UNORM_SRGB})
        CHECK(row(format, 4) == 256);
    CHECK_FALSE(element_of(CU_AD_FORMAT_NV12, 3));
}

TEST_CASE("an array's size is its texels, in whole blocks", "[array_size]") {
    CHECK(array_bytes(shape(4096, 4096, 0, CU_AD_FORMAT_FLOAT, 1)) == 64u << 20);
    CHECK(array_bytes(shape(4096, 4096, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1)) == 16u << 20);
    CHECK(array_bytes(shape(128, 128, 128, CU_AD_FORMAT_HALF, 4)) == 16u << 20);
    CHECK(array_bytes(shape(1, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1)) == 512);
    CHECK(array_bytes(shape(16, 8, 0, CU_AD_FORMAT_FLOAT, 1)) == 512);
    CHECK(array_bytes(shape(17, 9, 0, CU_AD_FORMAT_FLOAT, 1)) == 128 * 16);
    CHECK(array_bytes(shape(64, 64, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP)) == 6 * (16u << 10));
    CHECK(array_bytes(shape(64, 64, 3, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED), 2) ==
          3 * ((16u << 10) + (4u << 10)));
    CHECK(array_bytes(shape(~size_t{0}, ~size_t{0}, 0, CU_AD_FORMAT_FLOAT, 4)) == ~uint64_t{0});
    CHECK(array_bytes(shape(1, 1, 1, CU_AD_FORMAT_FLOAT, 1), ~0u) == 512);
}

}  // namespace
}  // namespace smt::runtime::server
