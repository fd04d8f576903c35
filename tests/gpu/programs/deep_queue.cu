// Launches far ahead of the GPU: in one stream and in two that wait for each other, behind a host function
// that the program lets go on later and behind an event of that stream, and asked for again and again whether
// they are over.
//
//     deep_queue [LAUNCHES [ROUNDS]]
#include <algorithm>
#include <atomic>
#include <vector>

#include "program.h"

constexpr int kBlocks = 528, kThreads = 128, kValues = kBlocks * kThreads;
constexpr int kMany = 400;
constexpr unsigned kFactor = 1664525u, kSummand = 1013904223u;

__global__ void step(unsigned* values, unsigned launch, int rounds) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned value = values[i] + launch;
    for (int round = 0; round < rounds; ++round) value = value * kFactor + kSummand;
    values[i] = value;
}

// What `launches` of them leave of 0.
unsigned expected(int launches, int rounds, unsigned value = 0) {
    for (int launch = 0; launch < launches; ++launch) {
        value += static_cast<unsigned>(launch);
        for (int round = 0; round < rounds; ++round) value = value * kFactor + kSummand;
    }
    return value;
}

struct Queue {
    Queue() {
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        CHECK(cudaMalloc(&values, kValues * sizeof *values));
        clear();
    }
    ~Queue() {
        cudaFree(values);
        cudaEventDestroy(event);
        cudaStreamDestroy(stream);
    }
    void clear() {
        CHECK(cudaMemsetAsync(values, 0, kValues * sizeof *values, stream));
        CHECK(cudaStreamSynchronize(stream));
    }
    void launch(int launches, int rounds, int blocks = kBlocks) {
        for (int i = 0; i < launches; ++i)
            step<<<blocks, kThreads, 0, stream>>>(values, static_cast<unsigned>(i), rounds);
        CHECK(cudaGetLastError());
    }
    // Waits for nothing.
    bool holds(unsigned value, int blocks = kBlocks) const {
        std::vector<unsigned> found(kValues);
        cudaStream_t other;
        CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
        CHECK(cudaMemcpyAsync(found.data(), values, kValues * sizeof *values, cudaMemcpyDeviceToHost, other));
        CHECK(cudaStreamSynchronize(other));
        CHECK(cudaStreamDestroy(other));
        return std::all_of(found.begin(), found.begin() + blocks * kThreads,
                           [&](unsigned each) { return each == value; });
    }

    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
    unsigned* values = nullptr;
};

int main(int argc, char** argv) {
    const int launches = argc > 1 ? std::atoi(argv[1]) : 400, rounds = argc > 2 ? std::atoi(argv[2]) : 20'000;
    const unsigned after = expected(launches, rounds);
    Result result;
    Queue one, two;

    one.launch(launches, rounds);
    CHECK(cudaStreamSynchronize(one.stream));
    result.expect(one.holds(after), "after a synchronisation");

    one.clear();
    one.launch(launches, rounds);
    cudaError_t status;
    while ((status = cudaStreamQuery(one.stream)) == cudaErrorNotReady) {
    }
    CHECK(status);
    result.expect(one.holds(after), "after queries of the stream");

    one.clear();
    one.launch(launches, rounds);
    CHECK(cudaEventRecord(one.event, one.stream));
    while ((status = cudaEventQuery(one.event)) == cudaErrorNotReady) {
    }
    CHECK(status);
    result.expect(one.holds(after), "after queries of an event");

    // The second goes on with what the first has left, while the first is at something else.
    one.clear();
    one.launch(launches, rounds);
    CHECK(cudaMemcpyAsync(two.values, one.values, kValues * sizeof(unsigned), cudaMemcpyDeviceToDevice,
                          one.stream));
    CHECK(cudaEventRecord(one.event, one.stream));
    one.launch(launches, rounds);
    CHECK(cudaStreamWaitEvent(two.stream, one.event, 0));
    two.launch(launches, rounds);
    CHECK(cudaStreamSynchronize(two.stream));
    result.expect(two.holds(expected(launches, rounds, after)), "in the stream that waited");
    CHECK(cudaStreamSynchronize(one.stream));
    result.expect(one.holds(expected(launches, rounds, after)), "in the stream that was waited for");

    std::atomic<bool> go{false};
    const auto wait_in = [&](cudaStream_t stream) {
        go = false;
        CHECK(cudaLaunchHostFunc(
            stream,
            [](void* flag) {
                while (!static_cast<std::atomic<bool>*>(flag)->load()) {
                }
            },
            &go));
    };
    one.clear();
    wait_in(one.stream);
    const int behind = std::min(launches, 60);
    one.launch(behind, rounds);
    go = true;
    CHECK(cudaStreamSynchronize(one.stream));
    result.expect(one.holds(expected(behind, rounds)), "behind a host function");

    // More than a server lets a stream be ahead, of kernels that are too small to be managed.
    one.clear();
    two.clear();
    wait_in(one.stream);
    one.launch(kMany, 1, 1);
    CHECK(cudaEventRecord(one.event, one.stream));
    CHECK(cudaStreamWaitEvent(two.stream, one.event, 0));
    two.launch(kMany, 1, 1);
    go = true;
    CHECK(cudaStreamSynchronize(two.stream));
    result.expect(one.holds(expected(kMany, 1), 1), "small ones behind a host function");
    result.expect(two.holds(expected(kMany, 1), 1), "small ones behind an event that waits");

    result.fold(after);
    return result.finish();
}
