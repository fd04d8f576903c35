// Launches of a kernel whose managed form comes while they are made:
//
//   swap lanes THREADS   as standard input says, a line each
//                          go        each thread launches on a stream of its own, all at once: "round N"
//                          capture   the first thread's stream captures a launch, and runs it: "captured"
//                          reload    the module is unloaded, and loaded again: "reloaded"
//                          end       the results are checked: "right"
//   swap chase ROUNDS    another module in each round, unloaded when threads have made their launches, which
//                        may be under way: "right" if each of them counts
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/preload/program.h"

namespace {

constexpr unsigned kBlocks = 24, kThreads = 32, kCount = kBlocks * kThreads, kLaunches = 3;

// at[i] = at[i] * FACTOR + what. The order of two kernels with other factors shows.
std::string kernel(const std::string& declarations, const std::string& factor) {
    return ".version 8.0\n.target sm_90\n.address_size 64\n" + declarations +
           R"(
.visible .entry step(.param .u64 at, .param .u32 what)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<3>;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.s32 %r0, %r0, %r1, %r2;
    ld.param.u64 %rd0, [at];
    mul.wide.u32 %rd1, %r0, 4;
    add.s64 %rd0, %rd0, %rd1;
    ld.param.u32 %r3, [what];
    ld.global.u32 %r4, [%rd0];
    )" + factor +
           R"(
    mad.lo.s32 %r4, %r4, %r5, %r3;
    st.global.u32 [%rd0], %r4;
    ret;
}
)";
}

const std::string kPlain = kernel("", "mov.u32 %r5, 3;");
// It uses a variable, so it has no managed form in its first run.
const std::string kWithVariable = kernel(".global .align 4 .u32 five = 5;\n", "ld.global.u32 %r5, [five];");

struct Loaded {
    explicit Loaded(const std::string& text) {
        CHECK(cuModuleLoadData(&module, text.c_str()));
        CHECK(cuModuleGetFunction(&step, module, "step"));
    }
    CUmodule module = nullptr;
    CUfunction step = nullptr;
};

CUresult launch(CUfunction step, CUstream stream, CUdeviceptr at, unsigned what) {
    void* parameters[] = {&at, &what};
    return cuLaunchKernel(step, kBlocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr);
}

struct Line {
    Line() {
        CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CHECK(cuMemAlloc(&at, kCount * 4));
        CHECK(cuMemsetD32(at, 1, kCount));
        CHECK(cuCtxSynchronize());
    }
    void step(const Loaded& plain, const Loaded& other, unsigned round) {
        for (unsigned i = 0; i < kLaunches; ++i) {
            CHECK(launch(plain.step, stream, at, round + i));
            CHECK(launch(other.step, stream, at, 1));
            wanted = (wanted * 3 + round + i) * 5 + 1;
        }
        CHECK(cuStreamSynchronize(stream));
    }
    bool right() const {
        std::vector<unsigned> found(kCount);
        CHECK(cuMemcpyDtoH(found.data(), at, kCount * 4));
        return found == std::vector<unsigned>(kCount, wanted);
    }
    CUstream stream = nullptr;
    CUdeviceptr at = 0;
    unsigned wanted = 1;
};

void capture(const Loaded& plain, Line& line) {
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    CHECK(cuStreamBeginCapture(line.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(launch(plain.step, line.stream, line.at, 7));
    CHECK(cuStreamEndCapture(line.stream, &graph));
    CHECK(cuGraphInstantiate(&executable, graph, 0));
    CHECK(cuGraphLaunch(executable, line.stream));
    CHECK(cuStreamSynchronize(line.stream));
    CHECK(cuGraphExecDestroy(executable));
    CHECK(cuGraphDestroy(graph));
    line.wanted = line.wanted * 3 + 7;
}

void lanes(CUcontext context, unsigned threads) {
    Loaded plain(kPlain), other(kWithVariable);
    std::vector<Line> lines(threads);
    std::atomic<unsigned> round{0}, begun{0}, done{0};
    std::atomic<bool> over{false};
    std::vector<std::thread> others;
    for (Line& line : lines)
        others.emplace_back([&] {
            CHECK(cuCtxSetCurrent(context));
            for (unsigned now = 1;; ++now) {
                round.wait(now - 1);
                if (over.load()) return;
                begun.fetch_add(1);
                while (begun.load() < threads * now) std::this_thread::yield();
                line.step(plain, other, now);
                done.fetch_add(1);
                done.notify_all();
            }
        });
    char word[16];
    while (std::fgets(word, sizeof word, stdin) && std::strcmp(word, "end\n") != 0) {
        if (!std::strcmp(word, "go\n")) {
            round.fetch_add(1);
            round.notify_all();
            for (unsigned now = 0; (now = done.load()) < threads * round.load();) done.wait(now);
            std::printf("round %u\n", round.load());
        } else if (!std::strcmp(word, "capture\n")) {
            capture(plain, lines[0]);
            std::printf("captured\n");
        } else {
            CHECK(cuModuleUnload(plain.module));
            plain = Loaded(kPlain);
            std::printf("reloaded\n");
        }
        std::fflush(stdout);
    }
    over.store(true);
    round.fetch_add(1);
    round.notify_all();
    for (std::thread& each : others) each.join();
    for (const Line& line : lines) REQUIRE(line.right());
}

void chase(CUcontext context, unsigned rounds) {
    std::vector<Line> lines(3);
    for (unsigned round = 0; round < rounds; ++round) {
        Loaded loaded(kPlain + "// " + std::to_string(round) + "\n");
        const unsigned launches = 1 + round;
        std::vector<std::thread> threads;
        for (Line& line : lines)
            threads.emplace_back([&] {
                CHECK(cuCtxSetCurrent(context));
                for (unsigned i = 0; i < launches; ++i) {
                    CHECK(launch(loaded.step, line.stream, line.at, i));
                    if (i % 4 == 0) CHECK(cuStreamSynchronize(line.stream));
                    line.wanted = line.wanted * 3 + i;
                }
            });
        for (std::thread& each : threads) each.join();
        CHECK(cuModuleUnload(loaded.module));
    }
    for (const Line& line : lines) REQUIRE(line.right());
}

}  // namespace

int main(int count, char** arguments) {
    REQUIRE(count == 3);
    CUcontext context = preload::start();
    const auto number = static_cast<unsigned>(std::strtoul(arguments[2], nullptr, 10));
    std::strcmp(arguments[1], "lanes") ? chase(context, number) : lanes(context, number);
    std::printf("right\n");
    return 0;
}
