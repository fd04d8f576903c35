// See array_size.h.
#include "runtime/server/memory/array_size.h"

#include <algorithm>

#include "runtime/protocol/api/sizes.h"

namespace smt::runtime::server {

using protocol::times;

namespace {

constexpr uint64_t kRowBytes = 64;
constexpr uint64_t kRows = 8;
constexpr uint64_t kMostRows = 128;  // of the largest block: 16 blocks stacked
constexpr uint64_t kLeastBytes = 512;
constexpr uint64_t kCubeFaces = 6;

uint64_t rounded(uint64_t value, uint64_t to) {
    return value > ~uint64_t{0} - to ? ~uint64_t{0} : (value + to - 1) / to * to;
}

// Of one texel with all channels. Formats that are unknown here count as 32 bits per channel.
uint64_t texel_bits(CUarray_format format, unsigned channels) {
    const std::optional<Element> element = element_of(format, channels);
    return element ? element->bytes * 8 / (element->side * element->side) : 32ull * std::max(channels, 1u);
}

// A one-dimensional array needs one row per block only.
uint64_t rows_of(uint64_t height) {
    if (height <= 1) return 1;
    uint64_t block = kRows;
    while (block < kMostRows && block < height) block *= 2;
    return rounded(height, block);
}

uint64_t level_bytes(uint64_t width, uint64_t height, uint64_t depth, uint64_t bits) {
    const uint64_t row = times(std::max<uint64_t>(width, 1), bits);
    const uint64_t row_bytes = rounded(row / 8 + (row % 8 != 0), kRowBytes);
    return rounded(times(times(row_bytes, rows_of(height)), std::max<uint64_t>(depth, 1)), kLeastBytes);
}

}  // namespace

std::optional<Element> element_of(CUarray_format format, unsigned channels) {
    const uint64_t each = std::max(channels, 1u);
    switch (static_cast<int>(format)) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
        case CU_AD_FORMAT_SIGNED_INT8:
            return Element{each, 1};
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_HALF:
            return Element{2 * each, 1};
        case CU_AD_FORMAT_UNSIGNED_INT32:
        case CU_AD_FORMAT_SIGNED_INT32:
        case CU_AD_FORMAT_FLOAT:
            return Element{4 * each, 1};
        case CU_AD_FORMAT_UNORM_INT8X1:
        case CU_AD_FORMAT_SNORM_INT8X1:
            return Element{1, 1};
        case CU_AD_FORMAT_UNORM_INT8X2:
        case CU_AD_FORMAT_SNORM_INT8X2:
        case CU_AD_FORMAT_UNORM_INT16X1:
        case CU_AD_FORMAT_SNORM_INT16X1:
            return Element{2, 1};
        case CU_AD_FORMAT_UNORM_INT8X4:
        case CU_AD_FORMAT_SNORM_INT8X4:
        case CU_AD_FORMAT_UNORM_INT16X2:
        case CU_AD_FORMAT_SNORM_INT16X2:
        case CU_AD_FORMAT_UNORM_INT_101010_2:
            return Element{4, 1};
        case CU_AD_FORMAT_UNORM_INT16X4:
        case CU_AD_FORMAT_SNORM_INT16X4:
            return Element{8, 1};
        case CU_AD_FORMAT_BC1_UNORM:
        case CU_AD_FORMAT_BC1_UNORM_SRGB:
        case CU_AD_FORMAT_BC4_UNORM:
        case CU_AD_FORMAT_BC4_SNORM:
            return Element{8, 4};
        case CU_AD_FORMAT_BC2_UNORM:
        case CU_AD_FORMAT_BC2_UNORM_SRGB:
        case CU_AD_FORMAT_BC3_UNORM:
        case CU_AD_FORMAT_BC3_UNORM_SRGB:
        case CU_AD_FORMAT_BC5_UNORM:
        case CU_AD_FORMAT_BC5_SNORM:
        case CU_AD_FORMAT_BC6H_UF16:
        case CU_AD_FORMAT_BC6H_SF16:
        case CU_AD_FORMAT_BC7_UNORM:
        case CU_AD_FORMAT_BC7_UNORM_SRGB:
            return Element{16, 4};
        default:
            return std::nullopt;
    }
}

uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR& shape, unsigned levels) {
    const bool layers = (shape.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
    const uint64_t depth =
        shape.Flags & CUDA_ARRAY3D_CUBEMAP ? std::max<uint64_t>(shape.Depth, kCubeFaces) : shape.Depth;
    const uint64_t bits = texel_bits(shape.Format, shape.NumChannels);
    uint64_t sum = 0;
    for (unsigned level = 0; level < std::clamp(levels, 1u, 64u); ++level) {
        const uint64_t bytes =
            level_bytes(shape.Width >> level, shape.Height >> level, layers ? depth : depth >> level, bits);
        if (__builtin_add_overflow(sum, bytes, &sum)) return ~uint64_t{0};
        if ((shape.Width >> level) <= 1 && (shape.Height >> level) <= 1 && (layers || (depth >> level) <= 1))
            break;
    }
    return sum;
}

uint64_t array_bytes(const CUDA_ARRAY_DESCRIPTOR& shape) {
    CUDA_ARRAY3D_DESCRIPTOR whole{};
    whole.Width = shape.Width;
    whole.Height = shape.Height;
    whole.Format = shape.Format;
    whole.NumChannels = shape.NumChannels;
    return array_bytes(whole);
}

}  // namespace smt::runtime::server
