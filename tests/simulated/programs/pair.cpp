// pair WHAT: a program with a context on each of two devices. What it expects is what CUDA does natively
// where no device reaches another one's memory.
//
//   pair work     kernels, copies between the devices, events of one that the other waits for
//   pair wrong    handles of the device that is not current
//   pair graphs   a graph, an array and a library on each
//   pair threads  each of eight threads computes on one of the devices, or on both by turns
//   pair reset    the end of one device's contexts leaves the other's objects
//   pair devices  calls that name a device, where the second one has no context
//   pair lost     says "ready", reads a line, and finds the second device's server gone
#include <string>
#include <thread>
#include <vector>

#include "tests/preload/program.h"
#include "tests/simulated/programs/kernels.h"

namespace {

constexpr unsigned kCount = 3000, kThreads = 128, kBlocks = (kCount + kThreads - 1) / kThreads;
constexpr size_t kBytes = kCount * sizeof(unsigned);

struct Device {
    CUdevice ordinal = -1;
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUfunction add = nullptr;
    CUstream stream = nullptr;
    CUevent event = nullptr;
    CUdeviceptr a = 0, sum = 0;

    void use() const { CHECK(cuCtxSetCurrent(context)); }

    void open(CUdevice number) {
        ordinal = number;
        CHECK(cuDevicePrimaryCtxRetain(&context, number));
        use();
        CHECK(cuModuleLoadData(&module, kKernels));
        CHECK(cuModuleGetFunction(&add, module, "add"));
        CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CHECK(cuEventCreate(&event, CU_EVENT_DEFAULT));
        CHECK(cuMemAlloc(&a, kBytes));
        CHECK(cuMemAlloc(&sum, kBytes));
    }
};

Device devices[2];

std::vector<unsigned> numbers(unsigned from) {
    std::vector<unsigned> made(kCount);
    for (unsigned i = 0; i < kCount; ++i) made[i] = from + i;
    return made;
}

// sum = a + a, in a stream.
void launch_add(CUfunction add, CUstream stream, CUdeviceptr a, CUdeviceptr sum) {
    unsigned count = kCount;
    void* parameters[] = {&a, &a, &sum, &count};
    CHECK(cuLaunchKernel(add, kBlocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr));
}

void expect(CUdeviceptr memory, unsigned from, unsigned factor) {
    std::vector<unsigned> got(kCount);
    CHECK(cuMemcpyDtoH(got.data(), memory, kBytes));
    for (unsigned i = 0; i < kCount; ++i) REQUIRE(got[i] == factor * (from + i));
}

int ordinal_of(CUdeviceptr memory) {
    int ordinal = -1;
    CHECK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory));
    return ordinal;
}

// 2 (100 + i) on the first device, from there to the second one, doubled there, and back.
void pass_on(const Device& first, const Device& second) {
    first.use();
    CHECK(cuMemcpyHtoDAsync(first.a, numbers(100).data(), kBytes, first.stream));
    launch_add(first.add, first.stream, first.a, first.sum);
    CHECK(cuEventRecord(first.event, first.stream));
    second.use();
    CHECK(cuStreamWaitEvent(second.stream, first.event, 0));
    CHECK(cuMemcpyPeerAsync(second.a, second.context, first.sum, first.context, kBytes, second.stream));
    launch_add(second.add, second.stream, second.a, second.sum);
    CHECK(cuEventRecord(second.event, second.stream));
    first.use();  // the other one's event and stream
    CHECK(cuEventSynchronize(second.event));
    CHECK(cuEventQuery(second.event));
    CHECK(cuStreamSynchronize(second.stream));
    CHECK(cuStreamQuery(second.stream));
    CHECK(cuMemcpy(first.a, second.sum, kBytes));
    expect(first.a, 100, 4);
    expect(second.sum, 100, 4);  // by the address, whatever is current
    CHECK(cuMemcpyDtoD(second.sum, second.a, kBytes));
    expect(second.sum, 100, 2);
    CHECK(cuMemsetD32(second.sum, 7, kCount));
    unsigned last = 0;
    CHECK(cuMemcpyDtoH(&last, second.sum + kBytes - 4, 4));
    REQUIRE(last == 7);
}

// Rows of a pitched block, and more than one piece.
void pass_blocks(const Device& first, const Device& second) {
    constexpr size_t kWidth = 5 << 20, kPitch = kWidth + 512, kRows = 3;
    CUdeviceptr from = 0, to = 0;
    first.use();
    CHECK(cuMemAlloc(&from, kPitch * kRows));
    second.use();
    CHECK(cuMemAlloc(&to, kPitch * kRows));
    std::vector<unsigned char> bytes(kPitch * kRows), got(kPitch * kRows);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 7 + i / kPitch);
    CHECK(cuMemcpyHtoD(from, bytes.data(), bytes.size()));
    CHECK(cuMemsetD8(to, 9, got.size()));
    CUDA_MEMCPY3D_PEER box{};
    box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    box.srcDevice = from, box.dstDevice = to;
    box.srcContext = first.context, box.dstContext = second.context;
    box.srcPitch = box.dstPitch = kPitch;
    box.WidthInBytes = kWidth, box.Height = kRows, box.Depth = 1;
    CHECK(cuMemcpy3DPeer(&box));
    CHECK(cuMemcpyDtoH(got.data(), to, got.size()));
    for (size_t i = 0; i < got.size(); ++i) REQUIRE(got[i] == (i % kPitch < kWidth ? bytes[i] : 9));
    CHECK(cuMemFree(from));
    CHECK(cuMemFree(to));
    FAILS(cuMemFree(to), CUDA_ERROR_INVALID_VALUE);
}

// Pinned memory of the first device's that both copy to and from, in order.
void share_pinned(const Device& first, const Device& second) {
    void* pinned = nullptr;
    first.use();
    CHECK(cuMemHostAlloc(&pinned, kBytes, CU_MEMHOSTALLOC_PORTABLE));
    CHECK(cuMemcpyHtoD(first.a, numbers(500).data(), kBytes));
    launch_add(first.add, first.stream, first.a, first.sum);
    CHECK(cuMemcpyDtoHAsync(pinned, first.sum, kBytes, first.stream));
    CHECK(cuEventRecord(first.event, first.stream));
    second.use();
    CHECK(cuStreamWaitEvent(second.stream, first.event, 0));
    CHECK(cuMemcpyHtoDAsync(second.a, pinned, kBytes, second.stream));
    launch_add(second.add, second.stream, second.a, second.sum);
    CHECK(cuMemcpyDtoHAsync(pinned, second.sum, kBytes, second.stream));
    CHECK(cuStreamSynchronize(second.stream));
    for (unsigned i = 0; i < kCount; ++i) REQUIRE(static_cast<unsigned*>(pinned)[i] == 4 * (500 + i));
    CHECK(cuMemFreeHost(pinned));
}

void work() {
    REQUIRE(ordinal_of(devices[0].sum) == 0 && ordinal_of(devices[1].sum) == 1);
    CUcontext owner = nullptr;
    devices[0].use();
    CHECK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, devices[1].sum));
    REQUIRE(owner == devices[1].context);
    CUdevice of_stream = -1;
    CHECK(cuStreamGetCtx(devices[1].stream, &owner));
    CHECK(cuStreamGetDevice(devices[1].stream, &of_stream));
    REQUIRE(owner == devices[1].context && of_stream == 1);
    for (int round = 0; round < 3; ++round) {
        pass_on(devices[0], devices[1]);
        pass_on(devices[1], devices[0]);
    }
    pass_blocks(devices[0], devices[1]);
    pass_blocks(devices[1], devices[0]);
    share_pinned(devices[0], devices[1]);
    share_pinned(devices[1], devices[0]);
    for (const Device& device : devices) {
        device.use();
        CHECK(cuCtxSynchronize());
    }
}

void wrong() {
    const Device &here = devices[0], &there = devices[1];
    here.use();
    unsigned count = kCount;
    CUdeviceptr a = here.a, sum = here.sum;
    void* parameters[] = {&a, &a, &sum, &count};
    float time = 0;
    FAILS(cuLaunchKernel(here.add, kBlocks, 1, 1, kThreads, 1, 1, 0, there.stream, parameters, nullptr),
          CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuLaunchKernel(there.add, kBlocks, 1, 1, kThreads, 1, 1, 0, here.stream, parameters, nullptr),
          CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuEventRecord(there.event, here.stream), CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuEventRecord(here.event, there.stream), CUDA_ERROR_INVALID_HANDLE);
    CHECK(cuEventRecord(here.event, here.stream));
    CHECK(cuEventRecord(there.event, there.stream));
    CHECK(cuEventSynchronize(here.event));
    CHECK(cuEventSynchronize(there.event));
    FAILS(cuEventElapsedTime(&time, here.event, there.event), CUDA_ERROR_INVALID_HANDLE);
    int most = 0;
    CHECK(cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, there.add));
    REQUIRE(most >= 128);
    // What is the other one's can be ended from here.
    CUstream stream = nullptr;
    CUevent event = nullptr;
    CUmodule module = nullptr;
    there.use();
    CHECK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CHECK(cuModuleLoadData(&module, kKernels));
    here.use();
    CHECK(cuStreamDestroy(stream));
    CHECK(cuEventDestroy(event));
    CHECK(cuModuleUnload(module));
    FAILS(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
}

void library_on_both() {
    CUlibrary library = nullptr;
    CUkernel add = nullptr;
    devices[0].use();
    CHECK(cuLibraryLoadData(&library, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
    CHECK(cuLibraryGetKernel(&add, library, "add"));
    CUdeviceptr counters[2] = {};
    for (int round = 0; round < 2; ++round) {
        for (const Device& device : devices) {
            device.use();
            CHECK(cuMemcpyHtoD(device.a, numbers(40).data(), kBytes));
            launch_add(reinterpret_cast<CUfunction>(add), device.stream, device.a, device.sum);
            CHECK(cuStreamSynchronize(device.stream));
            expect(device.sum, 40, 2);
            CHECK(cuLibraryGetGlobal(&counters[device.ordinal], nullptr, library, "counter"));
            REQUIRE(ordinal_of(counters[device.ordinal]) == device.ordinal);
        }
    }
    for (const Device& device : devices) {  // each has its own, at one address maybe
        const unsigned value = 50 + static_cast<unsigned>(device.ordinal);
        device.use();
        CHECK(cuMemcpyHtoD(counters[device.ordinal], &value, sizeof value));
    }
    for (const Device& device : devices) {
        unsigned value = 0;
        device.use();
        CHECK(cuMemcpyDtoH(&value, counters[device.ordinal], sizeof value));
        REQUIRE(value == 50 + static_cast<unsigned>(device.ordinal));
    }
    CHECK(cuLibraryUnload(library));
    CUfunction function = nullptr;
    FAILS(cuKernelGetFunction(&function, add), CUDA_ERROR_INVALID_HANDLE);
}

void graphs() {
    CUgraph graphs[2] = {};
    CUgraphExec executables[2] = {};
    CUarray arrays[2] = {};
    const CUDA_ARRAY_DESCRIPTOR row{kCount, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1};
    for (int i = 0; i < 2; ++i) {
        const Device& device = devices[i];
        device.use();
        CHECK(cuMemcpyHtoD(device.a, numbers(9).data(), kBytes));
        CHECK(cuStreamBeginCapture(device.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        launch_add(device.add, device.stream, device.a, device.sum);
        if (i == 1) {  // no other device's stream joins a capture
            CHECK(cuEventRecord(device.event, device.stream));
            FAILS(cuStreamWaitEvent(devices[0].stream, device.event, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
        }
        CHECK(cuStreamEndCapture(device.stream, &graphs[i]));
        CHECK(cuGraphInstantiate(&executables[i], graphs[i], 0));
        CHECK(cuArrayCreate(&arrays[i], &row));
        CHECK(cuMemcpyHtoA(arrays[i], 0, numbers(1000u * i).data(), kBytes));
    }
    REQUIRE(graphs[0] != graphs[1] && executables[0] != executables[1] && arrays[0] != arrays[1]);
    for (int i = 0; i < 2; ++i) {  // the stream and the array say which device, not the current context
        devices[1 - i].use();
        CHECK(cuGraphLaunch(executables[i], devices[i].stream));
        CHECK(cuStreamSynchronize(devices[i].stream));
        expect(devices[i].sum, 9, 2);
    }
    for (int i = 0; i < 2; ++i) {
        devices[1 - i].use();
        CHECK(cuMemcpyAtoD(devices[1 - i].a, arrays[i], 0, kBytes));
        expect(devices[1 - i].a, 1000u * i, 1);
        CHECK(cuGraphExecDestroy(executables[i]));
        CHECK(cuGraphDestroy(graphs[i]));
        CHECK(cuArrayDestroy(arrays[i]));
    }
    library_on_both();
}

void compute(const Device& device, unsigned from) {
    device.use();
    CUstream stream = nullptr;
    CUdeviceptr a = 0, sum = 0;
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemAlloc(&a, kBytes));
    CHECK(cuMemAlloc(&sum, kBytes));
    CHECK(cuMemcpyHtoDAsync(a, numbers(from).data(), kBytes, stream));
    launch_add(device.add, stream, a, sum);
    CHECK(cuStreamSynchronize(stream));
    expect(sum, from, 2);
    CHECK(cuMemFree(a));
    CHECK(cuMemFree(sum));
    CHECK(cuStreamDestroy(stream));
}

void threads() {
    std::vector<std::thread> all;
    for (unsigned thread = 0; thread < 8; ++thread)
        all.emplace_back([thread] {
            for (unsigned round = 0; round < 10; ++round)
                compute(devices[thread < 6 ? thread % 2 : round % 2], 100 * thread + round);
        });
    for (std::thread& thread : all) thread.join();
}

void reset() {
    devices[1].use();
    CHECK(cuDevicePrimaryCtxReset(0));
    FAILS(cuStreamQuery(devices[0].stream), CUDA_ERROR_INVALID_HANDLE);
    compute(devices[1], 3);
    CHECK(cuStreamQuery(devices[1].stream));
    devices[0].open(0);
    compute(devices[0], 4);
    CUcontext made = nullptr, popped = nullptr;
    CUdevice current = -1;
    CHECK(cuCtxCreate(&made, nullptr, 0, 1));
    CHECK(cuCtxGetDevice(&current));
    REQUIRE(current == 1);
    CHECK(cuCtxPushCurrent(devices[0].context));
    CHECK(cuCtxGetDevice(&current));
    REQUIRE(current == 0);
    CUdeviceptr memory = 0;
    CHECK(cuMemAlloc(&memory, 64));
    REQUIRE(ordinal_of(memory) == 0);
    CHECK(cuCtxPopCurrent(&popped));
    REQUIRE(popped == devices[0].context);
    CHECK(cuMemAlloc(&memory, 64));
    REQUIRE(ordinal_of(memory) == 1);
    CHECK(cuCtxDestroy(made));
    compute(devices[1], 5);
    CHECK(cuDevicePrimaryCtxRelease(1));
    FAILS(cuStreamQuery(devices[1].stream), CUDA_ERROR_INVALID_HANDLE);
    compute(devices[0], 6);
}

// The second device has no context; a call that names it is for its server all the same.
void name_devices() {
    CUmemoryPool pool = nullptr;
    devices[0].use();
    for (CUdevice device : {1, 0}) CHECK(cuDeviceGetDefaultMemPool(&pool, device));
    FAILS(cuDeviceGetDefaultMemPool(&pool, 2), CUDA_ERROR_INVALID_DEVICE);
    FAILS(cuDeviceGetDefaultMemPool(&pool, -1), CUDA_ERROR_INVALID_DEVICE);
    compute(devices[0], 7);
    REQUIRE(ordinal_of(devices[0].a) == 0);
}

void lost() {
    preload::say("ready");
    std::getchar();
    devices[1].use();
    CUdeviceptr memory = 0;
    FAILS(cuMemAlloc(&memory, 64), CUDA_ERROR_DEVICE_UNAVAILABLE);
    FAILS(cuStreamSynchronize(devices[1].stream), CUDA_ERROR_DEVICE_UNAVAILABLE);
    compute(devices[0], 8);
    FAILS(cuStreamQuery(devices[1].stream), CUDA_ERROR_DEVICE_UNAVAILABLE);
    FAILS(cuMemcpy(devices[0].a, devices[1].a, kBytes), CUDA_ERROR_DEVICE_UNAVAILABLE);
    compute(devices[0], 9);
    preload::say("one is left");
}

}  // namespace

int main(int count, char** arguments) {
    const std::string what = count == 2 ? arguments[1] : "";
    CHECK(cuInit(0));
    devices[0].open(0);
    if (what == "devices") return name_devices(), 0;
    devices[1].open(1);
    if (what == "work") return work(), 0;
    if (what == "wrong") return wrong(), 0;
    if (what == "graphs") return graphs(), 0;
    if (what == "threads") return threads(), 0;
    if (what == "reset") return reset(), 0;
    if (what == "lost") return lost(), 0;
    return 2;
}
