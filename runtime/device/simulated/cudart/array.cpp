// Arrays, mipmapped arrays, and copies of rows to and from them.
#include "runtime/device/simulated/cudart/array.h"

#include "cudart_written.gen.h"
#include "runtime/device/simulated/cudart/convert.h"
#include "runtime/device/simulated/cudart/copy_plan.h"

namespace smt::cudart {

namespace {

struct Format {
    CUarray_format driver;
    cudaChannelFormatKind kind;
    int bits;      // of one channel
    int channels;  // 0: 1, 2 or 4
};
constexpr Format kFormats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, cudaChannelFormatKindUnsigned, 8, 0},
    {CU_AD_FORMAT_UNSIGNED_INT16, cudaChannelFormatKindUnsigned, 16, 0},
    {CU_AD_FORMAT_UNSIGNED_INT32, cudaChannelFormatKindUnsigned, 32, 0},
    {CU_AD_FORMAT_SIGNED_INT8, cudaChannelFormatKindSigned, 8, 0},
    {CU_AD_FORMAT_SIGNED_INT16, cudaChannelFormatKindSigned, 16, 0},
    {CU_AD_FORMAT_SIGNED_INT32, cudaChannelFormatKindSigned, 32, 0},
    {CU_AD_FORMAT_HALF, cudaChannelFormatKindFloat, 16, 0},
    {CU_AD_FORMAT_FLOAT, cudaChannelFormatKindFloat, 32, 0},
    {CU_AD_FORMAT_UNORM_INT8X1, cudaChannelFormatKindUnsignedNormalized8X1, 8, 1},
    {CU_AD_FORMAT_UNORM_INT8X2, cudaChannelFormatKindUnsignedNormalized8X2, 8, 2},
    {CU_AD_FORMAT_UNORM_INT8X4, cudaChannelFormatKindUnsignedNormalized8X4, 8, 4},
    {CU_AD_FORMAT_UNORM_INT16X1, cudaChannelFormatKindUnsignedNormalized16X1, 16, 1},
    {CU_AD_FORMAT_UNORM_INT16X2, cudaChannelFormatKindUnsignedNormalized16X2, 16, 2},
    {CU_AD_FORMAT_UNORM_INT16X4, cudaChannelFormatKindUnsignedNormalized16X4, 16, 4},
    {CU_AD_FORMAT_SNORM_INT8X1, cudaChannelFormatKindSignedNormalized8X1, 8, 1},
    {CU_AD_FORMAT_SNORM_INT8X2, cudaChannelFormatKindSignedNormalized8X2, 8, 2},
    {CU_AD_FORMAT_SNORM_INT8X4, cudaChannelFormatKindSignedNormalized8X4, 8, 4},
    {CU_AD_FORMAT_SNORM_INT16X1, cudaChannelFormatKindSignedNormalized16X1, 16, 1},
    {CU_AD_FORMAT_SNORM_INT16X2, cudaChannelFormatKindSignedNormalized16X2, 16, 2},
    {CU_AD_FORMAT_SNORM_INT16X4, cudaChannelFormatKindSignedNormalized16X4, 16, 4},
};

const Format* find_format(CUarray_format format) {
    for (const Format& row : kFormats) {
        if (row.driver == format) return &row;
    }
    return nullptr;
}

cudaError_t describe_array(const cudaChannelFormatDesc* channels, cudaExtent extent, unsigned flags,
                           CUDA_ARRAY3D_DESCRIPTOR& made) {
    if (!channels) return cudaErrorInvalidValue;
    made = {};
    if (cudaError_t failed = driver_channels(*channels, made.Format, made.NumChannels)) return failed;
    made.Width = extent.width;
    made.Height = extent.height;
    made.Depth = extent.depth;
    made.Flags = flags;  // the same values in both interfaces
    return cudaSuccess;
}

// The rest of a run of bytes that continues along an array's rows.
struct Run {
    size_t x;
    size_t y;
    size_t row_bytes;

    void advance(size_t bytes) {
        x += bytes;
        y += x / row_bytes;
        x %= row_bytes;
    }
};

cudaError_t start_run(cudaArray_const_t array, size_t x, size_t y, Run& run) {
    ArrayShape shape;
    if (cudaError_t failed = shape_of(array, shape)) return failed;
    run = {x, y, shape.row_bytes};
    return x < shape.row_bytes ? cudaSuccess : cudaErrorInvalidValue;
}

// The largest rectangle at the run's start: whole rows, or the rest of the current one.
cudaExtent next_box(const Run& run, size_t bytes) {
    if (run.x == 0 && bytes >= run.row_bytes) return {run.row_bytes, bytes / run.row_bytes, 1};
    size_t left = run.row_bytes - run.x;
    return {bytes < left ? bytes : left, 1, 1};
}

// Copies a run of bytes between linear memory and an array.
cudaError_t copy_run(void* memory, cudaArray_const_t array, size_t x, size_t y, size_t bytes,
                     cudaMemcpyKind kind, bool into_array, Order order) {
    Run run;
    if (cudaError_t failed = check_kind(kind)) return failed;
    if (cudaError_t failed = start_run(array, x, y, run)) return failed;
    char* at = static_cast<char*>(memory);
    while (bytes > 0) {
        cudaExtent box = next_box(run, bytes);
        Place rows{at, box.width, box.height};
        Place part{nullptr, 0, 0, array, run.x, run.y};
        Copy copy = into_array ? box_copy(part, rows, box, kind) : box_copy(rows, part, box, kind);
        if (cudaError_t failed = perform(copy, order)) return failed;
        size_t done = box.width * box.height;
        at += done;
        bytes -= done;
        run.advance(done);
    }
    return cudaSuccess;
}

}  // namespace

cudaError_t driver_channels(const cudaChannelFormatDesc& channels, CUarray_format& format, unsigned& count) {
    const int widths[4] = {channels.x, channels.y, channels.z, channels.w};
    count = 0;
    while (count < 4 && widths[count] != 0) ++count;
    for (unsigned i = 0; i < 4; ++i) {
        if (widths[i] != (i < count ? widths[0] : 0)) return cudaErrorInvalidChannelDescriptor;
    }
    if (count != 1 && count != 2 && count != 4) return cudaErrorInvalidChannelDescriptor;
    for (const Format& row : kFormats) {
        if (row.kind != channels.f || row.bits != widths[0] || (row.channels && row.channels != int(count)))
            continue;
        format = row.driver;
        return cudaSuccess;
    }
    return cudaErrorInvalidChannelDescriptor;
}

cudaChannelFormatDesc runtime_channels(CUarray_format format, unsigned count) {
    const Format* row = find_format(format);
    if (!row) return {0, 0, 0, 0, cudaChannelFormatKindNone};
    auto width = [&](unsigned channel) { return channel < count ? row->bits : 0; };
    return {width(0), width(1), width(2), width(3), row->kind};
}

size_t format_bytes(CUarray_format format) {
    const Format* row = find_format(format);
    return row ? size_t(row->bits) / 8 : 0;
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) {
    return {x, y, z, w, f};
}

cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* channels, cudaExtent extent,
                              unsigned int flags) {
    if (!array) return cudaErrorInvalidValue;
    CUDA_ARRAY3D_DESCRIPTOR wanted;
    if (cudaError_t failed = describe_array(channels, extent, flags, wanted)) return failed;
    return from_driver(driver().cuArray3DCreate_v2(as_driver(array), &wanted));
}

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* channels, size_t width,
                            size_t height, unsigned int flags) {
    return cudart::cudaMalloc3DArray(array, channels, {width, height, 0}, flags);
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* array, const cudaChannelFormatDesc* channels,
                                     cudaExtent extent, unsigned int levels, unsigned int flags) {
    if (!array) return cudaErrorInvalidValue;
    CUDA_ARRAY3D_DESCRIPTOR wanted;
    if (cudaError_t failed = describe_array(channels, extent, flags, wanted)) return failed;
    return from_driver(driver().cuMipmappedArrayCreate(as_driver(array), &wanted, levels));
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* channels, cudaExtent* extent, unsigned int* flags,
                             cudaArray_t array) {
    CUDA_ARRAY3D_DESCRIPTOR facts{};
    if (CUresult status = driver().cuArray3DGetDescriptor_v2(&facts, as_driver(array)))
        return from_driver(status);
    if (channels) *channels = runtime_channels(facts.Format, facts.NumChannels);
    if (extent) *extent = {facts.Width, facts.Height, facts.Depth};
    if (flags) *flags = facts.Flags;
    return cudaSuccess;
}

cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* channels, cudaArray_const_t array) {
    if (!channels) return cudaErrorInvalidValue;
    return cudart::cudaArrayGetInfo(channels, nullptr, nullptr, const_cast<cudaArray_t>(array));
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t array, size_t x, size_t y, const void* from, size_t pitch,
                                size_t width, size_t height, cudaMemcpyKind kind, Order order) {
    if (width > pitch && width && height) return cudaErrorInvalidValue;
    return perform(box_copy({nullptr, 0, 0, array, x, y}, {const_cast<void*>(from), pitch, height},
                            {width, height, 1}, kind),
                   order);
}

cudaError_t cudaMemcpy2DFromArray(void* memory, size_t pitch, cudaArray_const_t array, size_t x, size_t y,
                                  size_t width, size_t height, cudaMemcpyKind kind, Order order) {
    if (width > pitch && width && height) return cudaErrorInvalidValue;
    return perform(box_copy({memory, pitch, height}, {nullptr, 0, 0, array, x, y}, {width, height, 1}, kind),
                   order);
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to_array, size_t to_x, size_t to_y,
                                     cudaArray_const_t from_array, size_t from_x, size_t from_y, size_t width,
                                     size_t height, cudaMemcpyKind kind, Order order) {
    return perform(box_copy({nullptr, 0, 0, to_array, to_x, to_y},
                            {nullptr, 0, 0, from_array, from_x, from_y}, {width, height, 1}, kind),
                   order);
}

cudaError_t cudaMemcpyToArray(cudaArray_t array, size_t x, size_t y, const void* from, size_t bytes,
                              cudaMemcpyKind kind, Order order) {
    return copy_run(const_cast<void*>(from), array, x, y, bytes, kind, true, order);
}

cudaError_t cudaMemcpyFromArray(void* memory, cudaArray_const_t array, size_t x, size_t y, size_t bytes,
                                cudaMemcpyKind kind, Order order) {
    return copy_run(memory, array, x, y, bytes, kind, false, order);
}

cudaError_t cudaMemcpyArrayToArray(cudaArray_t to_array, size_t to_x, size_t to_y,
                                   cudaArray_const_t from_array, size_t from_x, size_t from_y, size_t bytes,
                                   cudaMemcpyKind kind, Order order) {
    Run in, out;
    if (cudaError_t failed = start_run(from_array, from_x, from_y, in)) return failed;
    if (cudaError_t failed = start_run(to_array, to_x, to_y, out)) return failed;
    while (bytes > 0) {
        size_t a = next_box(in, bytes).width, b = next_box(out, bytes).width, part = a < b ? a : b;
        Copy copy = box_copy({nullptr, 0, 0, to_array, out.x, out.y}, {nullptr, 0, 0, from_array, in.x, in.y},
                             {part, 1, 1}, kind);
        if (cudaError_t failed = perform(copy, order)) return failed;
        bytes -= part;
        in.advance(part);
        out.advance(part);
    }
    return cudaSuccess;
}

}  // namespace smt::cudart
