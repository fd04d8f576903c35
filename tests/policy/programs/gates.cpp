// gates BLOCKS THREADS SHARED_BYTES: a kernel whose blocks wait until they are let through, one after the
// other, as lines on stdin say.
//
// Without arguments it loads nothing, and waits for the end of stdin; answers "started" once.
//
//     launch      of so many blocks, with all gates shut if none is waited for; answers "launched"
//     record      an event, behind what was launched; answers "recorded"
//     open N      block i may end if i < N; answers "opened"
//     begun N     until N blocks have begun; answers "begun"
//     hold        the stream waits for a value from here on; answers "held"
//     release     writes that value; answers "released"
//     block       a kernel is launched that waits for that value; answers "blocked"
//     graph       the same as "hold" and "launch", as a graph; answers "launched"
//     follow      launches go to another stream from now on, which waits by an event for what is in this one;
//     answers
//                 "followed"
//     other       launches go to another stream from now on; answers "switched"
//     wait        until the launches have ended; answers "ended". Each block of each ran once
//     load        the code a second time; answers "loaded"
//     unload      that; answers "unloaded"
//
// So what stands where at which moment is decided by the lines of the input, and by no clock.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

#include "tests/preload/program.h"

namespace {

// Its loads are not volatile: then its blocks might wait for each other, and have no managed form. This
// device reads memory at each of them.
constexpr char kGate[] = R"(
.version 8.0
.target sm_90
.address_size 64
.extern .shared .align 4 .b8 room[];
.visible .entry gate(.param .u64 open, .param .u64 counts)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    mov.u32 %r0, %ctaid.x;
    ld.param.u64 %rd0, [open];
    mov.u32 %r2, %tid.x;
    setp.ne.u32 %p, %r2, 0;
    @%p bra again;
    red.global.add.u32 [%rd0+4], 1;
again:
    ld.global.u32 %r1, [%rd0];
    setp.lt.u32 %p, %r0, %r1;
    @%p bra through;
    nanosleep.u32 5000;
    bra again;
through:
    setp.ne.u32 %p, %r2, 0;
    @%p bra done;
    ld.param.u64 %rd1, [counts];
    mul.wide.u32 %rd2, %r0, 4;
    add.s64 %rd3, %rd1, %rd2;
    red.global.add.u32 [%rd3], 1;
done:
    ret;
}

// Waits for the value.
.visible .entry block(.param .u64 released)
{
    .reg .pred %p;
    .reg .b32 %r;
    .reg .b64 %rd;
    ld.param.u64 %rd, [released];
again:
    nanosleep.u32 5000;
    ld.global.u32 %r, [%rd];
    setp.eq.u32 %p, %r, 0;
    @%p bra again;
    ret;
}
)";

void launch_captured(CUstream captures, CUstream stream) {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CHECK(cuStreamEndCapture(captures, &graph));
    CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK(cuGraphLaunch(exec, stream));
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphDestroy(graph));
    CHECK(cuStreamDestroy(captures));
}

}  // namespace

int main(int count, char** arguments) {
    if (count == 1) {
        preload::start();
        preload::say("started");
        while (std::cin.get() != EOF) continue;
        return 0;
    }
    REQUIRE(count == 4);
    unsigned blocks = static_cast<unsigned>(std::atoi(arguments[1])),
             threads = static_cast<unsigned>(std::atoi(arguments[2])),
             shared = static_cast<unsigned>(std::atoi(arguments[3]));
    preload::start();
    CUmodule module = nullptr, again = nullptr;
    CUfunction gate = nullptr, block = nullptr;
    CUdeviceptr open_there = 0;
    void* words = nullptr;  // the gates, how many blocks have begun, and how often each ran
    CHECK(cuModuleLoadData(&module, kGate));
    CHECK(cuModuleGetFunction(&gate, module, "gate"));
    CHECK(cuModuleGetFunction(&block, module, "block"));
    CHECK(
        cuFuncSetAttribute(gate, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(shared)));
    CHECK(cuMemHostAlloc(&words, 4 * (size_t{blocks} + 2), CU_MEMHOSTALLOC_DEVICEMAP));
    CHECK(cuMemHostGetDevicePointer(&open_there, words, 0));
    volatile uint32_t* const open = static_cast<uint32_t*>(words);
    volatile uint32_t* const begun = open + 1;
    uint32_t* const counts = static_cast<uint32_t*>(words) + 2;
    CUdeviceptr counts_there = open_there + 8;
    CUevent event = nullptr;
    CUstream stream = nullptr;
    void* value = nullptr;
    CUdeviceptr value_there = 0;
    unsigned launches = 0;  // since the last wait
    CHECK(cuMemHostAlloc(&value, 4, CU_MEMHOSTALLOC_DEVICEMAP));
    CHECK(cuMemHostGetDevicePointer(&value_there, value, 0));
    volatile uint32_t* const released = static_cast<uint32_t*>(value);
    *released = 0;
    CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (std::string line; std::getline(std::cin, line);) {
        if (line == "launch" || line == "graph") {
            if (launches++ == 0) {
                *open = 0;
                *begun = 0;
                for (unsigned i = 0; i < blocks; ++i) counts[i] = 0;
            }
            void* parameters[] = {&open_there, &counts_there};
            CUstream captures = nullptr, to = stream;
            if (line == "graph") {
                *released = 0;
                CHECK(cuStreamCreate(&captures, CU_STREAM_NON_BLOCKING));
                CHECK(cuStreamBeginCapture(captures, CU_STREAM_CAPTURE_MODE_RELAXED));
                CHECK(cuStreamWaitValue32(captures, value_there, 1, CU_STREAM_WAIT_VALUE_GEQ));
                to = captures;
            }
            CHECK(cuLaunchKernel(gate, blocks, 1, 1, threads, 1, 1, shared, to, parameters, nullptr));
            if (captures) launch_captured(captures, stream);
            std::printf("launched\n");
        } else if (line == "record") {
            CHECK(cuEventRecord(event, nullptr));
            std::printf("recorded\n");
        } else if (line.rfind("begun ", 0) == 0) {
            while (*begun < static_cast<uint32_t>(std::atoi(line.c_str() + 6))) std::this_thread::yield();
            std::printf("begun\n");
        } else if (line == "hold") {
            *released = 0;
            CHECK(cuStreamWaitValue32(stream, value_there, 1, CU_STREAM_WAIT_VALUE_GEQ));
            std::printf("held\n");
        } else if (line == "block") {
            *released = 0;
            void* parameters[] = {&value_there};
            CHECK(cuLaunchKernel(block, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
            std::printf("blocked\n");
        } else if (line == "release") {
            *released = 1;
            std::printf("released\n");
        } else if (line == "follow") {
            CHECK(cuEventRecord(event, stream));
            CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
            CHECK(cuStreamWaitEvent(stream, event, 0));
            std::printf("followed\n");
        } else if (line == "other") {
            CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
            std::printf("switched\n");
        } else if (line == "load") {
            CHECK(cuModuleLoadData(&again, kGate));
            std::printf("loaded\n");
        } else if (line == "unload") {
            CHECK(cuModuleUnload(again));
            std::printf("unloaded\n");
        } else if (line == "wait") {
            CHECK(cuCtxSynchronize());
            for (unsigned i = 0; i < blocks; ++i) REQUIRE(counts[i] == launches);
            launches = 0;
            std::printf("ended\n");
        } else {
            REQUIRE(line.rfind("open ", 0) == 0);
            *open = static_cast<uint32_t>(std::atoi(line.c_str() + 5));
            std::printf("opened\n");
        }
        std::fflush(stdout);
    }
    CHECK(cuModuleUnload(module));
}
