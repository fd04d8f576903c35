// A child forked after CUDA was initialised may not use it, and must not disturb its parent; a
// child forked before may.
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

__global__ void add(int* value, int amount) { *value += amount; }

int use(int amount) {
    int *device, value = 1;
    CHECK(cudaMalloc(&device, sizeof value));
    CHECK(cudaMemcpy(device, &value, sizeof value, cudaMemcpyHostToDevice));
    add<<<1, 1>>>(device, amount);
    CHECK(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(device));
    return value;
}

template <typename Work>
int in_child(Work work) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        work();
        std::fflush(stdout);
        _exit(7);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

int main() {
    Result result;
    const int early = in_child([] { std::printf("early child: %d\n", use(10)); });
    result.expect(WIFEXITED(early) && WEXITSTATUS(early) == 7, "early child's end");
    std::printf("parent: %d\n", use(20));

    int *kept, value = 100;
    CHECK(cudaMalloc(&kept, sizeof value));
    CHECK(cudaMemcpy(kept, &value, sizeof value, cudaMemcpyHostToDevice));
    const int late = in_child([&] {
        int *device = nullptr, copied = 0;
        const bool refused = cudaMalloc(&device, 4) != cudaSuccess;
        const bool no_copy = cudaMemcpy(&copied, kept, 4, cudaMemcpyDeviceToHost) != cudaSuccess;
        const bool no_wait = cudaDeviceSynchronize() != cudaSuccess;
        std::printf("late child: refused %d %d %d\n", refused, no_copy, no_wait);
    });
    result.expect(WIFEXITED(late) && WEXITSTATUS(late) == 7, "late child's end");
    add<<<1, 1>>>(kept, 5);
    CHECK(cudaMemcpy(&value, kept, sizeof value, cudaMemcpyDeviceToHost));
    std::printf("parent afterwards: %d %d\n", value, use(30));
    result.expect(value == 105, "parent afterwards");
    result.fold(value);
    return result.finish();
}
