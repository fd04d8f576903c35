// Thread-instructions a second of the whole simulator: the interpreter under the machine, as the driver runs
// them, in one thread. One line a kernel; the last one is all of them together.
//
//   bench_simulator [SECONDS_EACH]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "rewriter/ptx/parser.h"
#include "runtime/device/simulated/driver/kernel_grid.h"

using namespace smt::runtime::device;
using namespace smt::runtime::device::simulated;

namespace {

constexpr char kPtx[] = R"(
.version 8.0
.target sm_90
.address_size 64

// Float arithmetic, eight chains.
.visible .entry arithmetic(.param .u32 rounds, .param .u64 data)
{
    .reg .pred %p;
    .reg .b32 %r<2>;
    .reg .f32 %f<10>;
    .reg .b64 %rd;
    ld.param.u32 %r0, [rounds];
    mov.f32 %f8, 0f3F000000;
    mov.f32 %f0, 0f3F800000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
    mov.f32 %f4, %f0; mov.f32 %f5, %f0; mov.f32 %f6, %f0; mov.f32 %f7, %f0;
again:
    fma.rn.f32 %f0, %f0, %f8, %f8; fma.rn.f32 %f1, %f1, %f8, %f8;
    fma.rn.f32 %f2, %f2, %f8, %f8; fma.rn.f32 %f3, %f3, %f8, %f8;
    fma.rn.f32 %f4, %f4, %f8, %f8; fma.rn.f32 %f5, %f5, %f8, %f8;
    fma.rn.f32 %f6, %f6, %f8, %f8; fma.rn.f32 %f7, %f7, %f8, %f8;
    sub.s32 %r0, %r0, 1;
    setp.gt.s32 %p, %r0, 0;
    @%p bra again;
    ret;
}

// Loads, address arithmetic, stores: coalesced.
.visible .entry stream(.param .u32 rounds, .param .u64 data)
{
    .reg .pred %p;
    .reg .b32 %r<5>;
    .reg .f32 %f<3>;
    .reg .b64 %rd<3>;
    ld.param.u32 %r0, [rounds];
    ld.param.u64 %rd0, [data];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %rd1, %r4, 4;
    add.s64 %rd2, %rd0, %rd1;
again:
    ld.global.f32 %f0, [%rd2];
    add.f32 %f1, %f0, 0f3F800000;
    st.global.f32 [%rd2], %f1;
    sub.s32 %r0, %r0, 1;
    setp.gt.s32 %p, %r0, 0;
    @%p bra again;
    ret;
}

// Half of each warp takes one way, half the other, and they meet again.
.visible .entry diverge(.param .u32 rounds, .param .u64 data)
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    ld.param.u32 %r0, [rounds];
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 1;
    setp.eq.u32 %p1, %r2, 0;
again:
    @%p1 bra even;
    add.s32 %r1, %r1, 3;
    xor.b32 %r1, %r1, %r0;
    bra meet;
even:
    mul.lo.s32 %r1, %r1, 5;
    add.s32 %r1, %r1, 7;
meet:
    sub.s32 %r0, %r0, 1;
    setp.gt.s32 %p0, %r0, 0;
    @%p0 bra again;
    ret;
}

// Shared memory and barriers.
.visible .entry exchange(.param .u32 rounds, .param .u64 data)
{
    .shared .align 4 .b8 held[1024];
    .reg .pred %p;
    .reg .b32 %r<7>;
    ld.param.u32 %r0, [rounds];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, held;
    add.s32 %r4, %r3, %r2;
    xor.b32 %r5, %r2, 128;
    add.s32 %r5, %r3, %r5;
again:
    st.shared.u32 [%r4], %r1;
    bar.sync 0;
    ld.shared.u32 %r6, [%r5];
    add.s32 %r1, %r1, %r6;
    bar.sync 0;
    sub.s32 %r0, %r0, 1;
    setp.gt.s32 %p, %r0, 0;
    @%p bra again;
    ret;
}

// Blocks of a few instructions: what it takes to begin and to end one.
.visible .entry begin(.param .u32 rounds, .param .u64 data)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd0, [data];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %rd1, %r0, 4;
    add.s64 %rd2, %rd0, %rd1;
    st.global.u32 [%rd2], %r0;
    ret;
}
)";

constexpr unsigned kBlocks = 128, kThreads = 256;

struct Count {
    double instructions = 0, warp_instructions = 0, seconds = 0, cycles = 0;
};

Count run(Module& module, Memory& memory, const char* name, uint64_t data, double seconds) {
    auto decoded = module.kernel(name);
    if (auto* problem = std::get_if<LoadError>(&decoded)) {
        std::fprintf(stderr, "%s: line %d: %s\n", name, problem->line, problem->message.c_str());
        std::exit(1);
    }
    const DecodedKernel* kernel = std::get<const DecodedKernel*>(decoded);
    Machine machine({});
    OrderedJournal journal;
    const auto loaded = std::make_shared<LoadedModule>();  // whose `unloaded` a grid reads at its end
    LaunchSurroundings surroundings{memory, journal, machine};
    Count count;
    const std::clock_t start = std::clock();  // of the processor: others may run here too
    do {
        hosted::Launch launch;
        launch.grid[0] = kBlocks;
        launch.block[0] = kThreads;
        launch.parameters.resize(kernel->parameter_bytes);
        const unsigned rounds = 200;
        std::memcpy(launch.parameters.data(), &rounds, sizeof rounds);
        std::memcpy(launch.parameters.data() + 8, &data, sizeof data);
        launch.code = std::make_shared<LaunchCode>(LaunchCode{loaded, kernel, kernel->registers, {}});
        machine.launch(make_kernel_grid(surroundings, launch, nullptr, [&](const GridResult& result) {
            count.instructions += static_cast<double>(result.thread_instructions);
            count.warp_instructions += static_cast<double>(result.instructions);
        }));
        while (machine.advance()) {
        }
        count.seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    } while (count.seconds < seconds);
    count.cycles = static_cast<double>(machine.now());
    return count;
}

void print(const char* name, const Count& count) {
    std::printf(
        "%-12s %8.1f million thread-instructions/s  %6.2f million warp-instructions/s  %6.1f ms a simulated "
        "microsecond\n",
        name, count.instructions / count.seconds / 1e6, count.warp_instructions / count.seconds / 1e6,
        count.seconds * 1e3 / (count.cycles / 1980));
}

}  // namespace

int main(int count, char** arguments) {
    const double seconds = count > 1 ? std::atof(arguments[1]) : 2;
    Memory memory;
    auto parsed = smt::ptx::parse(kPtx);
    if (auto* problem = std::get_if<smt::ptx::Diagnostic>(&parsed)) {
        std::fprintf(stderr, "%s\n", smt::ptx::to_string(*problem).c_str());
        return 1;
    }
    std::vector<smt::ptx::Module> parts;
    parts.push_back(std::move(std::get<smt::ptx::Module>(parsed)));
    auto linked = Module::load(std::move(parts), memory);
    if (auto* problem = std::get_if<LoadError>(&linked)) {
        std::fprintf(stderr, "line %d: %s\n", problem->line, problem->message.c_str());
        return 1;
    }
    Module& module = *std::get<std::unique_ptr<Module>>(linked);
    const uint64_t data = memory.obtain(uint64_t{4} * kBlocks * kThreads);
    Count all;
    for (const char* name : {"arithmetic", "stream", "diverge", "exchange", "begin"}) {
        const Count one = run(module, memory, name, data, seconds);
        print(name, one);
        all.instructions += one.instructions, all.warp_instructions += one.warp_instructions;
        all.seconds += one.seconds, all.cycles += one.cycles;
    }
    print("together", all);
}
