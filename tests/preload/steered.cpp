// A program that does what its standard input says, a line each, and answers with a line: the error's number.
//
//   use S            the stream that the next lines are about; made the first time. From 10 on it is a
//   blocking
//                    one, and -1 is the legacy stream
//   gate N           launches a kernel that ends when the test opens gate N
//   fill V           launches a kernel that sets the memory to V
//   bad              launches with a block of no threads
//   graph V          launches a graph that has one kernel, which sets the memory to V
//   set V            a memset to V
//   record E, wait E, query, sync
//   hold, release    the stream waits for a value from here on; the program writes it
//   function F       a host function that ends when the program is told "return F"
//   capture          what follows becomes a graph, until
//   build G          which makes an executable graph of it, or "update G", which changes that
//   built G N E      the same of two graphs' nodes, made by hand: 0: a wait for event E, 1: a record of it
//   launch G, forget G
//   read             the memory: answers with what is there
#include <atomic>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "tests/preload/program.h"

namespace {

constexpr char kImage[] = "FAKE\nkernel gate params 4\nkernel fill params 8,4,4\n";
constexpr int kInts = 1024;

struct Program {
    CUfunction gate = nullptr, fill = nullptr;
    CUdeviceptr memory = 0, word_there = 0;
    std::atomic<unsigned>* word = nullptr;  // how many holds are released
    unsigned holds = 0;
    CUstream stream = nullptr;
    std::map<int, CUstream> streams;
    std::map<int, CUevent> events;
    std::map<int, CUgraphExec> graphs;
    std::atomic<bool> returns[10] = {};

    CUstream use(int number) {
        if (number < 0) return stream = nullptr;
        const unsigned flags = number < 10 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
        if (!streams.contains(number)) CHECK(cuStreamCreate(&streams[number], flags));
        return stream = streams[number];
    }
    CUevent event(int number) {
        if (!events.contains(number)) CHECK(cuEventCreate(&events[number], CU_EVENT_DISABLE_TIMING));
        return events[number];
    }
    CUresult launch_fill(int value, unsigned threads) {
        int count = kInts;
        void* parameters[] = {&memory, &value, &count};
        return cuLaunchKernel(fill, 1, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr);
    }
    CUresult launch_gate(int number) {
        void* parameters[] = {&number};
        return cuLaunchKernel(gate, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
    }
    CUresult launch_graph(int value) {
        CUstream side = nullptr, before = stream;
        CUgraph graph = nullptr;
        CUgraphExec exec = nullptr;
        CHECK(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
        CHECK(cuStreamBeginCapture(side, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        stream = side;
        CHECK(launch_fill(value, 1));
        stream = before;
        CHECK(cuStreamEndCapture(side, &graph));
        CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
        return cuGraphLaunch(exec, stream);
    }
    CUresult end_capture(int number, bool update) {
        CUgraph graph = nullptr;
        CUgraphExecUpdateResultInfo info{};
        CUresult status = cuStreamEndCapture(stream, &graph);
        if (status != CUDA_SUCCESS) return status;
        status = update ? cuGraphExecUpdate(graphs[number], graph, &info)
                        : cuGraphInstantiateWithFlags(&graphs[number], graph, 0);
        CHECK(cuGraphDestroy(graph));
        return status;
    }
    CUresult build_nodes(int number) {
        CUgraph graph = nullptr;
        CUgraphNode wait = nullptr, record = nullptr;
        CHECK(cuGraphCreate(&graph, 0));
        CHECK(cuGraphAddEventWaitNode(&wait, graph, nullptr, 0, event(number)));
        CHECK(cuGraphAddEventRecordNode(&record, graph, &wait, 1, event(number + 1)));
        CHECK(cuGraphInstantiateWithFlags(&graphs[number], graph, 0));
        return cuGraphDestroy(graph);
    }
    CUresult host_function(int number) {
        return cuLaunchHostFunc(
            stream,
            [](void* data) {
                auto& returns = *static_cast<std::atomic<bool>*>(data);
                returns.wait(false);
                returns.store(false);
            },
            &returns[number]);
    }
    CUresult read(int* value) {
        std::string bytes(kInts * sizeof(int), 0);
        CUresult status = cuMemcpyDtoHAsync(bytes.data(), memory, bytes.size(), stream);
        if (status == CUDA_SUCCESS) status = cuStreamSynchronize(stream);
        std::memcpy(value, bytes.data(), sizeof *value);
        for (int i = 0; i < kInts; ++i) REQUIRE(std::memcmp(bytes.data() + 4 * i, value, 4) == 0);
        return status;
    }
    CUresult obey(std::string_view what, int number) {
        if (what == "use") return use(number), CUDA_SUCCESS;
        if (what == "gate") return launch_gate(number);
        if (what == "fill") return launch_fill(number, 1);
        if (what == "bad") return launch_fill(0, 0);
        if (what == "graph") return launch_graph(number);
        if (what == "set") return cuMemsetD32Async(memory, static_cast<unsigned>(number), kInts, stream);
        if (what == "record") return cuEventRecord(event(number), stream);
        if (what == "wait") return cuStreamWaitEvent(stream, event(number), 0);
        if (what == "function") return host_function(number);
        if (what == "return") {
            returns[number].store(true);
            returns[number].notify_all();
            return CUDA_SUCCESS;
        }
        if (what == "capture") return cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
        if (what == "build" || what == "update") return end_capture(number, what == "update");
        if (what == "nodes") return build_nodes(number);
        if (what == "await") return cuStreamWaitEvent(stream, event(number), CU_EVENT_WAIT_EXTERNAL);
        if (what == "sign") return cuEventRecordWithFlags(event(number), stream, CU_EVENT_RECORD_EXTERNAL);
        if (what == "launch") return cuGraphLaunch(graphs[number], stream);
        if (what == "forget") return cuGraphExecDestroy(graphs[number]);
        if (what == "hold") return cuStreamWaitValue32(stream, word_there, ++holds, CU_STREAM_WAIT_VALUE_GEQ);
        if (what == "release") return word->store(holds), CUDA_SUCCESS;
        if (what == "query") return cuStreamQuery(stream);
        if (what == "sync") return cuStreamSynchronize(stream);
        return CUDA_ERROR_INVALID_VALUE;
    }
};

}  // namespace

int main() {
    preload::start();
    CUmodule module = nullptr;
    Program program;
    CHECK(cuModuleLoadData(&module, kImage));
    CHECK(cuModuleGetFunction(&program.gate, module, "gate"));
    CHECK(cuModuleGetFunction(&program.fill, module, "fill"));
    CHECK(cuMemAlloc(&program.memory, kInts * sizeof(int)));
    CHECK(cuMemsetD32(program.memory, 0, kInts));
    CHECK(cuMemHostAlloc(reinterpret_cast<void**>(&program.word), sizeof *program.word, 0));
    CHECK(cuMemHostGetDevicePointer(&program.word_there, program.word, 0));
    program.word->store(0);
    CHECK(cuCtxSynchronize());
    program.use(0);
    preload::say("ready");
    char line[64];
    while (std::fgets(line, sizeof line, stdin)) {
        char what[32] = {};
        int number = 0, value = 0;
        std::sscanf(line, "%31s %d", what, &number);
        if (std::strcmp(what, "read") == 0) {
            CHECK(program.read(&value));
        } else {
            value = program.obey(what, number);
        }
        std::printf("%d\n", value);
        std::fflush(stdout);
    }
    CHECK(cuCtxSynchronize());
}
