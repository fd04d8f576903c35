// Registration, launches by every way, attributes, variables, and a device that is reset in between.
#include <cuda.h>

#include <string_view>
#include <vector>

#include "tests/cudart/program.h"

using cudart_test::Image;

constexpr int kCount = 1000;

// The host side of kernels: only their addresses count.
void fill(int*, int, int) { std::abort(); }
void scale(float*, float, int) { std::abort(); }
void add(const int*, const int*, int*, int) { std::puts("never called"), std::abort(); }
void missing(int*) { std::puts("not called either"), std::abort(); }
void unregistered(int*) { std::puts("nor this"), std::abort(); }
void of_no_image(int*) { std::puts("and this neither"), std::abort(); }

int table[64];
int unknown_variable[1];
int missing_variable[1];

Image image(
    "FAKE\nkernel fill params 8,4,4\nkernel scale params 8,4,4\nkernel add params 8,8,8,4\nglobal table "
    "256\n");
Image broken("this is no image");

// What nvcc -rdc=true makes: no image for this device, but parts that it can link.
struct Part {
    unsigned magic = 0xba55ed50;
    unsigned short version = 1, header_bytes = 16;
    uint64_t payload_bytes = 64 + sizeof text;
    unsigned short kind = 1, entry_version = 0x101;  // PTX
    unsigned entry_header_bytes = 64;
    uint64_t entry_bytes = sizeof text;
    uint64_t nothing[6] = {};
    char text[64];
};
void linked(int*, int, int) { std::puts("not here"), std::abort(); }
const Part first{.text = "FAKE\nkernel other params 8\n"}, second{.text = "kernel fill params 8,4,4\n"};
const void* const parts[] = {&first, &second, nullptr};
Image relocatable("no image for this device", parts);

void register_all() {
    relocatable.kernel(linked, "fill").end();
    image.kernel(fill, "fill").kernel(scale, "scale").kernel(add, "add").kernel(missing, "missing");
    image.variable(table, "table").variable(missing_variable, "missing_variable").end();
    broken.kernel(of_no_image, "of_no_image").end();
}

bool all_are(int* device, int value) {
    std::vector<int> host(kCount);
    CHECK(cudaMemcpy(host.data(), device, kCount * sizeof(int), cudaMemcpyDeviceToHost));
    for (int number : host) {
        if (number != value) return false;
    }
    return true;
}

void launches(int* device) {
    CHECK(cudart_test::launch(fill, dim3(8), dim3(128), 0, nullptr, device, 5, kCount));
    REQUIRE(all_are(device, 5));
    int value = 6, count = kCount;
    void* arguments[] = {&device, &value, &count};
    CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(fill), dim3(8), dim3(128), arguments, 0, nullptr));
    REQUIRE(all_are(device, 6));
    cudaKernel_t kernel = nullptr;
    CHECK(__cudaGetKernel(&kernel, reinterpret_cast<const void*>(fill)));
    value = 7;
    CHECK(__cudaLaunchKernel_ptsz(kernel, dim3(8), dim3(128), arguments, 0, nullptr));
    CHECK(cudaStreamSynchronize(cudaStreamPerThread));
    REQUIRE(all_are(device, 7));
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(8), config.blockDim = dim3(128);
    value = 8;
    CHECK(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(fill), arguments));
    REQUIRE(all_are(device, 8));
    value = 9;
    CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(fill), dim3(1), dim3(128), arguments, 0,
                                      nullptr));
    REQUIRE(all_are(device, 9));
    // Through the driver's handles.
    cudaFunction_t function = nullptr;
    CHECK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(fill)));
    value = 10;
    REQUIRE(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr) == CUDA_SUCCESS);
    REQUIRE(all_are(device, 10));
    CHECK(cudaGetKernel(&kernel, reinterpret_cast<const void*>(fill)));
    value = 11;
    CHECK(cudaLaunchKernel(kernel, dim3(8), dim3(128), arguments, 0, nullptr));
    REQUIRE(all_are(device, 11));
}

// A configuration inside of another, as when an argument of a launch launches.
void nested() {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    REQUIRE(__cudaPushCallConfiguration(dim3(1, 2, 3), dim3(4), 5, nullptr) == 0);
    REQUIRE(__cudaPushCallConfiguration(dim3(6), dim3(7, 8, 9), 10, cudaStreamPerThread) == 0);
    CHECK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
    REQUIRE(grid.x == 6 && block.z == 9 && shared == 10 && stream == cudaStreamPerThread);
    CHECK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
    REQUIRE(grid.z == 3 && block.x == 4 && shared == 5 && stream == nullptr);
    FAILS(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), cudaErrorMissingConfiguration);
}

// The codes are those of NVIDIA's runtime 13.0 on an H200.
void mistakes(int* device) {
    FAILS(cudart_test::launch(fill, dim3(1), dim3(2048), 0, nullptr, device, 1, 1), cudaErrorInvalidValue);
    FAILS(cudart_test::launch(fill, dim3(0), dim3(1), 0, nullptr, device, 1, 1), cudaErrorInvalidValue);
    FAILS(cudart_test::launch(fill, dim3(1), dim3(1, 1, 65), 0, nullptr, device, 1, 1),
          cudaErrorInvalidValue);
    FAILS(cudart_test::launch(fill, dim3(1, 70000), dim3(1), 0, nullptr, device, 1, 1),
          cudaErrorInvalidValue);
    FAILS(cudart_test::launch(missing, dim3(1), dim3(1), 0, nullptr, device), cudaErrorInvalidDeviceFunction);
    FAILS(cudart_test::launch(unregistered, dim3(1), dim3(1), 0, nullptr, device),
          cudaErrorInvalidResourceHandle);
    FAILS(cudart_test::launch(of_no_image, dim3(1), dim3(1), 0, nullptr, device),
          cudaErrorInvalidKernelImage);
    cudaFuncAttributes attributes;
    FAILS(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(unregistered)),
          cudaErrorInvalidResourceHandle);
    CHECK(cudart_test::launch(fill, dim3(1), dim3(1), 0, nullptr, device, 12, kCount));
    REQUIRE(all_are(device, 12));
}

void attributes() {
    const void* host = reinterpret_cast<const void*>(scale);
    cudaFuncAttributes facts;
    CHECK(cudaFuncGetAttributes(&facts, host));
    REQUIRE(facts.maxThreadsPerBlock == 1024 && facts.numRegs == 32 &&
            facts.maxDynamicSharedSizeBytes == 48 << 10);
    CHECK(cudaFuncSetAttribute(host, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
    CHECK(cudaFuncGetAttributes(&facts, host));
    REQUIRE(facts.maxDynamicSharedSizeBytes == 100 << 10);
    CHECK(cudaFuncSetCacheConfig(host, cudaFuncCachePreferL1));
    size_t offset = 0, bytes = 0;
    CHECK(cudaFuncGetParamInfo(host, 1, &offset, &bytes));
    REQUIRE(offset == 8 && bytes == 4);
    const char* name = nullptr;
    CHECK(cudaFuncGetName(&name, host));
    REQUIRE(std::string_view(name) == "scale");
}

void variables() {
    int host[64], back[64] = {};
    for (int i = 0; i < 64; ++i) host[i] = i * i;
    size_t bytes = 0;
    void* address = nullptr;
    CHECK(cudaGetSymbolSize(&bytes, table));
    REQUIRE(bytes == sizeof table);
    CHECK(cudaMemcpyToSymbol(table, host, sizeof host));
    CHECK(cudaMemcpyFromSymbol(back, table, sizeof back / 2, sizeof back / 2));
    REQUIRE(back[0] == 32 * 32 && back[31] == 63 * 63);
    CHECK(cudaGetSymbolAddress(&address, table));
    CHECK(cudaMemcpy(back, address, sizeof back, cudaMemcpyDefault));
    REQUIRE(back[63] == 63 * 63);
    CHECK(cudaMemcpyToSymbolAsync(table, host + 1, 4, 8, cudaMemcpyHostToDevice, nullptr));
    CHECK(cudaMemcpyFromSymbolAsync(back, table, sizeof back, 0, cudaMemcpyDeviceToHost, nullptr));
    CHECK(cudaStreamSynchronize(nullptr));
    REQUIRE(back[1] == 1 && back[2] == 1 && back[3] == 9);
    FAILS(cudaMemcpyToSymbol(table, host, 8, sizeof table - 4), cudaErrorInvalidValue);
    FAILS(cudaMemcpyToSymbol(table, host, 4, 0, cudaMemcpyDeviceToHost), cudaErrorInvalidMemcpyDirection);
    FAILS(cudaMemcpyToSymbol(unknown_variable, host, 4), cudaErrorInvalidSymbol);
    FAILS(cudaMemcpyToSymbol(missing_variable, host, 4), cudaErrorInvalidSymbol);
}

int main() {
    register_all();
    for (int round = 0; round < 3; ++round) {
        int* device = nullptr;
        CHECK(cudaMalloc(&device, kCount * sizeof(int)));
        launches(device);
        nested();
        mistakes(device);
        attributes();
        variables();
        CHECK(cudart_test::launch(linked, dim3(8), dim3(128), 0, nullptr, device, 13, kCount));
        REQUIRE(all_are(device, 13));
        CHECK(cudaDeviceReset());
        REQUIRE(cudaMemset(device, 0, 4) != cudaSuccess);  // it went with the context
        cudaGetLastError();
    }
    __cudaUnregisterFatBinary(image.handle());
    FAILS(cudart_test::launch(fill, dim3(1), dim3(1), 0, nullptr, static_cast<int*>(nullptr), 1, 1),
          cudaErrorInvalidResourceHandle);
    return 0;
}
