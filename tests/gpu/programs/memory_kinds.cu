// Copies of every shape: pageable at odd sizes and offsets, pinned, registered, pitched, 3-D,
// arrays, memsets, pointer attributes.
#include <cstring>
#include <vector>

#include "program.h"

using Bytes = std::vector<unsigned char>;

Bytes pattern(size_t count) {
    Bytes bytes(count);
    Random random;
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random.next());
    return bytes;
}

// Host -> device -> device -> host, with guard bytes on both sides of the destination.
void round_trip(Result& result, unsigned char* device, const Bytes& source, size_t bytes, size_t offset,
                bool async) {
    constexpr size_t kGuard = 64;
    Bytes back(bytes + 2 * kGuard, 0xee);
    unsigned char *first = device + offset, *second = device + (72u << 20) + 5;
    if (async) {
        CHECK(cudaMemcpyAsync(first, source.data() + offset, bytes, cudaMemcpyHostToDevice,
                              cudaStreamPerThread));
        CHECK(cudaMemcpyAsync(second, first, bytes, cudaMemcpyDeviceToDevice, cudaStreamPerThread));
        CHECK(cudaMemcpyAsync(&back[kGuard], second, bytes, cudaMemcpyDeviceToHost, cudaStreamPerThread));
        CHECK(cudaStreamSynchronize(cudaStreamPerThread));
    } else {
        CHECK(cudaMemcpy(first, source.data() + offset, bytes, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(second, first, bytes, cudaMemcpyDeviceToDevice));
        CHECK(cudaMemcpy(&back[kGuard], second, bytes, cudaMemcpyDefault));
    }
    bool right = std::memcmp(&back[kGuard], source.data() + offset, bytes) == 0;
    for (size_t i = 0; i < kGuard; ++i) right &= back[i] == 0xee && back[kGuard + bytes + i] == 0xee;
    if (!right) std::printf("%zu bytes at offset %zu: ", bytes, offset);
    result.expect(right, "round trip");
    result.fold(back.data() + kGuard, bytes < 65536 ? bytes : 65536);
}

void linear(Result& result) {
    const Bytes source = pattern((64u << 20) + 64);
    unsigned char* device;
    CHECK(cudaMalloc(&device, 144u << 20));
    for (size_t bytes :
         {1u, 2u, 3u, 7u, 64u, 255u, 4096u, 65535u, 65537u, 524287u, 524288u, 524289u, 1048579u, 8388613u})
        for (size_t offset : {0u, 1u, 3u, 17u}) round_trip(result, device, source, bytes, offset, offset % 2);
    round_trip(result, device, source, 64u << 20, 0, false);
    round_trip(result, device, source, (64u << 20) - 3, 1, true);

    Bytes small(1000), expected(1000, 0x5a);
    CHECK(cudaMemset(device + 3, 0x5a, 1000));
    CHECK(cudaMemcpy(small.data(), device + 3, 1000, cudaMemcpyDeviceToHost));
    result.expect(small == expected, "memset");
    CHECK(cudaFree(device));
}

void shaped(Result& result) {
    const size_t width = 301, height = 37, depth = 5;
    const Bytes source = pattern(width * height * depth);
    Bytes back(source.size());
    void* pitched;
    size_t pitch = 0;
    CHECK(cudaMallocPitch(&pitched, &pitch, width, height));
    std::printf("pitch %zu\n", pitch);
    CHECK(cudaMemcpy2D(pitched, pitch, source.data(), width, width, height, cudaMemcpyHostToDevice));
    CHECK(cudaMemset2D(static_cast<char*>(pitched) + 10, pitch, 0x33, 20, 7));
    CHECK(cudaMemcpy2D(back.data(), width, pitched, pitch, width, height, cudaMemcpyDeviceToHost));
    bool right = true;
    for (size_t i = 0; i < width * height; ++i)
        right &= back[i] == (i % width >= 10 && i % width < 30 && i / width < 7 ? 0x33 : source[i]);
    result.expect(right, "2-D");
    CHECK(cudaFree(pitched));

    const cudaExtent extent = make_cudaExtent(width, height, depth);
    cudaPitchedPtr cube;
    cudaArray_t array;
    const auto format = cudaCreateChannelDesc<unsigned char>();
    CHECK(cudaMalloc3D(&cube, extent));
    CHECK(cudaMalloc3DArray(&array, &format, extent));
    CHECK(cudaMemset3D(cube, 0x44, extent));
    cudaMemcpy3DParms in = {}, across = {}, out = {};
    in.srcPtr = out.dstPtr =
        make_cudaPitchedPtr(const_cast<unsigned char*>(source.data()), width, width, height);
    in.dstPtr = across.srcPtr = cube, across.dstArray = out.srcArray = array;
    out.dstPtr.ptr = back.data();
    in.extent = across.extent = out.extent = extent;
    in.kind = cudaMemcpyHostToDevice, across.kind = cudaMemcpyDeviceToDevice,
    out.kind = cudaMemcpyDeviceToHost;
    in.extent.depth = depth - 1;
    CHECK(cudaMemcpy3D(&in));
    CHECK(cudaMemcpy3D(&across));
    CHECK(cudaMemcpy3DAsync(&out, cudaStreamPerThread));
    CHECK(cudaStreamSynchronize(cudaStreamPerThread));
    right = true;
    for (size_t i = 0; i < back.size(); ++i)
        right &= back[i] == (i < width * height * (depth - 1) ? source[i] : 0x44);
    result.expect(right, "3-D");
    result.fold(back.data(), back.size());
    CHECK(cudaFree(cube.ptr));
    CHECK(cudaFreeArray(array));
}

void host_memory(Result& result) {
    const size_t bytes = 3u << 20;
    const Bytes source = pattern(bytes);
    unsigned char *device, *mapped, *mapped_device;
    CHECK(cudaMalloc(&device, bytes));
    // Registered in the middle of pages; copies from the inside of the range.
    Bytes registered = source;
    CHECK(cudaHostRegister(registered.data() + 100, bytes - 200, cudaHostRegisterDefault));
    CHECK(cudaMemcpyAsync(device, registered.data() + 117, 1 << 20, cudaMemcpyHostToDevice,
                          cudaStreamPerThread));
    CHECK(cudaMemcpyAsync(registered.data() + (2 << 20), device, 1000, cudaMemcpyDeviceToHost,
                          cudaStreamPerThread));
    CHECK(cudaStreamSynchronize(cudaStreamPerThread));
    result.expect(std::memcmp(registered.data() + (2 << 20), source.data() + 117, 1000) == 0, "registered");
    CHECK(cudaHostUnregister(registered.data() + 100));
    CHECK(cudaHostAlloc(&mapped, bytes, cudaHostAllocMapped | cudaHostAllocWriteCombined));
    CHECK(cudaHostGetDevicePointer(&mapped_device, mapped, 0));
    std::memcpy(mapped, source.data(), bytes);
    CHECK(cudaMemcpy(device, mapped_device, bytes, cudaMemcpyDefault));
    CHECK(cudaMemcpy(registered.data(), device, bytes, cudaMemcpyDeviceToHost));
    result.expect(registered == source, "mapped");
    cudaPointerAttributes on_device = {}, on_host = {}, unknown = {};
    CHECK(cudaPointerGetAttributes(&on_device, device + 7));
    CHECK(cudaPointerGetAttributes(&on_host, mapped + 7));
    CHECK(cudaPointerGetAttributes(&unknown, registered.data()));
    std::printf("types: device %d, pinned %d, plain %d\n", on_device.type, on_host.type, unknown.type);
    CHECK(cudaFreeHost(mapped));
    CHECK(cudaFree(device));
}

int main() {
    Result result;
    linear(result);
    shaped(result);
    host_memory(result);
    return result.finish();
}
