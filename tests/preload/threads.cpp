// Threads share streams and events: what one thread did before another (by the threads' own
// synchronisation) reaches the stream before it, although each thread has a lane of its own.
//
// The turn goes round. Each thread, in its turn, first gives its own lane a tail of work on a stream of
// its own, then uses the shared objects: its record is late, the next thread's would overtake it.
#include <atomic>
#include <thread>
#include <vector>

#include "tests/preload/program.h"

constexpr int kThreads = 4;
constexpr int kTurns = 200;
constexpr int kDelay = 40;  // launches in front
constexpr char kImage[] = "FAKE\nkernel fill params 8,4,4\nkernel idle params 4\n";

struct Shared {
    CUcontext context;
    CUfunction fill, idle;
    CUstream one, other;  // by turns; `passed` orders them
    CUevent passed;
    CUdeviceptr number, log;  // number := turn; log[turn] := number
    std::atomic<int> turn{0};
};

void take_turn(Shared& shared, CUstream own, int turn) {
    int one = 1;
    void* nothing[] = {&turn};
    void* filling[] = {&shared.number, &turn, &one};
    CUstream stream = turn / 2 % 2 ? shared.one : shared.other;
    for (int i = 0; i < kDelay; ++i)
        CHECK(cuLaunchKernel(shared.idle, 1, 1, 1, 1, 1, 1, 0, own, nothing, nullptr));
    if (turn % 2 == 0) {
        CHECK(cuStreamWaitEvent(stream, shared.passed, 0));
        CHECK(cuLaunchKernel(shared.fill, 1, 1, 1, 1, 1, 1, 0, stream, filling, nullptr));
    } else {
        CHECK(cuMemcpyDtoDAsync(shared.log + turn * sizeof(int), shared.number, sizeof(int), stream));
        CHECK(cuEventRecord(shared.passed, stream));
    }
}

void go_round(Shared& shared, int thread) {
    CUstream own = nullptr;
    CHECK(cuCtxSetCurrent(shared.context));
    CHECK(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
    for (int turn = thread; turn < kTurns; turn += kThreads) {
        while (shared.turn.load() != turn) std::this_thread::yield();
        take_turn(shared, own, turn);
        shared.turn.store(turn + 1);
    }
    CHECK(cuStreamSynchronize(own));
    CHECK(cuStreamDestroy(own));
}

int main() {
    Shared shared{};
    shared.context = preload::start();
    CUmodule module = nullptr;
    CHECK(cuModuleLoadData(&module, kImage));
    CHECK(cuModuleGetFunction(&shared.fill, module, "fill"));
    CHECK(cuModuleGetFunction(&shared.idle, module, "idle"));
    CHECK(cuStreamCreate(&shared.one, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&shared.other, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&shared.passed, CU_EVENT_DISABLE_TIMING));
    CHECK(cuMemAlloc(&shared.number, sizeof(int)));
    CHECK(cuMemAlloc(&shared.log, kTurns * sizeof(int)));

    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { go_round(shared, i); });
    for (std::thread& thread : threads) thread.join();
    std::vector<int> log(kTurns);
    CHECK(cuStreamSynchronize(shared.one));
    CHECK(cuStreamSynchronize(shared.other));
    CHECK(cuMemcpyDtoH(log.data(), shared.log, kTurns * sizeof(int)));
    for (int turn = 1; turn < kTurns; turn += 2) REQUIRE(log[turn] == turn - 1);

    CHECK(cuEventDestroy(shared.passed));
    CHECK(cuStreamDestroy(shared.one));
    CHECK(cuStreamDestroy(shared.other));
    CHECK(cuMemFree(shared.number));
    CHECK(cuMemFree(shared.log));
    CHECK(cuModuleUnload(module));
    std::printf("%d turns of %d threads in order\n", kTurns, kThreads);
}
