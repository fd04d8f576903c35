// charges: under --memory 64M, and 64M of host memory, every way to get memory ends with OUT_OF_MEMORY,
// cuMemGetInfo knows of all of it, and what is given back can be had again, also behind a stream's wait.
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/preload/program.h"

namespace {

constexpr size_t kMiB = 1u << 20;
constexpr size_t kLimit = 64 * kMiB;
constexpr int kMost = 1000;  // of one kind

size_t free_bytes() {
    size_t free = 0, total = 0;
    CHECK(cuMemGetInfo(&free, &total));
    REQUIRE(total == kLimit && free <= total);
    return free;
}

// Takes until there is no more, gives all back; twice. How many there were.
int exhaust(const char* what, const std::function<CUresult()>& take, const std::function<void()>& give_all,
            bool on_device) {
    int counts[2] = {};
    const size_t before = free_bytes();
    for (int& count : counts) {
        CUresult status = CUDA_SUCCESS;
        while (count < kMost && (status = take()) == CUDA_SUCCESS) ++count;
        if (status != CUDA_ERROR_OUT_OF_MEMORY) {
            std::fprintf(stderr, "%s: %d of them, then error %d\n", what, count, static_cast<int>(status));
            std::exit(1);
        }
        if (on_device) REQUIRE(free_bytes() < before / 4);
        give_all();
        REQUIRE(free_bytes() == before);
    }
    REQUIRE(counts[0] == counts[1]);
    return counts[0];
}

template <typename Handle>
void give_each(std::vector<Handle>& all, CUresult (*give)(Handle)) {
    for (Handle each : all) CHECK(give(each));
    all.clear();
}

void arrays() {
    CUDA_ARRAY_DESCRIPTOR flat{};
    flat.Width = flat.Height = 2048;
    flat.Format = CU_AD_FORMAT_UNSIGNED_INT8;
    flat.NumChannels = 1;
    CUDA_ARRAY3D_DESCRIPTOR layers{};
    layers.Width = layers.Height = 512;
    layers.Depth = 4;
    layers.Format = CU_AD_FORMAT_FLOAT;
    layers.NumChannels = 1;
    layers.Flags = CUDA_ARRAY3D_LAYERED;
    std::vector<CUarray> taken;
    CUarray array = nullptr;
    CUmipmappedArray mipmapped = nullptr;
    const auto give = [&] { give_each<CUarray>(taken, cuArrayDestroy); };
    const auto keep = [&](CUresult status) {
        if (status == CUDA_SUCCESS) taken.push_back(array);
        return status;
    };
    REQUIRE(exhaust("arrays", [&] { return keep(cuArrayCreate(&array, &flat)); }, give, true) == 16);
    REQUIRE(exhaust(
                "arrays of layers", [&] { return keep(cuArray3DCreate(&array, &layers)); }, give, true) ==
            16);
    std::vector<CUmipmappedArray> all;
    const auto with_levels = [&] {
        const CUresult status = cuMipmappedArrayCreate(&mipmapped, &layers, 10);
        if (status == CUDA_SUCCESS) all.push_back(mipmapped);
        return status;
    };
    const int count = exhaust(
        "mipmapped arrays", with_levels, [&] { give_each<CUmipmappedArray>(all, cuMipmappedArrayDestroy); },
        true);
    REQUIRE(count >= 10 && count <= 12);  // all levels together take a third more than the first
}

// What is mapped stays although its handle is released, and is counted on.
void physical() {
    CUmemAllocationProp wanted{};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUdeviceptr base = 0;
    constexpr size_t kPiece = 4 * kMiB;
    size_t mapped = 0;
    CHECK(cuMemAddressReserve(&base, kMost * kPiece, 0, 0, 0));
    const auto take = [&] {
        CUmemGenericAllocationHandle memory = 0;
        if (const CUresult status = cuMemCreate(&memory, kPiece, &wanted, 0)) return status;
        CHECK(cuMemMap(base + mapped, kPiece, 0, memory, 0));
        CHECK(cuMemRelease(memory));
        mapped += kPiece;
        return CUDA_SUCCESS;
    };
    const auto give = [&] {
        for (; mapped; mapped -= kPiece) CHECK(cuMemUnmap(base + mapped - kPiece, kPiece));
    };
    REQUIRE(exhaust("physical memory", take, give, true) == 16);
    CHECK(cuMemAddressFree(base, kMost * kPiece));
}

// 4 multiprocessors of 2048 threads: a stack of 4 KiB takes 32 MiB, of which 1 KiB is there anyhow.
void limits() {
    const size_t before = free_bytes();
    size_t stack = 0;
    CHECK(cuCtxGetLimit(&stack, CU_LIMIT_STACK_SIZE));
    CHECK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4 << 10));
    REQUIRE(free_bytes() == before - ((4 << 10) - stack) * 4 * 2048);
    FAILS(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 16 << 10), CUDA_ERROR_OUT_OF_MEMORY);
    FAILS(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 512 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
    FAILS(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 512 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, stack));
    REQUIRE(free_bytes() == before);
}

void host_memory() {
    std::vector<void*> taken;
    std::vector<CUdeviceptr> managed;
    const auto pin = [&] {
        void* piece = nullptr;
        const CUresult status = cuMemHostAlloc(&piece, 4 * kMiB, 0);
        if (status == CUDA_SUCCESS) taken.push_back(piece);
        return status;
    };
    const auto manage = [&] {
        CUdeviceptr piece = 0;
        const CUresult status = cuMemAllocManaged(&piece, 4 * kMiB, CU_MEM_ATTACH_GLOBAL);
        if (status == CUDA_SUCCESS) managed.push_back(piece);
        return status;
    };
    // An image on its way counts, too, and is gone when it has arrived.
    CUmodule module = nullptr;
    const std::string image = "FAKE\nkernel fill params 8,4,4\n";
    FAILS(cuModuleLoadData(&module, (image + std::string(80 * kMiB, '\n')).c_str()),
          CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(cuModuleLoadData(&module, image.c_str()));
    REQUIRE(exhaust("pinned memory", pin, [&] { give_each<void*>(taken, cuMemFreeHost); }, false) == 16);
    REQUIRE(
        exhaust("managed memory", manage, [&] { give_each<CUdeviceptr>(managed, cuMemFree); }, false) == 16);
}

// One stream gives memory back behind a wait that the program ends later. Where there is no other memory
// another stream gets it, behind the first one's work.
void freed_behind_a_wait() {
    CUstream waits = nullptr, takes = nullptr;
    CHECK(cuStreamCreate(&waits, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&takes, CU_STREAM_NON_BLOCKING));
    CUdeviceptr first = 0, second = 0;
    void* word = nullptr;
    CHECK(cuMemHostAlloc(&word, sizeof(int), 0));
    std::memset(word, 0, sizeof(int));
    CHECK(cuMemAllocAsync(&first, 48 * kMiB, waits));
    CHECK(cuStreamWaitValue32(waits, reinterpret_cast<CUdeviceptr>(word), 1, CU_STREAM_WAIT_VALUE_GEQ));
    CHECK(cuMemsetD8Async(first, 1, 40 * kMiB, waits));
    CHECK(cuMemFreeAsync(first, waits));
    CHECK(cuMemAllocAsync(&second, 40 * kMiB, takes));
    CHECK(cuMemsetD8Async(second, 2, 40 * kMiB, takes));
    FAILS(cuStreamQuery(takes), CUDA_ERROR_NOT_READY);
    __atomic_store_n(static_cast<int*>(word), 1, __ATOMIC_RELEASE);
    CHECK(cuStreamSynchronize(takes));
    unsigned char last = 0;
    CHECK(cuMemcpyDtoH(&last, second + 40 * kMiB - 1, 1));
    REQUIRE(last == 2);
    CHECK(cuMemFreeAsync(second, takes));
    CHECK(cuStreamDestroy(waits));
    CHECK(cuStreamDestroy(takes));
    CHECK(cuMemFreeHost(word));
    REQUIRE(free_bytes() == kLimit);
}

}  // namespace

int main() {
    preload::start();
    freed_behind_a_wait();
    arrays();
    physical();
    limits();
    host_memory();
    std::puts("all counted");
}
