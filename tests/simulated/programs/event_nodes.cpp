// Events that graphs record, by a node made by hand or by an external record in a capture: what is asked
// about them goes by the last launch of the graph, which a word in memory holds up here.
#include <chrono>
#include <thread>

#include "tests/preload/program.h"

namespace {

CUcontext context = nullptr;
CUstream stream = nullptr, capturing = nullptr;

// A stream waits for it, until it is opened.
class Gate {
public:
    Gate() {
        CHECK(cuMemHostAlloc(reinterpret_cast<void**>(&word_), sizeof *word_, CU_MEMHOSTALLOC_DEVICEMAP));
        CHECK(cuMemHostGetDevicePointer(&address_, word_, 0));
    }
    void hold() {
        ++opened_;
        CHECK(cuStreamWaitValue32(stream, address_, opened_, CU_STREAM_WAIT_VALUE_GEQ));
    }
    void open() { __atomic_store_n(word_, opened_, __ATOMIC_RELEASE); }
    bool is_open() const { return __atomic_load_n(word_, __ATOMIC_ACQUIRE) == opened_; }

private:
    unsigned* word_ = nullptr;
    unsigned opened_ = 0;
    CUdeviceptr address_ = 0;
};

CUevent new_event() {
    CUevent event = nullptr;
    CHECK(cuEventCreate(&event, CU_EVENT_DEFAULT));
    return event;
}

CUgraphExec executable(CUgraph graph) {
    CUgraphExec exec = nullptr;
    CHECK(cuGraphInstantiate(&exec, graph, 0));
    return exec;
}

void launch_in_another_thread(CUgraphExec exec) {
    std::thread([exec] {
        CHECK(cuCtxSetCurrent(context));
        CHECK(cuGraphLaunch(exec, stream));
    }).join();
}

// `other`: the launch is another thread's.
void follows_a_launch(Gate& gate, CUgraphExec exec, CUevent event, bool other) {
    gate.hold();
    if (other)
        launch_in_another_thread(exec);
    else
        CHECK(cuGraphLaunch(exec, stream));
    FAILS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    std::thread opens([&gate] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        gate.open();
    });
    CHECK(cuEventSynchronize(event));
    REQUIRE(gate.is_open());
    opens.join();
    CHECK(cuEventQuery(event));
}

void follows_launches(CUgraphExec exec, CUevent event) {
    Gate gate;
    CHECK(cuEventQuery(event));  // not recorded yet
    follows_a_launch(gate, exec, event, false);
    follows_a_launch(gate, exec, event, true);
    CHECK(cuEventRecord(event, stream));  // by the program itself, and by the graph again
    CHECK(cuEventSynchronize(event));
    follows_a_launch(gate, exec, event, false);
    float milliseconds = 0;
    CUevent later = new_event();
    CHECK(cuEventRecord(later, stream));
    CHECK(cuEventSynchronize(later));
    CHECK(cuEventElapsedTime(&milliseconds, event, later));
}

void recorded_by_a_node() {
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    CUevent event = new_event(), set = new_event();
    CHECK(cuGraphCreate(&graph, 0));
    CHECK(cuGraphAddEventRecordNode(&node, graph, nullptr, 0, event));
    CUgraphExec exec = executable(graph);
    follows_launches(exec, event);
    CHECK(cuGraphExecEventRecordNodeSetEvent(exec, node, set));
    follows_launches(exec, set);
}

void recorded_by_a_capture() {
    CUgraph graph = nullptr;
    CUevent event = new_event();
    CHECK(cuStreamBeginCapture(capturing, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    CHECK(cuEventRecordWithFlags(event, capturing, CU_EVENT_RECORD_EXTERNAL));
    CHECK(cuStreamEndCapture(capturing, &graph));
    follows_launches(executable(graph), event);
}

}  // namespace

int main() {
    context = preload::start();
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&capturing, CU_STREAM_NON_BLOCKING));
    recorded_by_a_node();
    recorded_by_a_capture();
}
