// A __managed__ variable: the host reads and writes it like its own.
#include "program.h"

__managed__ int shared_counter = 5;
__managed__ float values[64];

__global__ void work() {
    values[threadIdx.x] += threadIdx.x * 2.0f;
    atomicAdd(&shared_counter, 1);
}

int main() {
    Result result;
    shared_counter += 10;
    for (int i = 0; i < 64; ++i) values[i] = static_cast<float>(i);
    work<<<1, 64>>>();
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    std::printf("counter %d\n", shared_counter);
    result.expect(shared_counter == 79, "counter");
    for (int i = 0; i < 64; ++i) result.expect(values[i] == i * 3.0f, "value");
    result.fold(values, sizeof values);
    return result.finish();
}
