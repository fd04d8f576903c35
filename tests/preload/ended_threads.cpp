// What a thread leaves behind when it ends is not the next thread's.
#include <thread>

#include "tests/preload/program.h"

constexpr int kRounds = 20;
constexpr int kDelay = 40;  // launches in front
constexpr char kImage[] = "FAKE\nkernel idle params 4\n";

CUcontext context;
CUfunction idle;
CUdeviceptr memory;

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
    CHECK(cuMemFree(memory));
    CHECK(cuModuleUnload(module));
}
