// mixed ROUNDS [PAUSE_MS [BLOCKS]]: on each of three streams, kernels that can be managed and kernels that
// are launched as they are (an attribute sees to that; one that all others have does not) in a random row,
// with fills, copies and events between them. What each does depends on what all before it did; the host does
// the same and compares. Prints how many launches went as they are.
#include <time.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "tests/preload/program.h"

namespace {

// x = x * by + plus, for each of n.
constexpr char kStep[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry step(.param .u64 to, .param .u32 by, .param .u32 plus, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<9>;
    .reg .b64 %rd<3>;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.s32 %r3, %r0, %r1, %r2;
    ld.param.u32 %r4, [n];
    setp.ge.u32 %p, %r3, %r4;
    @%p bra done;
    ld.param.u64 %rd0, [to];
    mul.wide.u32 %rd1, %r3, 4;
    add.s64 %rd0, %rd0, %rd1;
    ld.param.u32 %r5, [by];
    ld.param.u32 %r6, [plus];
    ld.global.u32 %r7, [%rd0];
    mad.lo.u32 %r8, %r7, %r5, %r6;
    st.global.u32 [%rd0], %r8;
done:
    ret;
}
)";
constexpr unsigned kThreads = 64, kStreams = 3;

struct Line {  // a stream, its memory, and what should be there
    CUstream stream = nullptr;
    CUevent event = nullptr;
    CUdeviceptr memory = 0;
    std::vector<uint32_t> expected;
};

void launch(CUfunction step, Line& line, uint32_t by, uint32_t plus, bool unmanaged) {
    unsigned n = static_cast<unsigned>(line.expected.size());
    void* parameters[] = {&line.memory, &by, &plus, &n};
    CUlaunchAttribute attribute{};
    attribute.id =
        unmanaged ? CU_LAUNCH_ATTRIBUTE_PRIORITY : CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    if (!unmanaged) attribute.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config{};
    config.gridDimX = n / kThreads;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.blockDimX = kThreads;
    config.hStream = line.stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    CHECK(cuLaunchKernelEx(&config, step, parameters, nullptr));
    for (uint32_t& each : line.expected) each = each * by + plus;
}

// A part of it is filled, or copied over another one.
void move(Line& line, std::mt19937& random) {
    const size_t half = line.expected.size() / 2, count = 1 + random() % half, to = random() % half;
    const CUdeviceptr there = line.memory + 4 * to;
    const auto first = line.expected.begin(), at = first + static_cast<std::ptrdiff_t>(to);
    if (random() % 2) {
        const auto value = static_cast<unsigned>(random() % 1000);
        CHECK(cuMemsetD32Async(there, value, count, line.stream));
        std::fill_n(at, count, value);
    } else {
        const size_t from = half + random() % (half - count + 1);
        const size_t most = std::min(count, half - to);  // they do not overlap
        CHECK(cuMemcpyDtoDAsync(there, line.memory + 4 * from, 4 * most, line.stream));
        std::copy_n(first + static_cast<std::ptrdiff_t>(from), most, at);
    }
}

}  // namespace

int main(int count, char** arguments) {
    REQUIRE(count >= 2);
    const long pause = count > 2 ? std::atol(arguments[2]) : 0;
    const unsigned elements = kThreads * (count > 3 ? static_cast<unsigned>(std::atoi(arguments[3])) : 40);
    std::mt19937 random(7);
    preload::start();
    CUmodule module = nullptr;
    CUfunction step = nullptr;
    CHECK(cuModuleLoadData(&module, kStep));
    CHECK(cuModuleGetFunction(&step, module, "step"));
    std::array<Line, kStreams> lines;
    for (Line& line : lines) {
        line.expected.assign(elements, 1);
        CHECK(cuStreamCreate(&line.stream, CU_STREAM_NON_BLOCKING));
        CHECK(cuEventCreate(&line.event, CU_EVENT_DISABLE_TIMING));
        CHECK(cuMemAlloc(&line.memory, 4 * elements));
        CHECK(cuMemsetD32Async(line.memory, 1, elements, line.stream));
    }
    int unmanaged = 0;
    for (int round = std::atoi(arguments[1]); round > 0; --round) {
        Line& line = lines[random() % kStreams];
        for (unsigned i = random() % 6; i > 0; --i) {
            const bool as_it_is = random() % 2 == 0;
            unmanaged += as_it_is;
            launch(step, line, random() % 100, random() % 100, as_it_is);
            if (random() % 3 == 0) move(line, random);
        }
        if (random() % 3 == 0) {  // one line takes over what another has
            Line& other = lines[random() % kStreams];
            CHECK(cuEventRecord(line.event, line.stream));
            CHECK(cuStreamWaitEvent(other.stream, line.event, 0));
            CHECK(cuMemcpyDtoDAsync(other.memory, line.memory, 4 * elements, other.stream));
            CHECK(cuEventRecord(other.event, other.stream));
            CHECK(cuStreamWaitEvent(line.stream, other.event, 0));
            other.expected = std::vector<uint32_t>(line.expected);
        }
        if (random() % 8 == 0) REQUIRE(cuStreamQuery(line.stream) != CUDA_ERROR_INVALID_HANDLE);
        const timespec rest{pause / 1000, pause % 1000 * 1'000'000};
        nanosleep(&rest, nullptr);
    }
    for (Line& line : lines) {
        std::vector<uint32_t> found(elements);
        CHECK(cuMemcpyDtoHAsync(found.data(), line.memory, 4 * elements, line.stream));
        CHECK(cuStreamSynchronize(line.stream));
        REQUIRE(found == line.expected);
    }
    std::printf("%d launches as they are\n", unmanaged);
}
