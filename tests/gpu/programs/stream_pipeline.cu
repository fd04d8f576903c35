// Chunks flow through several streams: pinned memory, asynchronous copies, events between streams,
// host functions and stream callbacks that see finished data.
#include <atomic>
#include <vector>

#include "program.h"

constexpr int kStreams = 4, kChunks = 32, kChunk = 1 << 18;

__global__ void scale(int* data, int factor) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = data[i] * factor + 1;
}

struct Seen {
    const int* first;
    int expected;
    std::atomic<int>* right;
};

void CUDART_CB host_function(void* state) {
    const auto* seen = static_cast<Seen*>(state);
    if (*seen->first == seen->expected) seen->right->fetch_add(1);
}

void CUDART_CB stream_callback(cudaStream_t, cudaError_t status, void* state) {
    if (status == cudaSuccess) host_function(state);
}

int main() {
    Result result;
    Random random;
    int *in, *out, *device;
    CHECK(cudaMallocHost(&in, sizeof(int) * kChunk * kChunks));
    CHECK(cudaHostAlloc(&out, sizeof(int) * kChunk * kChunks, cudaHostAllocPortable));
    CHECK(cudaMalloc(&device, sizeof(int) * kChunk * kChunks));
    for (int i = 0; i < kChunk * kChunks; ++i) in[i] = random.below(1000);

    cudaStream_t streams[kStreams];
    int least, greatest;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    for (int i = 0; i < kStreams; ++i)
        CHECK(cudaStreamCreateWithPriority(&streams[i], i % 2 ? cudaStreamNonBlocking : cudaStreamDefault,
                                           i < 2 ? least : greatest));
    cudaEvent_t copied[kChunks], begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaEventRecord(begin, streams[0]));
    std::atomic<int> right{0};
    std::vector<Seen> seen(kChunks);
    // The upload of a chunk runs in one stream, the rest in the next one, after the upload's event.
    for (int chunk = 0; chunk < kChunks; ++chunk) {
        cudaStream_t upload = streams[chunk % kStreams], work = streams[(chunk + 1) % kStreams];
        int* place = device + chunk * kChunk;
        CHECK(cudaEventCreateWithFlags(&copied[chunk], cudaEventDisableTiming));
        CHECK(cudaMemcpyAsync(place, in + chunk * kChunk, sizeof(int) * kChunk, cudaMemcpyHostToDevice,
                              upload));
        CHECK(cudaEventRecord(copied[chunk], upload));
        CHECK(cudaStreamWaitEvent(work, copied[chunk], 0));
        scale<<<kChunk / 256, 256, 0, work>>>(place, chunk + 2);
        CHECK(
            cudaMemcpyAsync(out + chunk * kChunk, place, sizeof(int) * kChunk, cudaMemcpyDeviceToHost, work));
        seen[chunk] = {out + chunk * kChunk, in[chunk * kChunk] * (chunk + 2) + 1, &right};
        if (chunk % 2)
            CHECK(cudaLaunchHostFunc(work, host_function, &seen[chunk]));
        else
            CHECK(cudaStreamAddCallback(work, stream_callback, &seen[chunk], 0));
    }
    for (cudaStream_t stream : streams) {
        CHECK(cudaStreamSynchronize(stream));
        CHECK(cudaStreamQuery(stream));
    }
    CHECK(cudaEventRecord(end, streams[0]));
    CHECK(cudaEventSynchronize(end));
    float milliseconds = -1;
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    result.expect(milliseconds > 0 && milliseconds < 60000, "elapsed time");
    bool all = true;
    for (int i = 0; i < kChunk * kChunks; ++i) all &= out[i] == in[i] * (i / kChunk + 2) + 1;
    result.expect(all, "chunks");
    std::printf("callbacks that saw their chunk: %d\n", right.load());
    result.expect(right == kChunks, "callbacks");
    result.fold(out, sizeof(int) * kChunk * kChunks);
    for (cudaEvent_t event : copied) {
        CHECK(cudaEventQuery(event));
        CHECK(cudaEventDestroy(event));
    }
    for (cudaStream_t stream : streams) CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFreeHost(in));
    CHECK(cudaFreeHost(out));
    CHECK(cudaFree(device));
    return result.finish();
}
