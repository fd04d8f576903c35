// Arrays that a tenant makes read as zeros, whatever their format and shape, and leave full of ones, for the
// next.
#include <algorithm>
#include <vector>

#include "tests/preload/program.h"

namespace {

struct Format {
    CUarray_format format;
    unsigned channels;
    size_t bytes;  // of an element
    size_t side;   // texels of an element
};
constexpr Format kFloat4{CU_AD_FORMAT_FLOAT, 4, 16, 1};
constexpr Format kFormats[] = {{CU_AD_FORMAT_UNSIGNED_INT8, 1, 1, 1},  {CU_AD_FORMAT_HALF, 2, 4, 1},
                               {CU_AD_FORMAT_SIGNED_INT32, 1, 4, 1},   kFloat4,
                               {CU_AD_FORMAT_BC1_UNORM, 4, 8, 4},      {CU_AD_FORMAT_BC4_SNORM, 1, 8, 4},
                               {CU_AD_FORMAT_BC7_UNORM_SRGB, 4, 16, 4}};

struct Shape {
    size_t width, height, depth;
    unsigned flags;
};
constexpr Shape kShapes[] = {{70, 0, 0, 0},
                             {70, 0, 5, CUDA_ARRAY3D_LAYERED},
                             {70, 30, 0, CUDA_ARRAY3D_SURFACE_LDST},
                             {70, 30, 5, CUDA_ARRAY3D_LAYERED},
                             {70, 30, 9, 0},
                             {64, 64, 6, CUDA_ARRAY3D_CUBEMAP},
                             {64, 64, 12, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED}};
// Of these a copy of zeros is a part: of a row, of a slice, of all slices.
constexpr Shape kLarge[] = {{300'000, 3, 0, 0}, {1000, 400, 3, 0}, {100, 100, 100, 0}};

size_t elements(size_t texels, const Format& format) {
    return (std::max<size_t>(texels, 1) + format.side - 1) / format.side;
}

void check_and_fill(CUarray array, const Shape& shape, const Format& format) {
    CUDA_MEMCPY3D copy{};
    copy.WidthInBytes = elements(shape.width, format) * format.bytes;
    copy.Height = elements(shape.height, format);
    copy.Depth = std::max<size_t>(shape.depth, 1);
    std::vector<unsigned char> data(copy.WidthInBytes * copy.Height * copy.Depth, 7);
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = array;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = data.data();
    CHECK(cuMemcpy3D(&copy));
    REQUIRE(std::all_of(data.begin(), data.end(), [](unsigned char byte) { return byte == 0; }));
    std::fill(data.begin(), data.end(), static_cast<unsigned char>(1));
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = data.data();
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = array;
    CHECK(cuMemcpy3D(&copy));
}

void arrays(const Shape& shape, const Format& format) {
    CUDA_ARRAY3D_DESCRIPTOR what{shape.width,   shape.height,    shape.depth,
                                 format.format, format.channels, shape.flags};
    CUarray array = nullptr;
    CHECK(cuArray3DCreate(&array, &what));
    check_and_fill(array, shape, format);
    CHECK(cuArrayDestroy(array));
    if (shape.depth || shape.flags) return;
    const CUDA_ARRAY_DESCRIPTOR flat{shape.width, shape.height, format.format, format.channels};
    CHECK(cuArrayCreate(&array, &flat));
    check_and_fill(array, shape, format);
    CHECK(cuArrayDestroy(array));
}

void levels(const Shape& shape, const Format& format) {
    constexpr unsigned kLevels = 4;
    CUDA_ARRAY3D_DESCRIPTOR what{shape.width,   shape.height,    shape.depth,
                                 format.format, format.channels, shape.flags};
    CUmipmappedArray array = nullptr;
    CHECK(cuMipmappedArrayCreate(&array, &what, kLevels));
    for (unsigned i = 0; i < kLevels; ++i) {
        CUarray level = nullptr;
        CHECK(cuMipmappedArrayGetLevel(&level, array, i));
        CHECK(cuArray3DGetDescriptor(&what, level));
        check_and_fill(level, {what.Width, what.Height, what.Depth, what.Flags}, format);
    }
    CHECK(cuMipmappedArrayDestroy(array));
}

}  // namespace

int main() {
    preload::start();
    for (const Format& format : kFormats) {
        for (const Shape& shape : kShapes) {
            arrays(shape, format);
            levels(shape, format);
        }
    }
    for (const Shape& shape : kLarge) arrays(shape, kFloat4);
    // Copies to this one are not known, so it could not be zeroed.
    CUDA_ARRAY3D_DESCRIPTOR planes{64, 64, 0, CU_AD_FORMAT_NV12, 3, 0};
    CUarray array = nullptr;
    REQUIRE(cuArray3DCreate(&array, &planes) == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(cuCtxSynchronize());
}
