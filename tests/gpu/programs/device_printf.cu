// What kernels print must stand on this program's own output, in order with its own lines, at the
// synchronisation points at which CUDA promises it.
#include "program.h"

__global__ void all_kinds(int number, double value, const char* unused) {
    printf("int %d, negative %i, unsigned %u, hex %x, octal %o, char %c\n", number, -number, number * 2u,
           number, number, 'A' + number % 26);
    printf("long %ld %lld %llu, hex %llx\n", 1L << 40, -(1ll << 62), ~0ull, 0xfeedfacecafebeefull);
    printf("double %f, %.3e, %g, width |%8.2f|%-8d|%08d|\n", value, value, value, value, number, number);
    printf("string '%s', percent %%, null %d\n", "a constant of the kernel", unused == nullptr);
}

__global__ void lines(int count, int tag) {
    for (int i = 0; i < count; ++i) printf("kernel %d, line %d\n", tag, i);
}

__global__ void one_warp() {
    for (int turn = 0; turn < 32; ++turn) {
        if (threadIdx.x == turn) printf("thread %2d of the warp\n", turn);
        __syncwarp();
    }
}

__global__ void silent(int* out) { *out = 7; }

int main() {
    Result result;
    std::printf("host: before the first kernel\n");
    std::fflush(stdout);
    all_kinds<<<1, 1>>>(42, 3.25, nullptr);
    CHECK(cudaDeviceSynchronize());
    std::printf("host: after the first kernel\n");
    std::fflush(stdout);

    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    for (int tag = 0; tag < 3; ++tag) {
        lines<<<1, 1, 0, stream>>>(3, tag);
        CHECK(cudaStreamSynchronize(stream));
        std::printf("host: kernel %d is done\n", tag);
        std::fflush(stdout);
    }
    lines<<<1, 1, 0, stream>>>(2000, 9);
    CHECK(cudaStreamSynchronize(stream));
    one_warp<<<1, 32, 0, stream>>>();

    int *device, value = 0;
    CHECK(cudaMalloc(&device, sizeof value));
    silent<<<1, 1, 0, stream>>>(device);
    cudaEvent_t event;
    CHECK(cudaEventCreate(&event));
    CHECK(cudaEventRecord(event, stream));
    CHECK(cudaEventSynchronize(event));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
    std::printf("host: last line\n");
    result.expect(value == 7, "silent kernel");
    result.fold(value);
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(device));
    return result.finish();
}
