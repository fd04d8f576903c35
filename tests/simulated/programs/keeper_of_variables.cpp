// keeper_of_variables [HOW]: a program whose state is in its module's variables. It works, says "ready",
// reads a line, works, and says the line again, until there is none. Each time its kernel prints its count.
//
//   keeper_of_variables          as above
//   keeper_of_variables written  gives a constant its values by calls, some of them on a stream
//   keeper_of_variables handed   the same, and hands its address to a kernel
//   keeper_of_variables pointer  has a variable whose first value is another one's address
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/simulated/programs/carried.h"

namespace {

constexpr char kHead[] = R"(
.version 8.0
.target sm_90
.address_size 64

.extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 values);

.visible .global .align 4 .u32 counter = 3;
.global .align 4 .b8 table[12000];
.global .align 1 .b8 $str[10] = {99, 111, 117, 110, 116, 32, 37, 100, 10, 0};
.visible .const .align 4 .u32 steps[4] = {1, 2, 3, 4};
)";

constexpr char kPointer[] = ".visible .global .align 8 .u64 other = generic(counter);\n";
constexpr char kUse[] = "mov.u64 %rd7, other;\n ld.global.u64 %rd7, [%rd7];\n";

constexpr char kKernels[] = R"(
// counter += steps[counter % 4], which it prints; *where = table
.visible .entry count(.param .u64 where)
{
    .local .align 8 .b8 values[8];
    .reg .b32 %r<6>;
    .reg .b64 %rd<9>;
    mov.u64 %rd0, counter;
    ld.global.u32 %r0, [%rd0];
    and.b32 %r1, %r0, 3;
    mov.u64 %rd1, steps;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd1, %rd1, %rd2;
    ld.const.u32 %r2, [%rd1];
    add.u32 %r0, %r0, %r2;
    st.global.u32 [%rd0], %r0;
    ld.param.u64 %rd3, [where];
    mov.u64 %rd4, table;
    st.global.u64 [%rd3], %rd4;
    mov.u64 %rd5, values;
    st.local.u32 [%rd5], %r0;
    cvta.local.u64 %rd5, %rd5;
    mov.u64 %rd6, $str;
    cvta.global.u64 %rd6, %rd6;
    USE
    {
        .param .b64 format;
        .param .b64 list;
        .param .b32 result;
        st.param.b64 [format], %rd6;
        st.param.b64 [list], %rd5;
        call.uni (result), vprintf, (format, list);
    }
    ret;
}

// *to = *from
.visible .entry look(.param .u64 from, .param .u64 to)
{
    .reg .b32 %r<1>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd0, [from];
    ld.param.u64 %rd1, [to];
    ld.global.u32 %r0, [%rd0];
    st.global.u32 [%rd1], %r0;
    ret;
}

// (*where)[i] += counter * i: by the address that an earlier kernel has found
.visible .entry spread(.param .u64 where)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.s32 %r3, %r0, %r1, %r2;
    ld.param.u64 %rd0, [where];
    ld.global.u64 %rd1, [%rd0];
    mul.wide.u32 %rd2, %r3, 4;
    add.s64 %rd1, %rd1, %rd2;
    ld.global.u32 %r4, [counter];
    ld.global.u32 %r5, [%rd1];
    mad.lo.s32 %r5, %r4, %r3, %r5;
    st.global.u32 [%rd1], %r5;
    ret;
}
)";

constexpr unsigned kNumbers = 3000, kThreads = 100;

std::string image(bool pointer) {
    std::string text = std::string(kHead) + (pointer ? kPointer : "") + kKernels;
    const size_t use = text.find("USE");
    return text.replace(use, 3, pointer ? kUse : "");
}

struct Variables {
    CUmodule module = nullptr;
    CUfunction count = nullptr, spread = nullptr;
    CUstream stream = nullptr;
    CUdeviceptr where = 0, counter = 0, table = 0, constant = 0, source = 0;
    unsigned steps[4] = {1, 2, 3, 4};
    unsigned expected = 3, sum = 0;

    void begin(bool pointer) {
        size_t bytes = 0;
        CHECK(cuModuleLoadData(&module, image(pointer).c_str()));
        CHECK(cuModuleGetFunction(&count, module, "count"));
        CHECK(cuModuleGetFunction(&spread, module, "spread"));
        CHECK(cuMemAlloc(&where, 8));
        CHECK(cuModuleGetGlobal(&counter, &bytes, module, "counter"));
        REQUIRE(bytes == 4);
        CHECK(cuModuleGetGlobal(&table, &bytes, module, "table"));
        REQUIRE(bytes == kNumbers * 4);
        REQUIRE(cuMemFree(counter) == CUDA_ERROR_INVALID_VALUE);
    }
    // Each time to another value, by a copy from the host, a fill and a copy within the device.
    void write_constant(unsigned first) {
        size_t bytes = 0;
        if (constant == 0) {
            GO(cuModuleGetGlobal(&constant, &bytes, module, "steps"));
            GO(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
            GO(cuMemAlloc(&source, 4));
        }
        CUdeviceptr again = 0;
        GO(cuModuleGetGlobal(&again, &bytes, module, "steps"));
        REQUIRE((again == constant && bytes == sizeof steps));
        for (unsigned i = 0; i < 4; ++i) steps[i] = first + i;
        GO(cuMemcpyHtoD(constant, steps, sizeof steps));
        GO(cuMemsetD32Async(constant + 4, steps[1] = first + 10, 1, stream));
        GO(cuMemsetD32(source, steps[2] = first + 20, 1));
        GO(cuMemcpyDtoDAsync(constant + 8, source, 4, stream));
        GO(cuStreamSynchronize(stream));
        look_at_constant();
    }
    void look_at_constant() {
        unsigned found[4] = {};
        GO(cuMemcpyDtoH(found, constant, sizeof found));
        for (unsigned i = 0; i < 4; ++i) REQUIRE(found[i] == steps[i]);
    }
    void hand_over() {
        CUfunction look = nullptr;
        void* parameters[] = {&constant, &source};
        unsigned found = 0;
        GO(cuModuleGetFunction(&look, module, "look"));
        GO(cuLaunchKernel(look, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
        GO(cuMemcpyDtoH(&found, source, 4));
        REQUIRE(found == steps[0]);
    }
    void work() {
        void* parameters[] = {&where};
        expected += steps[expected & 3];
        sum += expected;
        GO(cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
        GO(cuLaunchKernel(spread, kNumbers / kThreads, 1, 1, kThreads, 1, 1, 0, nullptr, parameters,
                          nullptr));
        GO(cuCtxSynchronize());
        unsigned found = 0;
        CUdeviceptr place = 0;
        std::vector<unsigned> numbers(kNumbers);
        GO(cuMemcpyDtoH(&found, counter, 4));
        GO(cuMemcpyDtoH(&place, where, 8));
        GO(cuMemcpyDtoH(numbers.data(), table, kNumbers * 4));
        REQUIRE(found == expected);
        REQUIRE(place == table);
        for (unsigned i = 0; i < kNumbers; ++i) REQUIRE(numbers[i] == sum * i);
    }
};

}  // namespace

int main(int argc, char** arguments) {
    const std::string how = argc > 1 ? arguments[1] : "";
    preload::start();
    Variables variables;
    variables.begin(how == "pointer");
    if (how == "written" || how == "handed") variables.write_constant(5);
    if (how == "handed") variables.hand_over();
    variables.work();
    preload::say("ready");
    char line[64];
    while (std::fgets(line, sizeof line, stdin)) {
        if (how == "written") variables.look_at_constant();
        variables.work();
        // a value that a call writes, too
        GO(cuMemsetD32(variables.counter, ++variables.expected, 1));
        if (how == "written") variables.write_constant(variables.expected);
        variables.work();
        std::printf("%s", line);
        std::fflush(stdout);
    }
    GO(cuModuleUnload(variables.module));
    std::puts("CUDA_SUCCESS");
}
