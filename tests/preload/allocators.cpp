// allocators: what PyTorch's allocators do to the driver, with the answers that a GPU gives natively:
// segments that grow and shrink in a reserved range, attributes of pools, and memory that a capture allocates
// and frees.
#include <functional>
#include <vector>

#include "tests/preload/program.h"

namespace {

constexpr size_t kMiB = 1u << 20;
constexpr size_t kStep = 32 * kMiB;  // of a pool's reserved memory

CUdevice device;
CUstream stream, side;

void expect_bytes(CUdeviceptr at, size_t bytes, unsigned char value) {
    std::vector<unsigned char> read(bytes, static_cast<unsigned char>(~value));
    CHECK(cuMemcpyDtoH(read.data(), at, bytes));
    for (unsigned char each : read) REQUIRE(each == value);
}

template <typename T>
T attribute(CUpointer_attribute which, CUdeviceptr address) {
    T value{};
    CHECK(cuPointerGetAttribute(&value, which, address));
    return value;
}

void expect_mapping(CUdeviceptr at, CUdeviceptr base, size_t bytes) {
    CUdeviceptr found = 0;
    size_t size = 0;
    CHECK(cuMemGetAddressRange(&found, &size, at));
    REQUIRE(found == base && size == bytes);
    REQUIRE(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, at) == base);
    REQUIRE(attribute<size_t>(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, at) == bytes);
    REQUIRE(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MAPPED, at) == 1);
    REQUIRE(attribute<unsigned>(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, at) ==
            CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
}

void expect_no_mapping(CUdeviceptr at) {
    CUdeviceptr found = 0;
    FAILS(cuMemGetAddressRange(&found, nullptr, at), CUDA_ERROR_NOT_FOUND);
    REQUIRE(attribute<unsigned>(CU_POINTER_ATTRIBUTE_MAPPED, at) == 0);
    REQUIRE(attribute<size_t>(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, at) == 0);
    REQUIRE(attribute<unsigned>(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, at) ==
            CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE);
}

// Segments of 4 MiB in a range larger than the device; the middle is given back and comes again. Each is a
// mapping of its own, as NCCL and UCX see it that send from one.
void expandable_segments() {
    constexpr size_t kSegment = 4 * kMiB, kRange = 9ull << 30 >> 21 << 21;
    constexpr int kSegments = 4;
    CUmemAllocationProp wanted{};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemAccessDesc access{};
    access.location = wanted.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    size_t granularity = 0;
    CHECK(cuMemGetAllocationGranularity(&granularity, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    REQUIRE(granularity == 2 * kMiB);
    CUdeviceptr base = 0;
    CHECK(cuMemAddressReserve(&base, kRange, 0, 0, 0));
    CUmemGenericAllocationHandle handles[kSegments] = {};
    const auto map = [&](int first, int last) {
        for (int i = first; i < last; ++i) {
            CHECK(cuMemCreate(&handles[i], kSegment, &wanted, 0));
            CHECK(cuMemMap(base + i * kSegment, kSegment, 0, handles[i], 0));
        }
        CHECK(cuMemSetAccess(base + first * kSegment, (last - first) * kSegment, &access, 1));
    };
    const auto unmap = [&](int first, int last) {
        for (int i = first; i < last; ++i) {
            CHECK(cuMemUnmap(base + i * kSegment, kSegment));
            CHECK(cuMemRelease(handles[i]));
        }
    };
    map(0, kSegments);
    CHECK(cuMemsetD8Async(base, 7, kSegments * kSegment, stream));
    CHECK(cuStreamSynchronize(stream));
    expect_mapping(base + 2 * kSegment + 5, base + 2 * kSegment, kSegment);
    unmap(1, 3);
    expect_mapping(base + 4 * kSegment - 1, base + 3 * kSegment, kSegment);
    expect_no_mapping(base + 2 * kSegment);
    expect_bytes(base + 3 * kSegment, kMiB, 7);
    map(1, 3);
    CHECK(cuMemsetD8Async(base + kSegment, 9, 2 * kSegment, stream));
    CHECK(cuStreamSynchronize(stream));
    expect_bytes(base + 2 * kSegment - kMiB, 2 * kMiB, 9);
    unmap(0, kSegments);
    CHECK(cuMemAddressFree(base, kRange));
}

cuuint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which) {
    cuuint64_t value = 12345;
    CHECK(cuMemPoolGetAttribute(pool, which, &value));
    return value;
}

void expect_pool(CUmemoryPool pool, size_t used, size_t used_high, size_t reserved, size_t reserved_high) {
    REQUIRE(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == used);
    REQUIRE(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == used_high);
    REQUIRE(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == reserved);
    REQUIRE(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) == reserved_high);
}

void free_and_wait(CUdeviceptr address) {
    CHECK(cuMemFreeAsync(address, stream));
    CHECK(cuStreamSynchronize(stream));
}

void pool_attributes() {
    CUmemoryPool pool = nullptr;
    CHECK(cuDeviceGetDefaultMemPool(&pool, device));
    for (const bool keeps : {false, true}) {
        expect_pool(pool, 0, 0, 0, 0);
        CUdeviceptr a = 0, b = 0, c = 0;
        CHECK(cuMemAllocAsync(&a, kMiB, stream));
        expect_pool(pool, kMiB, kMiB, kStep, kStep);
        CHECK(cuMemAllocAsync(&b, 100, stream));
        expect_pool(pool, kMiB + 100, kMiB + 100, kStep, kStep);
        CHECK(cuMemAllocAsync(&c, 34 * kMiB, stream));
        const size_t most = 35 * kMiB + 100;
        expect_pool(pool, most, most, 2 * kStep, 2 * kStep);
        free_and_wait(a);
        expect_pool(pool, most - kMiB, most, 2 * kStep, 2 * kStep);
        free_and_wait(c);
        expect_pool(pool, 100, most, keeps ? 2 * kStep : kStep, 2 * kStep);
        free_and_wait(b);
        expect_pool(pool, 0, most, keeps ? 2 * kStep : 0, 2 * kStep);
        CHECK(cuMemPoolTrimTo(pool, 10 * kMiB));
        expect_pool(pool, 0, most, keeps ? kStep : 0, 2 * kStep);
        CHECK(cuMemPoolTrimTo(pool, 0));
        expect_pool(pool, 0, most, 0, 2 * kStep);
        cuuint64_t zero = 0, all = ~0ull;
        CHECK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
        CHECK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero));
        CHECK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
        FAILS(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &all), CUDA_ERROR_INVALID_VALUE);
        FAILS(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &zero), CUDA_ERROR_INVALID_VALUE);
    }
    CUmemPoolProps wanted{};
    wanted.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    wanted.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    wanted.maxSize = 64 * kMiB;
    CUmemoryPool own = nullptr;
    CUdeviceptr memory = 0;
    CHECK(cuMemPoolCreate(&own, &wanted));
    CHECK(cuMemAllocFromPoolAsync(&memory, 5 * kMiB, own, stream));
    expect_pool(own, 5 * kMiB, 5 * kMiB, kStep, kStep);
    expect_pool(pool, 0, 0, 0, 0);
    CUdeviceptr more = 0;
    FAILS(cuMemAllocFromPoolAsync(&more, 128 * kMiB, own, stream), CUDA_ERROR_OUT_OF_MEMORY);
    free_and_wait(memory);
    FAILS(cuMemFreeAsync(memory, stream), CUDA_ERROR_INVALID_VALUE);
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuMemPoolDestroy(own));
}

size_t free_bytes() {
    size_t free = 0, total = 0;
    CHECK(cuMemGetInfo(&free, &total));
    return free;
}

CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec exec = nullptr;
    CHECK(cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    CHECK(cuGraphDestroy(graph));
    return exec;
}

// The address stays while the graph is there, launched or not; what is freed in the capture serves again in
// it.
void captured() {
    CUdeviceptr plain = 0;
    CHECK(cuMemAllocAsync(&plain, 4096, stream));
    CHECK(cuStreamSynchronize(stream));
    const size_t before = free_bytes();
    CUdeviceptr result = 0, scratch = 0, again = 0, third = 0;
    CUgraph graph = nullptr;
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(cuMemAllocAsync(&result, kMiB, stream));
    CHECK(cuMemAllocAsync(&scratch, kMiB, stream));
    CHECK(cuMemsetD8Async(scratch, 5, kMiB, stream));
    CHECK(cuMemcpyDtoDAsync(result, scratch, kMiB, stream));
    CHECK(cuMemFreeAsync(scratch, stream));
    CHECK(cuMemAllocAsync(&again, kMiB, stream));
    REQUIRE(again == scratch && again != result);
    CHECK(cuMemsetD8Async(again, 6, kMiB, stream));

    // Freed in another stream, behind the work of both, as PyTorch does with what several streams used.
    CUevent forked = nullptr, joined = nullptr;
    CHECK(cuEventCreate(&forked, CU_EVENT_DISABLE_TIMING));
    CHECK(cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
    CHECK(cuEventRecord(forked, stream));
    CHECK(cuStreamWaitEvent(side, forked, 0));
    CHECK(cuMemFreeAsync(again, side));
    CHECK(cuMemAllocAsync(&third, kMiB, stream));
    REQUIRE(third != again);  // nothing orders it behind that free
    CHECK(cuMemFreeAsync(third, stream));
    CHECK(cuEventRecord(joined, side));
    CHECK(cuStreamWaitEvent(stream, joined, 0));
    CHECK(cuStreamEndCapture(stream, &graph));

    CUgraphExec exec = instantiate(graph);
    CUdeviceptr others[8] = {};
    for (CUdeviceptr& other : others) {
        CHECK(cuMemAlloc(&other, kMiB));
        REQUIRE(other != result && other != scratch && other != third);
        CHECK(cuMemsetD8(other, 1, kMiB));
    }
    for (int i = 0; i < 3; ++i) {
        CHECK(cuMemsetD8Async(result, 0, kMiB, stream));
        CHECK(cuGraphLaunch(exec, stream));
        CHECK(cuStreamSynchronize(stream));
        expect_bytes(result, kMiB, 5);
    }
    for (CUdeviceptr other : others) {
        expect_bytes(other, kMiB, 1);
        CHECK(cuMemFree(other));
    }
    // Freed outside: the graph may be launched again all the same.
    CHECK(cuMemFreeAsync(result, stream));
    CHECK(cuGraphLaunch(exec, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuMemFreeAsync(plain, stream));
    CHECK(cuStreamSynchronize(stream));
    REQUIRE(free_bytes() >= before);
}

// A result lives on without its graph, until it is freed; a capture that breaks gives its memory back.
void without_a_graph() {
    const size_t before = free_bytes();
    CUdeviceptr result = 0, lost = 0;
    CUgraph graph = nullptr;
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK(cuMemAllocAsync(&result, 8 * kMiB, stream));
    CHECK(cuMemsetD8Async(result, 3, 8 * kMiB, stream));
    CHECK(cuStreamEndCapture(stream, &graph));
    CUgraphExec exec = instantiate(graph);
    CHECK(cuGraphLaunch(exec, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuGraphExecDestroy(exec));
    REQUIRE(free_bytes() < before);
    expect_bytes(result, kMiB, 3);
    CHECK(cuMemFree(result));
    REQUIRE(free_bytes() == before);

    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK(cuMemAllocAsync(&lost, 8 * kMiB, stream));
    CHECK(cuMemFreeAsync(lost, stream));
    CHECK(cuStreamEndCapture(stream, &graph));
    REQUIRE(free_bytes() < before);
    CHECK(cuGraphDestroy(graph));
    REQUIRE(free_bytes() == before);
}

// What no capture allocated cannot be freed in one; the capture goes on.
void foreign_free() {
    CUdeviceptr plain = 0;
    CUgraph graph = nullptr;
    CUstreamCaptureStatus status{};
    CHECK(cuMemAllocAsync(&plain, 4096, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    FAILS(cuMemFreeAsync(plain, stream), CUDA_ERROR_INVALID_VALUE);
    CHECK(cuStreamIsCapturing(stream, &status));
    REQUIRE(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphDestroy(graph));
    CHECK(cuMemFreeAsync(plain, stream));
}

void too_large() {
    for (size_t bytes : {1ull << 39, 1ull << 50, ~0ull}) {
        void* host = nullptr;
        CUdeviceptr managed = 0;
        FAILS(cuMemHostAlloc(&host, bytes, 0), CUDA_ERROR_OUT_OF_MEMORY);
        FAILS(cuMemAllocManaged(&managed, bytes, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_OUT_OF_MEMORY);
    }
}

}  // namespace

int main() {
    preload::start();
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    expandable_segments();
    pool_attributes();
    captured();
    without_a_graph();
    foreign_free();
    too_large();
    std::puts("as natively");
}
