// fault KIND: waits for its input to end, then launches a kernel that faults: store, load, misaligned, trap.
// Prints the error of the first call that returns one, and the calls that succeeded before. fault healthy:
// launches a kernel again and again until a call fails.
#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

extern "C" __global__ void healthy(uint64_t* out, int rounds) {
    uint64_t x = threadIdx.x + 1;
    for (int i = 0; i < rounds; ++i) x = x * 6364136223846793005ull + 1442695040888963407ull;
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
extern "C" __global__ void faulty_store(int* out) { out[(1ull << 44) + threadIdx.x] = 1; }
extern "C" __global__ void faulty_load(int* out) { out[threadIdx.x] = out[(1ull << 44) + threadIdx.x] + 1; }
extern "C" __global__ void faulty_misaligned(char* out) { *reinterpret_cast<int*>(out + 1) = 1; }
extern "C" __global__ void faulty_trap() { __trap(); }

int main(int, char** arguments) {
    const char* const kind = arguments[1];
    uint64_t* out = nullptr;
    if (cudaMalloc(&out, 40 * 256 * sizeof *out) != cudaSuccess) return 2;
    const auto is = [kind](const char* name) { return std::strcmp(kind, name) == 0; };
    // Loads the image, so that nothing waits for it later.
    healthy<<<40, 256>>>(out, 1);
    if (cudaDeviceSynchronize() != cudaSuccess) return 2;
    std::puts("READY"), std::fflush(stdout);
    if (!is("healthy"))
        while (std::getchar() != EOF) {
        }
    int calls = 0;
    cudaError_t status = cudaSuccess;
    if (is("store")) faulty_store<<<7, 64>>>(reinterpret_cast<int*>(out));
    if (is("load")) faulty_load<<<7, 64>>>(reinterpret_cast<int*>(out));
    if (is("misaligned")) faulty_misaligned<<<7, 64>>>(reinterpret_cast<char*>(out));
    if (is("trap")) faulty_trap<<<7, 64>>>();
    while ((status = cudaDeviceSynchronize()) == cudaSuccess) {
        ++calls;
        if (is("healthy"))
            healthy<<<40, 256>>>(out, 2000000);  // 40 ms
        else
            usleep(1000);  // not to ask more often than is of use
    }
    std::printf("%s after %d calls that succeeded\n", cudaGetErrorName(status), calls);
    return 0;
}
