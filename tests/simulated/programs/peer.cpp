// peer WHAT: a program with a context on each of two devices, of which one reaches the other's memory. What
// it expects is what CUDA does natively where cuDeviceCanAccessPeer says 1; it runs on two GPUs, too.
//
//   peer access   kernels, fills and copies on the other device's memory; what is allocated later and freed
//   peer mapped   memory of cuMemCreate for both devices, at one address and at two
//   peer threads  threads that allocate and free while others give and take access
//   peer reset    a reset takes access away
//   peer refused  that no device may access what it was not given: the calls, and a copy without access in a
//                 capture, which is smt's to refuse
//   peer before, peer after, peer freed   a kernel that accesses memory without access, after access was
//   taken
//                 away, or after it was freed: an error
//   peer lost     says "ready", reads a line, and finds the second device's server gone
#include <string>
#include <thread>
#include <vector>

#include "tests/preload/program.h"
#include "tests/simulated/programs/kernels.h"

namespace {

constexpr unsigned kCount = 3000, kThreads = 128, kBlocks = (kCount + kThreads - 1) / kThreads;
constexpr size_t kBytes = kCount * sizeof(unsigned), kLarge = 5u << 20;

struct Device {
    CUdevice ordinal = -1;
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUfunction add = nullptr;
    CUstream stream = nullptr;

    void use() const { CHECK(cuCtxSetCurrent(context)); }
    CUdeviceptr allocate(size_t bytes = kBytes) const {
        CUdeviceptr memory = 0;
        use();
        CHECK(cuMemAlloc(&memory, bytes));
        return memory;
    }
    void open(CUdevice number) {
        ordinal = number;
        CHECK(cuDevicePrimaryCtxRetain(&context, number));
        use();
        CHECK(cuModuleLoadData(&module, kKernels));
        CHECK(cuModuleGetFunction(&add, module, "add"));
        CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    }
    // Kernels of this one may access the other one's memory.
    void reach(const Device& other) const {
        use();
        CHECK(cuCtxEnablePeerAccess(other.context, 0));
    }
    // sum = a + a, in a kernel of this device.
    CUresult twice(CUdeviceptr a, CUdeviceptr sum) const {
        unsigned count = kCount;
        void* parameters[] = {&a, &a, &sum, &count};
        use();
        CHECK(cuLaunchKernel(add, kBlocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr));
        return cuStreamSynchronize(stream);
    }
};

Device devices[2];

void write(CUdeviceptr memory, unsigned from) {
    std::vector<unsigned> made(kCount);
    for (unsigned i = 0; i < kCount; ++i) made[i] = from + i;
    CHECK(cuMemcpyHtoD(memory, made.data(), kBytes));
    CHECK(cuCtxSynchronize());  // no stream of the other device waits for it
}

void expect(CUdeviceptr memory, unsigned from, unsigned factor) {
    std::vector<unsigned> got(kCount);
    CHECK(cuMemcpyDtoH(got.data(), memory, kBytes));
    for (unsigned i = 0; i < kCount; ++i) REQUIRE(got[i] == factor * (from + i));
}

// Kernels of `here` read and write memory of `there`.
void compute(const Device& here, const Device& there, CUdeviceptr a, CUdeviceptr sum, unsigned from) {
    there.use();
    CHECK(cuMemsetD8(sum, 0, kBytes));
    write(a, from);
    CHECK(here.twice(a, sum));
    there.use();
    expect(sum, from, 2);
}

// A copy that can be captured goes from memory to memory, not through the program.
CUresult copy_in_graph(const Device& here, CUdeviceptr to, CUdeviceptr from) {
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    here.use();
    CHECK(cuStreamBeginCapture(here.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    const CUresult status = cuMemcpyDtoDAsync(to, from, kBytes, here.stream);
    CHECK(cuStreamEndCapture(here.stream, &graph));
    if (status != CUDA_SUCCESS) return CHECK(cuGraphDestroy(graph)), status;
    CHECK(cuGraphInstantiate(&executable, graph, 0));
    CHECK(cuGraphLaunch(executable, here.stream));
    CHECK(cuStreamSynchronize(here.stream));
    CHECK(cuGraphExecDestroy(executable));
    CHECK(cuGraphDestroy(graph));
    return status;
}

void copies(const Device& here, const Device& there, CUdeviceptr its, unsigned from) {
    const CUdeviceptr mine = here.allocate();
    write(mine, from);
    CHECK(cuMemcpyPeerAsync(its, there.context, mine, here.context, kBytes, here.stream));
    CHECK(cuStreamSynchronize(here.stream));
    expect(its, from, 1);
    CHECK(cuMemsetD32Async(its, 7, 10, here.stream));
    CHECK(cuMemcpyDtoDAsync(mine, its, 40, here.stream));
    CHECK(cuStreamSynchronize(here.stream));
    unsigned word = 0;
    CHECK(cuMemcpyDtoH(&word, mine + 36, 4));
    REQUIRE(word == 7);
    write(mine, from + 1);
    CHECK(copy_in_graph(here, its, mine));
    expect(its, from + 1, 1);
    CHECK(cuMemcpy(mine, its, kBytes));
    there.use();  // a stream of the device that reaches one end only
    write(its, from + 2);
    CHECK(cuMemcpyPeer(mine, here.context, its, there.context, kBytes));
    expect(mine, from + 2, 1);
    CHECK(cuMemFree(mine));
}

void access_of(const Device& here, const Device& there) {
    int can = 0;
    CHECK(cuDeviceCanAccessPeer(&can, here.ordinal, there.ordinal));
    REQUIRE(can == 1);
    const CUdeviceptr small = there.allocate(), large = there.allocate(kLarge);
    here.reach(there);
    FAILS(cuCtxEnablePeerAccess(there.context, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    compute(here, there, small, large, 10);
    compute(here, there, large + kLarge - kBytes, small, 20);
    for (unsigned round = 0; round < 3; ++round) {  // what comes later, at the same addresses maybe
        const CUdeviceptr later = there.allocate(), much = there.allocate(kLarge);
        compute(here, there, later, much, 30 + round);
        compute(here, there, much, later, 40 + round);
        CHECK(cuMemFree(later));
        CHECK(cuMemFree(much));
    }
    copies(here, there, large, 1000);
    here.use();
    CHECK(cuCtxDisablePeerAccess(there.context));
    FAILS(cuCtxDisablePeerAccess(there.context), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    here.reach(there);
    compute(here, there, small, large, 50);
    CHECK(cuMemFree(large));
    CHECK(cuMemFree(small));
    here.use();
    CHECK(cuCtxDisablePeerAccess(there.context));
}

void access() {
    access_of(devices[0], devices[1]);
    access_of(devices[1], devices[0]);
    devices[0].reach(devices[1]);  // both ways
    access_of(devices[1], devices[0]);
    const CUdeviceptr memory = devices[1].allocate();
    compute(devices[0], devices[1], memory, memory, 60);
}

CUresult access_of_device(CUdeviceptr address, int ordinal, unsigned long long* flags) {
    const CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, {ordinal}};
    return cuMemGetAccess(flags, &location, address);
}

struct Mapping {
    CUdeviceptr address = 0;
    size_t bytes = 0;

    void map(CUmemGenericAllocationHandle memory, size_t size) {
        bytes = size;
        CHECK(cuMemAddressReserve(&address, bytes, 0, 0, 0));
        CHECK(cuMemMap(address, bytes, 0, memory, 0));
    }
    void allow(std::vector<int> ordinals,
               CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) const {
        std::vector<CUmemAccessDesc> all;
        for (int each : ordinals) all.push_back({{CU_MEM_LOCATION_TYPE_DEVICE, {each}}, flags});
        CHECK(cuMemSetAccess(address, bytes, all.data(), all.size()));
    }
    unsigned long long allowed(int ordinal) const {
        unsigned long long flags = 0;
        CHECK(access_of_device(address, ordinal, &flags));
        return flags;
    }
    void end() const {
        CHECK(cuMemUnmap(address, bytes));
        CHECK(cuMemAddressFree(address, bytes));
    }
};

void mapped_by(const Device& owner, const Device& other) {
    CUmemAllocationProp wanted{};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, {owner.ordinal}};
    wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle memory = 0;
    owner.use();
    CHECK(cuMemCreate(&memory, 4u << 20, &wanted, 0));
    for (int round = 0; round < 2; ++round) {
        Mapping own, its;
        owner.use();
        own.map(memory, 4u << 20);
        own.allow({owner.ordinal});
        REQUIRE(own.allowed(owner.ordinal) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        REQUIRE(own.allowed(other.ordinal) == CU_MEM_ACCESS_FLAGS_PROT_NONE);
        own.allow({owner.ordinal, other.ordinal});
        REQUIRE(own.allowed(other.ordinal) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        compute(other, owner, own.address, own.address + (2u << 20), 70);
        other.use();  // the same memory at another address
        its.map(memory, 4u << 20);
        its.allow({other.ordinal});
        CHECK(other.twice(its.address, its.address + (2u << 20)));
        owner.use();
        expect(own.address + (2u << 20), 70, 2);
        owner.use();
        CHECK(cuMemcpyDtoD(own.address, own.address + (2u << 20), kBytes));
        CHECK(cuCtxSynchronize());
        CHECK(other.twice(its.address, its.address + (3u << 20)));
        expect(its.address + (3u << 20), 70, 4);
        its.end();
        own.allow({other.ordinal}, CU_MEM_ACCESS_FLAGS_PROT_NONE);
        REQUIRE(own.allowed(owner.ordinal) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        REQUIRE(own.allowed(other.ordinal) == CU_MEM_ACCESS_FLAGS_PROT_NONE);
        unsigned long long flags = 0;
        FAILS(access_of_device(own.address, 7, &flags), CUDA_ERROR_INVALID_DEVICE);
        own.allow({other.ordinal});
        compute(other, owner, own.address, own.address + (2u << 20), 80);
        own.end();
    }
    int descriptor = -1;
    CUmemGenericAllocationHandle imported = 0;
    CHECK(cuMemExportToShareableHandle(&descriptor, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    other.use();
    CHECK(cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(intptr_t{descriptor}),
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    CHECK(cuMemRelease(memory));
    Mapping its;
    its.map(imported, 4u << 20);
    its.allow({other.ordinal});
    CHECK(cuMemRelease(imported));
    write(its.address, 5);
    CHECK(other.twice(its.address, its.address + kLarge / 2));
    expect(its.address + kLarge / 2, 5, 2);
    its.end();
}

void mapped() {
    mapped_by(devices[0], devices[1]);
    mapped_by(devices[1], devices[0]);
}

void threads() {
    std::vector<std::thread> all;
    for (unsigned thread = 0; thread < 4; ++thread)
        all.emplace_back([thread] {
            const Device& mine = devices[thread % 2];
            for (unsigned round = 0; round < 20; ++round) {
                const CUdeviceptr memory = mine.allocate(round % 2 ? kBytes : kLarge);
                CHECK(mine.twice(memory, memory));
                CHECK(cuMemFree(memory));
            }
        });
    for (unsigned thread = 0; thread < 2; ++thread)
        all.emplace_back([thread] {
            const Device &here = devices[thread], &there = devices[1 - thread];
            for (unsigned round = 0; round < 10; ++round) {
                here.reach(there);
                here.use();
                CHECK(cuCtxDisablePeerAccess(there.context));
            }
        });
    for (std::thread& thread : all) thread.join();
}

void reset() {
    CUdeviceptr memory = devices[1].allocate();
    devices[0].reach(devices[1]);
    devices[1].reach(devices[0]);
    compute(devices[0], devices[1], memory, memory, 1);
    CHECK(cuDevicePrimaryCtxReset(1));
    devices[0].use();
    FAILS(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
    devices[1].open(1);
    memory = devices[1].allocate();
    devices[0].reach(devices[1]);
    devices[1].reach(devices[0]);
    compute(devices[0], devices[1], memory, memory, 2);
    compute(devices[1], devices[0], devices[0].allocate(), devices[0].allocate(kLarge), 3);
}

void refused() {
    const CUdeviceptr mine = devices[0].allocate(), its = devices[1].allocate();
    FAILS(cuCtxEnablePeerAccess(devices[1].context, 1), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuCtxEnablePeerAccess(nullptr, 0), CUDA_ERROR_INVALID_CONTEXT);
    devices[0].use();
    FAILS(cuCtxEnablePeerAccess(devices[0].context, 0), CUDA_ERROR_INVALID_DEVICE);
    FAILS(cuCtxDisablePeerAccess(devices[1].context), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    CHECK(cuMemcpy(mine, its, kBytes));
    FAILS(copy_in_graph(devices[0], mine, its), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    devices[0].reach(devices[1]);
    CHECK(copy_in_graph(devices[0], mine, its));
    FAILS(copy_in_graph(devices[1], mine, its), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(cuCtxSetCurrent(nullptr));
    FAILS(cuCtxEnablePeerAccess(devices[1].context, 0), CUDA_ERROR_INVALID_CONTEXT);
}

void wild(const std::string& when) {
    const CUdeviceptr memory = devices[1].allocate(kLarge);
    if (when != "before") {
        devices[0].reach(devices[1]);
        compute(devices[0], devices[1], memory, memory, 1);
        devices[0].use();
        if (when == "after") CHECK(cuCtxDisablePeerAccess(devices[1].context));
        if (when == "freed") CHECK(cuMemFree(memory));
    }
    FAILS(devices[0].twice(memory, memory), CUDA_ERROR_ILLEGAL_ADDRESS);
}

void lost() {
    CUdeviceptr memory = devices[0].allocate(), its = devices[1].allocate();
    devices[0].reach(devices[1]);
    devices[1].reach(devices[0]);
    compute(devices[0], devices[1], its, its, 1);
    compute(devices[1], devices[0], memory, memory, 2);
    preload::say("ready");
    std::getchar();
    const CUdeviceptr later = devices[0].allocate(kLarge);
    write(later, 3);
    CHECK(devices[0].twice(later, memory));
    expect(memory, 3, 2);
    CHECK(cuMemFree(memory));
    CHECK(cuMemFree(later));
    CHECK(devices[0].twice(its, its));  // its memory is there as long as it is open
    devices[1].use();
    FAILS(cuMemAlloc(&its, 64), CUDA_ERROR_DEVICE_UNAVAILABLE);
    preload::say("one is left");
}

// While the third device's server stands still, a thread waits for it; what the other two have with each
// other goes on.
void hung(const Device& third) {
    devices[0].allocate();
    preload::say("ready");
    std::getchar();
    std::thread waits([&] { third.reach(devices[0]); });
    for (int round = 0; round < 300; ++round) {
        devices[0].reach(devices[1]);
        devices[1].use();
        CHECK(cuMemFree(devices[1].allocate()));
        devices[0].use();
        CHECK(cuCtxDisablePeerAccess(devices[1].context));
    }
    preload::say("others go on");
    waits.join();
    const CUdeviceptr memory = devices[0].allocate();
    compute(third, devices[0], memory, memory, 5);
}

}  // namespace

int main(int count, char** arguments) {
    const std::string what = count == 2 ? arguments[1] : "";
    CHECK(cuInit(0));
    devices[0].open(0);
    devices[1].open(1);
    if (what == "access") return access(), 0;
    if (what == "mapped") return mapped(), 0;
    if (what == "threads") return threads(), 0;
    if (what == "reset") return reset(), 0;
    if (what == "refused") return refused(), 0;
    if (what == "before" || what == "after" || what == "freed") return wild(what), 0;
    if (what == "lost") return lost(), 0;
    if (what == "hung") {
        Device third;
        third.open(2);
        return hung(third), 0;
    }
    return 2;
}
