// Many threads that use the runtime at once, from their first call on: each kernel is loaded once, each
// thread sees its own results and errors.
#include <thread>
#include <vector>

#include "tests/cudart/program.h"

using cudart_test::Image;

constexpr int kThreads = 12, kRounds = 40, kCount = 512;

void fill(int*, int, int) { std::abort(); }
Image image("FAKE\nkernel fill params 8,4,4\n");

void work(int thread) {
    int* device;
    cudaStream_t stream;
    std::vector<int> host(kCount);
    CHECK(cudaSetDevice(0));
    CHECK(cudaMalloc(&device, kCount * sizeof(int)));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int round = 0; round < kRounds; ++round) {
        int value = thread * 1000 + round;
        CHECK(cudart_test::launch(fill, dim3(2), dim3(256), 0, stream, device, value, kCount));
        CHECK(cudaMemcpyAsync(host.data(), device, kCount * sizeof(int), cudaMemcpyDeviceToHost, stream));
        CHECK(cudaStreamSynchronize(stream));
        REQUIRE(host[0] == value && host[kCount - 1] == value);
        if (thread % 2) FAILS(cudaSetDevice(5), cudaErrorInvalidDevice);
        REQUIRE(cudaPeekAtLastError() == cudaSuccess);
    }
    CHECK(cudaFree(device));
    CHECK(cudaStreamDestroy(stream));
}

int main() {
    image.kernel(fill, "fill").end();
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
    for (std::thread& thread : threads) thread.join();
    __cudaUnregisterFatBinary(image.handle());
    return 0;
}
