// What a thread leaves behind when it ends is not the next thread's.
#include <cstring>
#include <latch>
#include <thread>
#include <vector>

#include "tests/preload/program.h"

constexpr int kRounds = 20;
constexpr int kDelay = 40;  // launches in front
constexpr char kImage[] = "FAKE\nkernel idle params 4\n";

CUcontext context;
CUfunction idle;
CUdeviceptr memory;
int* gate;

void in_thread(void (*work)()) {
    std::thread([work] {
        CHECK(cuCtxSetCurrent(context));
        work();
    }).join();
}

void launch(CUstream stream) {
    int nothing = 0;
    void* parameters[] = {&nothing};
    CHECK(cuLaunchKernel(idle, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
}

// The copy fails after the thread's end, behind its launches.
void fail_late() {
    for (int i = 0; i < kDelay; ++i) launch(CU_STREAM_PER_THREAD);
    CHECK(cuMemcpyDtoDAsync(memory, memory + (1ull << 30), 64, CU_STREAM_PER_THREAD));
}

void expect_no_error() {
    CUdeviceptr other = 0;
    launch(CU_STREAM_PER_THREAD);                      // the thread has a lane from now on
    CHECK(cuStreamSynchronize(CU_STREAM_PER_THREAD));  // what the lane had from before is executed, too
    CHECK(cuMemAlloc(&other, 64));
    CHECK(cuMemFree(other));
}

void leave_capture_open() {
    CHECK(cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    launch(CU_STREAM_PER_THREAD);
}

void expect_no_capture() {
    CUstreamCaptureStatus status{};
    CUgraph graph = nullptr;
    CHECK(cuStreamIsCapturing(CU_STREAM_PER_THREAD, &status));
    REQUIRE(status == CU_STREAM_CAPTURE_STATUS_NONE);
    launch(CU_STREAM_PER_THREAD);
    CHECK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    FAILS(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph), CUDA_ERROR_ILLEGAL_STATE);
}

// A capture of a created stream goes on without the thread that began it.
CUstream shared;
void begin_shared() { CHECK(cuStreamBeginCapture(shared, CU_STREAM_CAPTURE_MODE_RELAXED)); }
void end_shared() {
    CUgraph graph = nullptr;
    size_t nodes = 0;
    launch(shared);
    CHECK(cuStreamEndCapture(shared, &graph));
    CHECK(cuGraphGetNodes(graph, nullptr, &nodes));
    REQUIRE(nodes == 1);
    CHECK(cuGraphDestroy(graph));
}

// More threads at a time than the lanes that are kept for the next ones. A lane ends with its thread whatever
// a stream waits for.
void end_beside_a_wait() {
    constexpr int kTimes = 5, kThreads = 70;
    CUstream waits = nullptr;
    void* word = nullptr;
    CHECK(cuStreamCreate(&waits, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemHostAlloc(&word, sizeof(int), 0));
    std::memset(word, 0, sizeof(int));
    CHECK(cuStreamWaitValue32(waits, reinterpret_cast<CUdeviceptr>(word), 1, CU_STREAM_WAIT_VALUE_GEQ));
    for (int time = 0; time < kTimes; ++time) {
        std::latch all(kThreads);
        std::vector<std::thread> threads;
        for (int i = 0; i < kThreads; ++i)
            threads.emplace_back([&] {
                CHECK(cuCtxSetCurrent(context));
                CHECK(cuMemcpyHtoDAsync(memory, &time, sizeof time, CU_STREAM_PER_THREAD));
                CHECK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
                all.arrive_and_wait();
            });
        for (std::thread& thread : threads) thread.join();
    }
    FAILS(cuStreamQuery(waits), CUDA_ERROR_NOT_READY);
    __atomic_store_n(static_cast<int*>(word), 1, __ATOMIC_RELEASE);
    CHECK(cuStreamDestroy(waits));
    CHECK(cuCtxSynchronize());
    CHECK(cuMemFreeHost(word));
}

void wait_on_own_stream() {
    const CUdeviceptr at = reinterpret_cast<CUdeviceptr>(gate);
    CHECK(cuStreamWaitValue32(CU_STREAM_PER_THREAD, at, 1, CU_STREAM_WAIT_VALUE_GEQ));
    CHECK(cuMemcpyHtoDAsync(memory, "waited", 7, CU_STREAM_PER_THREAD));
}

void copy_on_own_stream() {
    for (int i = 0; i < 100; ++i) CHECK(cuMemcpyHtoDAsync(memory + 64, "copied", 7, CU_STREAM_PER_THREAD));
    CHECK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

// A thread's default stream is not that of a thread that has ended.
void own_streams() {
    char text[71] = {};
    CHECK(cuMemHostAlloc(reinterpret_cast<void**>(&gate), sizeof *gate, 0));
    *gate = 0;
    in_thread(wait_on_own_stream);
    in_thread(copy_on_own_stream);
    __atomic_store_n(gate, 1, __ATOMIC_RELEASE);
    CHECK(cuCtxSynchronize());
    CHECK(cuMemcpyDtoH(text, memory, sizeof text));
    REQUIRE(std::strcmp(text, "waited") == 0 && std::strcmp(text + 64, "copied") == 0);
    CHECK(cuMemFreeHost(gate));
}

int main() {
    context = preload::start();
    CUmodule module = nullptr;
    CHECK(cuModuleLoadData(&module, kImage));
    CHECK(cuModuleGetFunction(&idle, module, "idle"));
    CHECK(cuMemAlloc(&memory, 4096));
    for (int round = 0; round < kRounds; ++round) {
        in_thread(fail_late);
        in_thread(expect_no_error);
    }
    CHECK(cuStreamCreate(&shared, CU_STREAM_NON_BLOCKING));
    in_thread(begin_shared);
    in_thread(leave_capture_open);
    for (int i = 0; i < 3; ++i) in_thread(expect_no_capture);
    in_thread(end_shared);
    in_thread(leave_capture_open);
    in_thread(expect_no_capture);
    CHECK(cuStreamDestroy(shared));
    end_beside_a_wait();
    own_streams();
    CHECK(cuMemFree(memory));
    CHECK(cuModuleUnload(module));
}
