// survivor [HOW]: a program that a takeover has to carry: its sums are in device memory and in pinned memory.
// It adds, says "ready", reads a line, goes on, and says the line again, until there is none. Its kernels use
// no variable.
//
//   survivor        as above
//   survivor steady  makes and frees nothing after the first "ready"
//   survivor late   after the first line: a kernel that does not end; after the second one it goes on
//   survivor busy   leaves a kernel under way that does not end, before it says "ready"
//   survivor array  has an array
//   survivor long   leaves a kernel of a second under way, and waits for it after the first line
//   survivor several  after the first line: several launches, whose end it awaits; after the second one: one
//                     more, likewise
//   survivor moves  after the first line: a kernel of a second, a copy of what it computes, and a fill of
//   that
//   survivor apart  after the first line: two kernels of a second with an event behind each, of which each
//                   writes other memory than it reads; it waits for them after the second line
//   survivor back   the same, but the second one writes what the first one reads
//   survivor in_place  the same with kernels that read what they write
//   survivor beyond    after the first line: a kernel that writes far behind its memory
//   survivor astray    the same with one that also reads its memory
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/simulated/programs/carried.h"

namespace {

constexpr char kImage[] = R"(
.version 8.0
.target sm_90
.address_size 64

// to[i] += i + step
.visible .entry accumulate(.param .u64 to, .param .u32 step, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.s32 %r3, %r0, %r1, %r2;
    ld.param.u32 %r4, [n];
    setp.ge.u32 %p, %r3, %r4;
    @%p bra done;
    ld.param.u64 %rd0, [to];
    ld.param.u32 %r5, [step];
    mul.wide.u32 %rd1, %r3, 4;
    add.s64 %rd0, %rd0, %rd1;
    ld.global.u32 %r6, [%rd0];
    add.u32 %r6, %r6, %r3;
    add.u32 %r6, %r6, %r5;
    st.global.u32 [%rd0], %r6;
done:
    ret;
}

// The same to each thread's number, `rounds` times.
.visible .entry slowly(.param .u64 to, .param .u32 rounds)
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.s32 %r3, %r0, %r1, %r2;
    ld.param.u32 %r4, [rounds];
    ld.param.u64 %rd0, [to];
    mul.wide.u32 %rd1, %r3, 4;
    add.s64 %rd0, %rd0, %rd1;
    ld.global.u32 %r6, [%rd0];
again:
    add.u32 %r6, %r6, %r3;
    sub.u32 %r4, %r4, 1;
    setp.ne.u32 %p, %r4, 0;
    @%p bra again;
    st.global.u32 [%rd0], %r6;
    ret;
}

// to[i] = from[i] + rounds * i
.visible .entry slow_copy(.param .u64 from, .param .u64 to, .param .u32 rounds)
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.s32 %r3, %r0, %r1, %r2;
    ld.param.u32 %r4, [rounds];
    ld.param.u64 %rd0, [from];
    ld.param.u64 %rd1, [to];
    mul.wide.u32 %rd2, %r3, 4;
    add.s64 %rd0, %rd0, %rd2;
    add.s64 %rd1, %rd1, %rd2;
    ld.global.u32 %r6, [%rd0];
again:
    add.u32 %r6, %r6, %r3;
    sub.u32 %r4, %r4, 1;
    setp.ne.u32 %p, %r4, 0;
    @%p bra again;
    st.global.u32 [%rd1], %r6;
    ret;
}

// Reads *to as well.
.visible .entry astray(.param .u64 to)
{
    .reg .b32 %r;
    .reg .b64 %rd;
    ld.param.u64 %rd, [to];
    ld.global.u32 %r, [%rd];
    add.s64 %rd, %rd, 17592186044416;
    st.global.u32 [%rd], %r;
    ret;
}

// Writes far behind *to.
.visible .entry beyond(.param .u64 to)
{
    .reg .b32 %r;
    .reg .b64 %rd;
    ld.param.u64 %rd, [to];
    add.s64 %rd, %rd, 17592186044416;
    mov.u32 %r, 1;
    st.global.u32 [%rd], %r;
    ret;
}

// By what it reads it cannot be executed again.
.visible .entry endless()
{
    .reg .b32 %r;
again:
    mov.u32 %r, %clock;
    bra again;
}
)";

constexpr unsigned kNumbers = 3000;
constexpr unsigned kBlocks = 4096, kThreads = 64, kRounds = 400;  // of the long kernel

struct Program {
    CUfunction accumulate = nullptr;
    CUstream streams[2] = {};
    CUevent event = nullptr;
    CUdeviceptr small = 0, large = 0, pooled = 0;
    unsigned* pinned = nullptr;
    unsigned step = 0, expected = 0;  // of element 0: the sum of all steps

    void begin(CUmodule module) {
        CHECK(cuModuleGetFunction(&accumulate, module, "accumulate"));
        CHECK(cuStreamCreate(&streams[0], CU_STREAM_NON_BLOCKING));
        CHECK(cuStreamCreate(&streams[1], CU_STREAM_DEFAULT));
        CHECK(cuEventCreate(&event, CU_EVENT_DEFAULT));
        CHECK(cuMemAlloc(&small, kNumbers * 4));
        CHECK(cuMemAlloc(&large, 5u << 20));
        CHECK(cuMemAllocAsync(&pooled, kNumbers * 4, streams[0]));
        CHECK(cuMemAllocHost(reinterpret_cast<void**>(&pinned), kNumbers * 4));
        CHECK(cuMemsetD32(small, 0, kNumbers));
        CHECK(cuMemsetD32(large, 0, (5u << 20) / 4));
        CHECK(cuMemsetD32(pooled, 0, kNumbers));
        std::memset(pinned, 0, kNumbers * 4);
        CHECK(cuCtxSynchronize());
    }
    CUresult add(CUdeviceptr to, CUstream stream) {
        unsigned n = kNumbers;
        void* parameters[] = {&to, &step, &n};
        return cuLaunchKernel(accumulate, (n + 127) / 128, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr);
    }
    void work() {
        ++step;
        expected += step;
        GO(add(small, streams[0]));
        GO(cuEventRecord(event, streams[0]));
        GO(cuStreamWaitEvent(streams[1], event, 0));
        GO(add(large, streams[1]));
        GO(add(pooled, nullptr));
        GO(add(reinterpret_cast<CUdeviceptr>(pinned), streams[1]));
        GO(cuCtxSynchronize());
    }
    // Launches that cannot be executed twice, and nothing behind which they would not be executed again.
    void add_in_a_row() {
        for (int i = 0; i < 5; ++i) {
            ++step;
            expected += step;
            for (CUdeviceptr each : {small, large, pooled, reinterpret_cast<CUdeviceptr>(pinned)})
                GO(add(each, streams[0]));
        }
        GO(cuStreamSynchronize(streams[0]));
    }
    // One launch, whose end it awaits, and the same for the other numbers.
    void add_one() {
        ++step;
        expected += step;
        GO(add(small, streams[0]));
        GO(cuStreamSynchronize(streams[0]));
        for (CUdeviceptr each : {large, pooled, reinterpret_cast<CUdeviceptr>(pinned)})
            GO(add(each, streams[0]));
        GO(cuStreamSynchronize(streams[0]));
    }
    void look() const {
        std::vector<unsigned> found(kNumbers);
        for (CUdeviceptr each : {small, large, pooled, reinterpret_cast<CUdeviceptr>(pinned)}) {
            GO(cuMemcpyDtoH(found.data(), each, kNumbers * 4));
            for (unsigned i = 0; i < kNumbers; ++i) REQUIRE(found[i] == expected + step * i);
        }
        for (unsigned i = 0; i < kNumbers; ++i) REQUIRE(pinned[i] == expected + step * i);
    }
};

void compute_slowly(CUmodule module, CUdeviceptr numbers, CUstream stream) {
    CUfunction slowly = nullptr;
    unsigned rounds = kRounds;
    void* parameters[] = {&numbers, &rounds};
    CHECK(cuModuleGetFunction(&slowly, module, "slowly"));
    CHECK(cuLaunchKernel(slowly, kBlocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr));
}

void look_at_slow(CUdeviceptr numbers) {
    std::vector<unsigned> found(kBlocks * kThreads);
    GO(cuMemcpyDtoH(found.data(), numbers, kBlocks * kThreads * 4));
    for (unsigned i = 0; i < kBlocks * kThreads; ++i) REQUIRE(found[i] == kRounds * i);  // once each
}

// Out of order, or twice, and the numbers are others.
void move_behind_a_kernel(CUmodule module, CUdeviceptr numbers, CUstream stream) {
    const CUdeviceptr copy = numbers + kBlocks * kThreads * 4;
    GO(cuMemsetD32(numbers, 0, 2 * kBlocks * kThreads));
    GO(cuCtxSynchronize());
    compute_slowly(module, numbers, stream);
    GO(cuMemcpyDtoDAsync(copy, numbers, kBlocks * kThreads * 4, stream));
    GO(cuMemsetD32Async(numbers, 5, kBlocks * kThreads, stream));
    GO(cuStreamSynchronize(stream));
    look_at_slow(copy);
    std::vector<unsigned> found(kBlocks * kThreads);
    GO(cuMemcpyDtoH(found.data(), numbers, kBlocks * kThreads * 4));
    for (const unsigned each : found) REQUIRE(each == 5);
}

// Two launches in a row, with an event behind each, from part to part of its memory.
struct Apart {
    static constexpr unsigned kTurns = 150;  // a second or so
    CUdeviceptr parts[3] = {};
    CUevent events[2] = {};

    void begin(CUmodule module, CUstream stream, const std::string& how) {
        CUfunction copy = nullptr;
        unsigned rounds = kTurns;
        GO(cuModuleGetFunction(&copy, module, "slow_copy"));
        for (CUdeviceptr& part : parts) GO(cuMemAlloc(&part, kBlocks * kThreads * 4));
        if (how == "back") parts[2] = parts[0];
        if (how == "in_place") parts[1] = parts[2] = parts[0];
        for (CUevent& event : events) GO(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
        GO(cuMemsetD32(parts[0], 3, kBlocks * kThreads));
        GO(cuCtxSynchronize());
        for (int i = 0; i < 2; ++i) {
            void* parameters[] = {&parts[i], &parts[i + 1], &rounds};
            GO(cuLaunchKernel(copy, kBlocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr));
            GO(cuEventRecord(events[i], stream));
        }
    }
    void look() {
        std::vector<unsigned> found(kBlocks * kThreads);
        GO(cuEventSynchronize(events[1]));
        GO(cuEventQuery(events[0]));
        for (unsigned turn = 1; turn < 3; ++turn) {
            GO(cuMemcpyDtoH(found.data(), parts[turn], kBlocks * kThreads * 4));
            for (unsigned i = 0; i < kBlocks * kThreads; ++i) REQUIRE(found[i] == 3 + turn * kTurns * i);
        }
    }
};

void never_end(CUfunction endless, CUstream stream) {
    GO(cuLaunchKernel(endless, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
    REQUIRE(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
}

// What it makes from now on lies beside what it had.
void make_more(const Program& program) {
    CUdeviceptr more = 0;
    GO(cuMemAlloc(&more, 4096));
    GO(cuMemsetD32(more, 7, 1024));
    program.look();
    GO(cuMemFree(more));
}

void write_beyond(CUmodule module, const char* name, CUdeviceptr memory) {
    CUfunction beyond = nullptr;
    void* parameters[] = {&memory};
    CHECK(cuModuleGetFunction(&beyond, module, name));
    GO(cuLaunchKernel(beyond, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
    GO(cuCtxSynchronize());
}

}  // namespace

int main(int count, char** arguments) {
    const std::string how = count > 1 ? arguments[1] : "";
    preload::start();
    CUmodule module = nullptr;
    CHECK(cuModuleLoadData(&module, kImage));
    Program program;
    program.begin(module);
    program.work();
    program.look();
    if (how == "array") {
        CUarray array = nullptr;
        CUDA_ARRAY_DESCRIPTOR shape{64, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1};
        CHECK(cuArrayCreate(&array, &shape));
    }
    CUfunction endless = nullptr;
    CHECK(cuModuleGetFunction(&endless, module, "endless"));
    if (how == "busy") never_end(endless, program.streams[0]);
    bool late = how == "late", several = how == "several";
    CUdeviceptr numbers = 0;
    if (how == "long") {
        CHECK(cuMemAlloc(&numbers, kBlocks * kThreads * 4));
        CHECK(cuMemsetD32(numbers, 0, kBlocks * kThreads));
        CHECK(cuCtxSynchronize());
        compute_slowly(module, numbers, program.streams[0]);
    }
    Apart apart;
    if (how == "moves") CHECK(cuMemAlloc(&numbers, 2 * kBlocks * kThreads * 4));
    preload::say("ready");
    char line[64];
    while (std::fgets(line, sizeof line, stdin)) {
        if (late) {
            never_end(endless, program.streams[0]);
            preload::say("begun");
            late = false;
            continue;
        }
        if (several) {
            program.add_in_a_row();
            preload::say("begun");
            several = false;
            continue;
        }
        if (how == "several") {
            program.add_one();
        } else if (how == "moves") {
            move_behind_a_kernel(module, numbers, program.streams[0]);
        } else if (how == "apart" || how == "back" || how == "in_place") {
            if (!apart.parts[0]) {
                apart.begin(module, program.streams[0], how);
                preload::say("begun");
                continue;
            }
            apart.look();
        } else if (how == "beyond" || how == "astray") {
            write_beyond(module, arguments[1], program.small);
        } else if (numbers) {
            GO(cuStreamSynchronize(program.streams[0]));
            look_at_slow(numbers);
        }
        program.work();
        program.look();
        if (how != "steady") make_more(program);
        std::printf("%s", line);
        std::fflush(stdout);
    }
    std::puts("CUDA_SUCCESS");
}
