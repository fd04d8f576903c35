// Streams and graphs that wait for a value: captured waits, in a child graph and in one that was updated too;
// and a stream that waits by an event for a stream that waits. What is in front of a wait runs before the
// value is written, what is behind it after that.
#include <cuda.h>

#include "program.h"

namespace {

constexpr int kRounds = 25;

void must(CUresult status, const char* text) {
    if (status == CUDA_SUCCESS) return;
    std::printf("%s: error %d\n", text, static_cast<int>(status));
    std::fflush(stdout);
    std::_Exit(1);
}

__global__ void multiply_and_add(uint64_t* sum, uint64_t term) { *sum = *sum * 31 + term; }

struct Words {
    cudaStream_t work, side, host;
    CUdeviceptr word = 0;
    uint64_t* sum = nullptr;
    uint32_t value = 0;

    Words() {
        for (cudaStream_t* stream : {&work, &side, &host})
            CHECK(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
        CHECK(cudaMalloc(&sum, sizeof *sum));
        must(cuMemAlloc(&word, sizeof(uint32_t)), "cuMemAlloc");
        must(cuMemsetD32(word, 0, 1), "cuMemsetD32");
        CHECK(cudaMemset(sum, 0, sizeof *sum));
        CHECK(cudaDeviceSynchronize());
    }
    void add(cudaStream_t stream, uint64_t term) { multiply_and_add<<<1, 1, 0, stream>>>(sum, term); }
    void wait(cudaStream_t stream, uint32_t least) {
        must(cuStreamWaitValue32(stream, word, least, CU_STREAM_WAIT_VALUE_GEQ), "cuStreamWaitValue32");
    }
    void write(uint32_t now) { must(cuStreamWriteValue32(host, word, now, 0), "cuStreamWriteValue32"); }
    uint64_t read() {
        uint64_t now = 0;
        CHECK(cudaMemcpyAsync(&now, sum, sizeof now, cudaMemcpyDeviceToHost, host));
        CHECK(cudaStreamSynchronize(host));
        return now;
    }
    cudaGraph_t capture(uint32_t least, uint64_t term) {
        cudaGraph_t graph = nullptr;
        CHECK(cudaStreamBeginCapture(work, cudaStreamCaptureModeThreadLocal));
        add(work, term);
        wait(work, least);
        add(work, term + 1);
        CHECK(cudaStreamEndCapture(work, &graph));
        return graph;
    }
};

// Launches it, and writes the value only when all in front of the wait has run.
void launch(Words& words, Result& result, cudaGraphExec_t exec, uint64_t before, uint64_t after) {
    CHECK(cudaGraphLaunch(exec, words.work));
    while (words.read() != before) {
    }
    result.expect(cudaStreamQuery(words.work) == cudaErrorNotReady, "the graph waits");
    words.write(++words.value);
    CHECK(cudaStreamSynchronize(words.work));
    result.expect(words.read() == after, "what is behind the wait has run");
}

void run_graphs(Words& words, Result& result) {
    cudaGraphExec_t exec = nullptr;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < kRounds; ++i) {
        cudaGraph_t graph = words.capture(words.value + 1, 10 * i), outer = nullptr;
        if (i % 3 == 1) {  // in a child graph
            cudaGraphNode_t node;
            CHECK(cudaGraphCreate(&outer, 0));
            CHECK(cudaGraphAddChildGraphNode(&node, outer, nullptr, 0, graph));
        }
        cudaGraphExecUpdateResultInfo info{};
        const bool updates = exec && i % 3 == 0;
        if (!updates || cudaGraphExecUpdate(exec, graph, &info) != cudaSuccess) {
            static_cast<void>(cudaGetLastError());  // of an update that is not possible
            if (exec) CHECK(cudaGraphExecDestroy(exec));
            CHECK(cudaGraphInstantiate(&exec, outer ? outer : graph, 0));
        }
        const uint64_t before = sum * 31 + 10 * i, after = before * 31 + 10 * i + 1;
        launch(words, result, exec, before, after);
        sum = after;
        CHECK(cudaGraphDestroy(graph));
        if (outer) CHECK(cudaGraphDestroy(outer));
    }
    CHECK(cudaGraphExecDestroy(exec));
    result.fold(sum);
}

void run_events(Words& words, Result& result) {
    cudaEvent_t event;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    for (uint64_t i = 0; i < kRounds; ++i) {
        const uint64_t before = words.read();
        words.wait(words.work, words.value + 1);
        CHECK(cudaEventRecord(event, words.work));
        CHECK(cudaStreamWaitEvent(words.side, event));
        words.add(words.side, i);
        result.expect(words.read() == before, "nothing runs behind the wait");
        words.write(++words.value);
        CHECK(cudaStreamSynchronize(words.side));
        result.fold(words.read());
    }
    CHECK(cudaEventDestroy(event));
}

}  // namespace

int main() {
    Result result;
    CHECK(cudaFree(nullptr));
    Words words;
    run_graphs(words, result);
    run_events(words, result);
    return result.finish();
}
