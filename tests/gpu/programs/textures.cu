// Texture and surface objects: a 2-D array with filtering, a linear and a pitched texture, surface
// writes, a layered array and a mipmapped array.
#include <vector>

#include "program.h"

constexpr int kWidth = 64, kHeight = 48;

__global__ void read_2d(cudaTextureObject_t texture, float* out, float shift) {
    const int x = threadIdx.x, y = blockIdx.x;
    out[y * kWidth + x] = tex2D<float>(texture, x + shift, y + 0.5f);
}

__global__ void read_linear(cudaTextureObject_t texture, int4* out) {
    out[threadIdx.x] = tex1Dfetch<int4>(texture, 255 - threadIdx.x);
}

__global__ void write_surface(cudaSurfaceObject_t surface) {
    const int x = threadIdx.x, y = blockIdx.x;
    surf2Dwrite(static_cast<float>(x * 100 + y), surface, x * static_cast<int>(sizeof(float)), y);
}

__global__ void read_layers(cudaTextureObject_t texture, float* out) {
    out[blockIdx.x * blockDim.x + threadIdx.x] =
        tex2DLayered<float>(texture, threadIdx.x + 0.5f, 0.5f, blockIdx.x);
}

__global__ void read_levels(cudaTextureObject_t texture, float* out) {
    out[threadIdx.x] = tex2DLod<float>(texture, 0.5f, 0.5f, static_cast<float>(threadIdx.x));
}

cudaTextureObject_t texture_of(const cudaResourceDesc& resource, cudaTextureFilterMode filter,
                               bool normalized = false) {
    cudaTextureDesc description = {};
    description.addressMode[0] = description.addressMode[1] = cudaAddressModeClamp;
    description.filterMode = filter;
    description.readMode = cudaReadModeElementType;
    description.normalizedCoords = normalized;
    description.maxMipmapLevelClamp = 10;
    cudaTextureObject_t texture = 0;
    CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
    return texture;
}

void fetch(Result& result, const char* what, cudaTextureObject_t texture, float shift,
           const std::vector<float>& expected) {
    std::vector<float> values(kWidth * kHeight);
    float* out;
    CHECK(cudaMalloc(&out, values.size() * sizeof(float)));
    read_2d<<<kHeight, kWidth>>>(texture, out, shift);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(values.data(), out, values.size() * sizeof(float), cudaMemcpyDeviceToHost));
    result.expect(values == expected, what);
    result.fold(values.data(), values.size() * sizeof(float));
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFree(out));
}

int main() {
    Result result;
    const auto format = cudaCreateChannelDesc<float>();
    std::vector<float> image(kWidth * kHeight), between(image.size()), written(image.size());
    for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i * 2 % 1024);
    for (size_t i = 0; i < image.size(); ++i)
        between[i] = i % kWidth == kWidth - 1 ? image[i] : (image[i] + image[i + 1]) / 2;

    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    CHECK(cudaMallocArray(&resource.res.array.array, &format, kWidth, kHeight, cudaArraySurfaceLoadStore));
    const size_t row = kWidth * sizeof(float);
    CHECK(cudaMemcpy2DToArray(resource.res.array.array, 0, 0, image.data(), row, row, kHeight,
                              cudaMemcpyHostToDevice));
    fetch(result, "2-D array, point", texture_of(resource, cudaFilterModePoint), 0.5f, image);
    fetch(result, "2-D array, linear", texture_of(resource, cudaFilterModeLinear), 1.0f, between);
    cudaSurfaceObject_t surface;
    CHECK(cudaCreateSurfaceObject(&surface, &resource));
    write_surface<<<kHeight, kWidth>>>(surface);
    CHECK(cudaMemcpy2DFromArray(written.data(), row, resource.res.array.array, 0, 0, row, kHeight,
                                cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < kWidth * kHeight; ++i)
        right &= written[i] == static_cast<float>(i % kWidth * 100 + i / kWidth);
    result.expect(right, "surface");
    CHECK(cudaDestroySurfaceObject(surface));
    CHECK(cudaFreeArray(resource.res.array.array));

    resource = {};
    resource.resType = cudaResourceTypePitch2D;
    auto& pitched = resource.res.pitch2D;
    CHECK(cudaMallocPitch(&pitched.devPtr, &pitched.pitchInBytes, row, kHeight));
    CHECK(cudaMemcpy2D(pitched.devPtr, pitched.pitchInBytes, image.data(), row, row, kHeight,
                       cudaMemcpyHostToDevice));
    pitched.width = kWidth, pitched.height = kHeight, pitched.desc = format;
    fetch(result, "pitched, point", texture_of(resource, cudaFilterModePoint), 0.5f, image);
    CHECK(cudaFree(pitched.devPtr));

    int4 numbers[256], back[256], *device, *out;
    for (int i = 0; i < 256; ++i) numbers[i] = make_int4(i, -i, i * i, 1000 - i);
    CHECK(cudaMalloc(&device, sizeof numbers));
    CHECK(cudaMalloc(&out, sizeof numbers));
    CHECK(cudaMemcpy(device, numbers, sizeof numbers, cudaMemcpyHostToDevice));
    resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear = {device, cudaCreateChannelDesc<int4>(), sizeof numbers};
    cudaTextureObject_t linear = texture_of(resource, cudaFilterModePoint);
    read_linear<<<1, 256>>>(linear, out);
    CHECK(cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost));
    right = true;
    for (int i = 0; i < 256; ++i) right &= back[i].x == 255 - i && back[i].z == (255 - i) * (255 - i);
    result.expect(right, "linear");
    CHECK(cudaDestroyTextureObject(linear));

    // Three layers of 16 x 1, and a mipmapped array whose level n holds n + 1.
    float layers[48], levels[4];
    for (int i = 0; i < 48; ++i) layers[i] = static_cast<float>(i);
    resource = {};
    resource.resType = cudaResourceTypeArray;
    CHECK(cudaMalloc3DArray(&resource.res.array.array, &format, make_cudaExtent(16, 1, 3), cudaArrayLayered));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(layers, 16 * sizeof(float), 16, 1);
    copy.dstArray = resource.res.array.array, copy.extent = make_cudaExtent(16, 1, 3),
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    linear = texture_of(resource, cudaFilterModePoint);
    read_layers<<<3, 16>>>(linear, reinterpret_cast<float*>(out));
    CHECK(cudaMemcpy(layers, out, sizeof layers, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 48; ++i) result.expect(layers[i] == i, "layer");
    resource = {};
    resource.resType = cudaResourceTypeMipmappedArray;
    CHECK(cudaMallocMipmappedArray(&resource.res.mipmap.mipmap, &format, make_cudaExtent(8, 8, 0), 4));
    for (int level = 0; level < 4; ++level) {
        cudaArray_t array;
        const int size = 8 >> level;
        const std::vector<float> texels(size * size, level + 1.0f);
        CHECK(cudaGetMipmappedArrayLevel(&array, resource.res.mipmap.mipmap, level));
        CHECK(cudaMemcpy2DToArray(array, 0, 0, texels.data(), size * 4, size * 4, size,
                                  cudaMemcpyHostToDevice));
    }
    read_levels<<<1, 4>>>(texture_of(resource, cudaFilterModePoint, true), reinterpret_cast<float*>(out));
    CHECK(cudaMemcpy(levels, out, sizeof levels, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 4; ++i) result.expect(levels[i] == i + 1, "mipmap level");
    result.fold(back);
    result.fold(layers);
    result.fold(levels);
    return result.finish();
}
