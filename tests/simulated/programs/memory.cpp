// Every kind of memory that a kernel can reach, and the shapes of copies and fills.
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/preload/program.h"
#include "tests/simulated/programs/kernels.h"

namespace {

constexpr unsigned kCount = 4096;
constexpr size_t kBytes = 4 * kCount;
CUfunction add = nullptr, spin = nullptr;

void launch_add(CUdeviceptr a, CUdeviceptr b, CUdeviceptr sum, CUstream stream) {
    unsigned n = kCount;
    void* parameters[] = {&a, &b, &sum, &n};
    CHECK(cuLaunchKernel(add, kCount / 128, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr));
}

CUdeviceptr filled(unsigned value) {
    CUdeviceptr at = 0;
    CHECK(cuMemAlloc(&at, kBytes));
    CHECK(cuMemsetD32(at, value, kCount));
    return at;
}

void expect(CUdeviceptr at, unsigned value) {
    std::vector<unsigned> words(kCount);
    CHECK(cuMemcpyDtoH(words.data(), at, kBytes));
    for (unsigned word : words) REQUIRE(word == value);
}

// Pinned and managed memory lie in the arena; kernels read and write them where they are.
void host_memory() {
    void* pinned = nullptr;
    CHECK(cuMemHostAlloc(&pinned, kBytes, CU_MEMHOSTALLOC_DEVICEMAP));
    auto* words = static_cast<unsigned*>(pinned);
    for (unsigned i = 0; i < kCount; ++i) words[i] = i;
    CUdeviceptr of_pinned = 0, managed = 0;
    CHECK(cuMemHostGetDevicePointer(&of_pinned, pinned, 0));
    CHECK(cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL));
    const CUdeviceptr ten = filled(10);
    launch_add(of_pinned, ten, managed, nullptr);
    CHECK(cuCtxSynchronize());
    for (unsigned i = 0; i < kCount; ++i) REQUIRE(reinterpret_cast<unsigned*>(managed)[i] == i + 10);
    CHECK(cuMemFreeHost(pinned));
    CHECK(cuMemFree(managed));
}

// .managed variables of PTX text lie in the arena too, as text or linked, and go with their image.
constexpr char kManaged[] = R"(
.version 8.0
.target sm_90
.address_size 64

.visible .global .attribute(.managed) .align 4 .u32 counter = 7;
.visible .global .attribute(.managed) .align 8 .u64 pointer = generic(counter);
.visible .global .align 4 .u32 plain = 1;

.visible .entry count()
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.global.u64 %rd0, [pointer];
    atom.add.u32 %r0, [%rd0], 1;
    ret;
}
)";

void managed_variables() {
    for (int i = 0; i < 2; ++i) {
        CUlibrary library = nullptr;
        CUkernel count = nullptr;
        CUdeviceptr at = 0, again = 0;
        size_t bytes = 0;
        CHECK(cuLibraryLoadData(&library, kManaged, nullptr, nullptr, 0, nullptr, nullptr, 0));
        CHECK(cuLibraryGetManaged(&at, &bytes, library, "counter"));
        CHECK(cuLibraryGetGlobal(&again, nullptr, library, "counter"));
        REQUIRE(bytes == 4 && at == again);
        REQUIRE(cuLibraryGetManaged(&again, &bytes, library, "plain") == CUDA_ERROR_NOT_SUPPORTED);
        int managed = 0;
        CHECK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at));
        REQUIRE(managed);
        auto& counter = *reinterpret_cast<volatile unsigned*>(at);
        REQUIRE(counter == 7);
        counter = 20;
        CHECK(cuLibraryGetKernel(&count, library, "count"));
        CHECK(cuLaunchKernel(reinterpret_cast<CUfunction>(count), 2, 1, 1, 32, 1, 1, 0, nullptr, nullptr,
                             nullptr));
        CHECK(cuCtxSynchronize());
        REQUIRE(counter == 84);
        CHECK(cuLibraryUnload(library));
    }
}

void virtual_memory() {
    CUmemAllocationProp wanted{};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    size_t grain = 0;
    CHECK(cuMemGetAllocationGranularity(&grain, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CUdeviceptr at = 0;
    CUmemGenericAllocationHandle memory = 0;
    CHECK(cuMemAddressReserve(&at, grain, 0, 0, 0));
    CHECK(cuMemCreate(&memory, grain, &wanted, 0));
    CHECK(cuMemMap(at, grain, 0, memory, 0));
    CUmemAccessDesc access{wanted.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CHECK(cuMemSetAccess(at, grain, &access, 1));
    launch_add(filled(3), filled(4), at, nullptr);
    expect(at, 7);
    CHECK(cuMemUnmap(at, grain));
    CHECK(cuMemRelease(memory));
    CHECK(cuMemAddressFree(at, grain));
}

// As NCCL makes and frees the memory of a communicator: it asks for a file descriptor, takes the handle from
// the address, and gives it back twice.
void exportable_memory() {
    CUmemAllocationProp wanted{};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    size_t grain = 0, bytes = 0;
    CHECK(cuMemGetAllocationGranularity(&grain, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CUdeviceptr at = 0;
    CUmemGenericAllocationHandle memory = 0, again = 0;
    CHECK(cuMemCreate(&memory, grain, &wanted, 0));
    CHECK(cuMemAddressReserve(&at, grain, grain, 0, 0));
    CHECK(cuMemMap(at, grain, 0, memory, 0));
    CUmemAccessDesc access{wanted.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CHECK(cuMemSetAccess(at, grain, &access, 1));
    int descriptor = -1;
    CHECK(cuMemExportToShareableHandle(&descriptor, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    REQUIRE(close(descriptor) == 0);
    REQUIRE(cuMemExportToShareableHandle(&descriptor, memory, CU_MEM_HANDLE_TYPE_FABRIC, 0) ==
            CUDA_ERROR_NOT_SUPPORTED);
    CHECK(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(at)));
    CHECK(cuMemRelease(again));
    CHECK(cuMemGetAddressRange(nullptr, &bytes, at));
    REQUIRE(bytes == grain);
    CHECK(cuMemUnmap(at, grain));
    CHECK(cuMemRelease(memory));
    CHECK(cuMemAddressFree(at, grain));
    wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    REQUIRE(cuMemCreate(&memory, grain, &wanted, 0) == CUDA_ERROR_NOT_SUPPORTED);
}

// Allocated and freed in the stream's order, the second block where the first was.
void pools() {
    CUstream stream = nullptr;
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    const CUdeviceptr one = filled(1), two = filled(2), result = filled(0);
    CHECK(cuCtxSynchronize());
    for (int i = 0; i < 3; ++i) {
        CUdeviceptr scratch = 0;
        CHECK(cuMemAllocAsync(&scratch, kBytes, stream));
        launch_add(one, two, scratch, stream);
        launch_add(scratch, one, result, stream);
        CHECK(cuMemFreeAsync(scratch, stream));
    }
    CHECK(cuStreamSynchronize(stream));
    expect(result, 4);
    CHECK(cuStreamDestroy(stream));
}

// A synchronous upload is complete when it returns: work on a stream that does not order with the upload's
// finds the new data. The kernel in front of the upload keeps it from being complete by chance.
void upload_before_other_streams() {
    CUstream stream = nullptr;
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    const CUdeviceptr data = filled(0), one = filled(1), result = filled(0), counter = filled(0);
    for (unsigned value : {5u, 6u}) {
        CHECK(cuCtxSynchronize());
        unsigned rounds = 200;
        CUdeviceptr to = counter;
        void* parameters[] = {&rounds, &to};
        CHECK(cuLaunchKernel(spin, 8, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr));
        const std::vector<unsigned> words(kCount, value);
        CHECK(cuMemcpyHtoD(data, words.data(), kBytes));
        launch_add(data, one, result, stream);
        CHECK(cuStreamSynchronize(stream));
        expect(result, value + 1);
    }
    CHECK(cuStreamDestroy(stream));
}

void shapes() {
    constexpr size_t kPitch = 256, kWidth = 100, kRows = 20;
    CUdeviceptr at = 0;
    CHECK(cuMemAlloc(&at, kPitch * kRows));
    CHECK(cuMemsetD8(at, 0xee, kPitch * kRows));
    CHECK(cuMemsetD2D8(at, kPitch, 0x11, kWidth, kRows));
    unsigned char rows[kRows][kWidth];
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE, copy.srcDevice = at, copy.srcPitch = kPitch;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstHost = rows, copy.dstPitch = kWidth;
    copy.WidthInBytes = kWidth, copy.Height = kRows;
    CHECK(cuMemcpy2D(&copy));
    for (auto& row : rows) {
        for (unsigned char byte : row) REQUIRE(byte == 0x11);
    }
    unsigned char between = 0;
    CHECK(cuMemcpyDtoH(&between, at + kWidth, 1));
    REQUIRE(between == 0xee);
    CUarray array = nullptr;
    const CUDA_ARRAY_DESCRIPTOR shape{32, 4, CU_AD_FORMAT_UNSIGNED_INT32, 1};
    CHECK(cuArrayCreate(&array, &shape));
    unsigned from[128], to[128] = {};
    for (unsigned i = 0; i < 128; ++i) from[i] = i * i;
    CUDA_MEMCPY2D up{};
    up.srcMemoryType = CU_MEMORYTYPE_HOST, up.srcHost = from, up.srcPitch = 128;
    up.dstMemoryType = CU_MEMORYTYPE_ARRAY, up.dstArray = array;
    up.WidthInBytes = 128, up.Height = 4;
    CHECK(cuMemcpy2D(&up));
    CUDA_MEMCPY2D down{};
    down.srcMemoryType = CU_MEMORYTYPE_ARRAY, down.srcArray = array;
    down.dstMemoryType = CU_MEMORYTYPE_HOST, down.dstHost = to, down.dstPitch = 128;
    down.WidthInBytes = 128, down.Height = 4;
    CHECK(cuMemcpy2D(&down));
    REQUIRE(std::memcmp(from, to, sizeof from) == 0);
    down.srcY = 1;  // the last row is beyond the array
    FAILS(cuMemcpy2D(&down), CUDA_ERROR_INVALID_VALUE);
    down.srcY = 0, down.srcXInBytes = 4;
    FAILS(cuMemcpy2D(&down), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemcpyHtoA(array, 64, from, 128), CUDA_ERROR_INVALID_VALUE);
    CHECK(cuArrayDestroy(array));
}

}  // namespace

int main() {
    preload::start();
    CUmodule module = nullptr;
    CHECK(cuModuleLoadData(&module, kKernels));
    CHECK(cuModuleGetFunction(&add, module, "add"));
    CHECK(cuModuleGetFunction(&spin, module, "spin"));
    launch_add(filled(20), filled(22), filled(0), nullptr);
    host_memory();
    managed_variables();
    virtual_memory();
    exportable_memory();
    pools();
    upload_before_other_streams();
    shapes();
    CHECK(cuCtxSynchronize());
}
