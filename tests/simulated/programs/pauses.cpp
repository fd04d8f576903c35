// pauses WHAT: programs whose memory leaves the device and comes back.
//
//   pauses work       computes on 32 MiB, on many small allocations and on blocks of a pool, round after
//                     round, until it may read a line; then every word has to be right
//   pauses cells      has the same memory, and does nothing but a round for each line that it reads: "right"
//   pauses hold MIB   allocates so much, says whether that went well and how much is free, and reads a line
#include <poll.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "tests/preload/program.h"

namespace {

// to[i * kApart] += i + step
constexpr char kAccumulate[] = R"(
.version 8.0
.target sm_90
.address_size 64

.visible .entry accumulate(.param .u64 to, .param .u32 step, .param .u32 apart)
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.s32 %r3, %r0, %r1, %r2;
    ld.param.u32 %r4, [apart];
    mul.lo.u32 %r4, %r4, %r3;
    ld.param.u64 %rd0, [to];
    ld.param.u32 %r5, [step];
    mul.wide.u32 %rd1, %r4, 4;
    add.s64 %rd0, %rd0, %rd1;
    ld.global.u32 %r6, [%rd0];
    add.u32 %r6, %r6, %r3;
    add.u32 %r6, %r6, %r5;
    st.global.u32 [%rd0], %r6;
    ret;
}
)";

constexpr unsigned kWords = 8u << 20, kBlocks = 64, kThreads = 128, kApart = kWords / (kBlocks * kThreads);
constexpr unsigned kSmall = 40, kSmallWords = 1500, kPooledWords = 800'000;

bool told_to_end() {
    pollfd input{0, POLLIN, 0};
    return poll(&input, 1, 0) > 0;
}

struct Work {
    CUfunction accumulate = nullptr;
    CUstream stream = nullptr;
    CUdeviceptr large = 0, pooled = 0, small[kSmall] = {};
    std::vector<unsigned> expected = std::vector<unsigned>(kWords);
    unsigned round = 0;

    void begin(CUmodule module) {
        CHECK(cuModuleGetFunction(&accumulate, module, "accumulate"));
        CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        for (CUdeviceptr& each : small) CHECK(cuMemAlloc(&each, kSmallWords * 4));
        CHECK(cuMemAlloc(&large, uint64_t{kWords} * 4));
        CHECK(cuMemAllocAsync(&pooled, kPooledWords * 4, stream));
        for (unsigned i = 0; i < kWords; ++i) expected[i] = i * 2654435761u;
        CHECK(cuMemcpyHtoD(large, expected.data(), uint64_t{kWords} * 4));
    }
    void go() {
        ++round;
        unsigned apart = kApart;
        void* parameters[] = {&large, &round, &apart};
        CHECK(cuLaunchKernel(accumulate, kBlocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr));
        for (unsigned i = 0; i < kBlocks * kThreads; ++i) expected[i * kApart] += i + round;
        for (unsigned i = 0; i < kSmall; ++i)
            CHECK(cuMemsetD32Async(small[i], round + i, kSmallWords, stream));
        CUdeviceptr passing = 0;
        CHECK(cuMemAllocAsync(&passing, kPooledWords * 4, stream));
        CHECK(cuMemsetD32Async(passing, ~round, kPooledWords, stream));
        CHECK(cuMemcpyDtoDAsync(pooled, passing, kPooledWords * 4, stream));
        CHECK(cuMemFreeAsync(passing, stream));
        if (round % 4 == 0) CHECK(cuStreamSynchronize(stream));
    }
    static void look(CUdeviceptr at, const std::vector<unsigned>& wanted) {
        std::vector<unsigned> found(wanted.size());
        CHECK(cuMemcpyDtoH(found.data(), at, found.size() * 4));
        REQUIRE(found == wanted);
    }
    void look() {
        CHECK(cuStreamSynchronize(stream));
        look(large, expected);
        look(pooled, std::vector<unsigned>(kPooledWords, ~round));
        for (unsigned i = 0; i < kSmall; ++i) look(small[i], std::vector<unsigned>(kSmallWords, round + i));
    }
};

void work() {
    CUmodule module = nullptr;
    CHECK(cuModuleLoadData(&module, kAccumulate));
    Work work;
    work.begin(module);
    work.go();
    work.look();
    preload::say("ready");
    while (!told_to_end()) work.go();
    work.look();
    preload::say("right");
}

void cells() {
    CUmodule module = nullptr;
    CHECK(cuModuleLoadData(&module, kAccumulate));
    Work work;
    work.begin(module);
    work.go();
    work.look();
    preload::say("ready");
    for (std::string line; std::getline(std::cin, line) && line != "end";) {
        work.go();
        work.look();
        preload::say("right");
    }
}

void hold(uint64_t bytes) {
    CUdeviceptr memory = 0;
    size_t free = 0, total = 0;
    const CUresult status = bytes ? cuMemAlloc(&memory, bytes) : CUDA_SUCCESS;
    CHECK(cuMemGetInfo(&free, &total));
    preload::say((std::string(preload::name_of(status)) + " " + std::to_string(free >> 20)).c_str());
    std::getchar();
}

}  // namespace

int main(int count, char** arguments) {
    preload::start();
    const std::string what = count > 1 ? arguments[1] : "";
    if (what == "work") work();
    if (what == "cells") cells();
    if (what == "hold") hold(std::strtoull(arguments[2], nullptr, 10) << 20);
}
