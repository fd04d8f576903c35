// A captured graph of copies and kernels, launched again and again; a graph made by hand; and a linked image.
#include <vector>

#include "tests/preload/program.h"
#include "tests/simulated/programs/kernels.h"

namespace {

constexpr unsigned kCount = 1024;
constexpr char kCaller[] = R"(
.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b32 result) twice (.param .b32 value);
.visible .entry call_twice(.param .u64 to)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd;
    {
        .param .b32 value;
        .param .b32 result;
        mov.u32 %r0, 21;
        st.param.b32 [value], %r0;
        call.uni (result), twice, (value);
        ld.param.b32 %r1, [result];
    }
    ld.param.u64 %rd, [to];
    st.global.u32 [%rd], %r1;
    ret;
}
)";
constexpr char kCallee[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .func (.param .b32 result) twice (.param .b32 value)
{
    .reg .b32 %r<2>;
    ld.param.b32 %r0, [value];
    add.s32 %r1, %r0, %r0;
    st.param.b32 [result], %r1;
    ret;
}
)";

void link() {
    CUlinkState state = nullptr;
    void* image = nullptr;
    size_t bytes = 0;
    CHECK(cuLinkCreate(0, nullptr, nullptr, &state));
    CHECK(cuLinkAddData(state, CU_JIT_INPUT_PTX, const_cast<char*>(kCaller), sizeof kCaller, "caller", 0,
                        nullptr, nullptr));
    CHECK(cuLinkAddData(state, CU_JIT_INPUT_PTX, const_cast<char*>(kCallee), sizeof kCallee, "callee", 0,
                        nullptr, nullptr));
    CHECK(cuLinkComplete(state, &image, &bytes));
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CHECK(cuModuleLoadData(&module, image));
    CHECK(cuLinkDestroy(state));
    CHECK(cuModuleGetFunction(&function, module, "call_twice"));
    CUdeviceptr to = 0;
    unsigned answer = 0;
    CHECK(cuMemAlloc(&to, 4));
    void* parameters[] = {&to};
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
    CHECK(cuMemcpyDtoH(&answer, to, 4));
    REQUIRE(answer == 42);
}

// What may not be done in a capture breaks it: it takes no more work and ends without a graph.
void broken_capture(CUstream stream, CUdeviceptr memory) {
    CUgraph graph = nullptr;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    CHECK(cuMemsetD32Async(memory, 1, 1, stream));
    REQUIRE(cuStreamSynchronize(stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(cuStreamIsCapturing(stream, &status));
    REQUIRE(status == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    REQUIRE(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    REQUIRE(!graph);
    CHECK(cuMemsetD32Async(memory, 0, 1, stream));
    CHECK(cuStreamSynchronize(stream));
}

}  // namespace

int main() {
    preload::start();
    CUmodule module = nullptr;
    CUfunction add = nullptr;
    CUstream stream = nullptr;
    CHECK(cuModuleLoadData(&module, kKernels));
    CHECK(cuModuleGetFunction(&add, module, "add"));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUdeviceptr total = 0, step = 0;
    CHECK(cuMemAlloc(&total, 4 * kCount));
    CHECK(cuMemAlloc(&step, 4 * kCount));
    CHECK(cuMemsetD32(total, 0, kCount));
    CHECK(cuCtxSynchronize());

    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    unsigned n = kCount;
    void* parameters[] = {&total, &step, &total, &n};
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    CHECK(cuMemsetD32Async(step, 5, kCount, stream));
    CHECK(cuLaunchKernel(add, kCount / 128, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr));
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 3; ++i) CHECK(cuGraphLaunch(executable, stream));
    CHECK(cuStreamSynchronize(stream));
    std::vector<unsigned> words(kCount);
    CHECK(cuMemcpyDtoH(words.data(), total, 4 * kCount));
    for (unsigned word : words) REQUIRE(word == 15);

    CUgraph made = nullptr;
    CUgraphNode first = nullptr, second = nullptr;
    CUDA_KERNEL_NODE_PARAMS node{};
    node.func = add;
    node.gridDimX = kCount / 128, node.gridDimY = node.gridDimZ = 1;
    node.blockDimX = 128, node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = parameters;
    CHECK(cuGraphCreate(&made, 0));
    CHECK(cuGraphAddKernelNode(&first, made, nullptr, 0, &node));
    CHECK(cuGraphAddKernelNode(&second, made, &first, 1, &node));
    CUgraphExec of_made = nullptr;
    CHECK(cuGraphInstantiate(&of_made, made, 0));
    CHECK(cuGraphLaunch(of_made, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuMemcpyDtoH(words.data(), total, 4 * kCount));
    for (unsigned word : words) REQUIRE(word == 25);
    link();
    broken_capture(stream, step);
}
