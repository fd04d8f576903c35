// Host functions: what comes behind one waits until it has returned, what stands beside it does not.
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/preload/program.h"

constexpr char kImage[] = "FAKE\nkernel fill params 8,4,4\n";

struct Gate {
    std::atomic<bool> reached{false};
    std::atomic<bool> open{false};
    std::atomic<bool> passed{false};
};

// Made before any thread is: what orders a client's threads across the server no sanitizer sees.
Gate gates[5];
Gate* next = gates;

void CUDA_CB wait_at_gate(void* state) {
    auto* gate = static_cast<Gate*>(state);
    gate->reached = true;
    gate->reached.notify_all();
    gate->open.wait(false);
    // Work that does not wait for it overtakes it here; work that does cannot.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate->passed = true;
}

void open(Gate& gate) {
    gate.open = true;
    gate.open.notify_all();
}

int main() {
    preload::start();
    CUmodule module = nullptr;
    CUfunction fill = nullptr;
    CUdeviceptr memory = 0;
    CUstream stream = nullptr, beside = nullptr, blocking = nullptr;
    CUevent event = nullptr;
    void* pinned = nullptr;
    CHECK(cuModuleLoadData(&module, kImage));
    CHECK(cuModuleGetFunction(&fill, module, "fill"));
    CHECK(cuMemAlloc(&memory, 2 * sizeof(int)));
    CHECK(cuMemHostAlloc(&pinned, 2 * sizeof(int), 0));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    auto* seen = static_cast<int*>(pinned);
    auto write = [&](int place, int value, CUstream on) {
        CUdeviceptr to = memory + place * sizeof(int);
        int one = 1;
        void* parameters[] = {&to, &value, &one};
        CHECK(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, on, parameters, nullptr));
    };

    {  // Beside and behind.
        Gate& gate = *next++;
        write(0, 1, stream);
        CHECK(cuLaunchHostFunc(stream, wait_at_gate, &gate));
        REQUIRE(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
        write(1, 2, beside);
        CHECK(cuStreamSynchronize(beside));
        write(0, 3, stream);
        CHECK(cuEventRecord(event, stream));
        REQUIRE(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
        gate.reached.wait(false);  // so the 1 is there: nothing else orders it before the copy beside it
        CHECK(cuMemcpyDtoHAsync(seen, memory, 2 * sizeof(int), beside));
        CHECK(cuStreamSynchronize(beside));
        REQUIRE(seen[0] == 1 && seen[1] == 2);
        open(gate);
        CHECK(cuEventSynchronize(event));
        CHECK(cuMemcpyDtoHAsync(seen, memory, 2 * sizeof(int), beside));
        CHECK(cuStreamSynchronize(beside));
        REQUIRE(seen[0] == 3 && gate.passed);
    }
    // Last on its stream, for each way of waiting: the legacy stream waits for the blocking ones.
    CUresult (*const waits[])(CUstream) = {cuStreamSynchronize, [](CUstream) { return cuCtxSynchronize(); },
                                           [](CUstream) { return cuStreamSynchronize(nullptr); }};
    for (auto wait : waits) {
        Gate& gate = *next++;
        CHECK(cuLaunchHostFunc(blocking, wait_at_gate, &gate));
        open(gate);
        CHECK(wait(blocking));
        REQUIRE(gate.passed);
    }
    {  // A capture that begins behind one; a stream destroyed behind one.
        Gate& gate = *next++;
        CUgraph graph = nullptr;
        CHECK(cuLaunchHostFunc(stream, wait_at_gate, &gate));
        CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        write(0, 4, stream);
        CHECK(cuStreamEndCapture(stream, &graph));
        REQUIRE(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
        CHECK(cuGraphDestroy(graph));
        CHECK(cuStreamDestroy(stream));
        open(gate);
        CHECK(cuCtxSynchronize());
        REQUIRE(gate.passed);
    }
    CHECK(cuStreamDestroy(beside));
    CHECK(cuStreamDestroy(blocking));
    CHECK(cuEventDestroy(event));
    CHECK(cuMemFreeHost(pinned));
    CHECK(cuMemFree(memory));
}
