// takes: memory by commands from its input, a line each, and a line of output for each:
//
//     take MIB    ok, or the error      array MIB    the same of an array      give    ok: the last one
//     info        free and all of it, in KiB         seed N                    for what follows
//     random      ok, or the error: takes up to 8 MiB in some way, or gives some of it back
//     give-all    ok
#include <cstdint>
#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/preload/program.h"

namespace {

constexpr size_t kMib = 1u << 20;
constexpr size_t kMostRandom = 8 * kMib;

std::vector<std::function<CUresult()>> pieces;  // what gives each back
std::mt19937_64 numbers;

size_t some(size_t most) { return 1 + numbers() % most; }

CUresult keep(CUresult status, std::function<CUresult()> give) {
    if (status == CUDA_SUCCESS) pieces.push_back(std::move(give));
    return status;
}

CUresult take(size_t bytes) {
    CUdeviceptr memory = 0;
    const CUresult status = cuMemAlloc(&memory, bytes);
    return keep(status, [memory] { return cuMemFree(memory); });
}

CUresult take_pitched() {
    CUdeviceptr memory = 0;
    size_t pitch = 0;
    const CUresult status = cuMemAllocPitch(&memory, &pitch, some(4096), some(2000), 4);
    return keep(status, [memory] { return cuMemFree(memory); });
}

CUresult take_in_stream() {
    CUdeviceptr memory = 0;
    const CUresult status = cuMemAllocAsync(&memory, some(kMostRandom), nullptr);
    return keep(status, [memory] { return cuMemFreeAsync(memory, nullptr); });
}

CUresult take_array(size_t width, size_t height) {
    const CUDA_ARRAY_DESCRIPTOR shape{
        .Width = width, .Height = height, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
    CUarray array = nullptr;
    const CUresult status = cuArrayCreate(&array, &shape);
    return keep(status, [array] { return cuArrayDestroy(array); });
}

CUresult take_mipmapped() {
    const CUDA_ARRAY3D_DESCRIPTOR shape{.Width = some(1024),
                                        .Height = some(1024),
                                        .Depth = 0,
                                        .Format = CU_AD_FORMAT_FLOAT,
                                        .NumChannels = 1,
                                        .Flags = 0};
    CUmipmappedArray array = nullptr;
    const CUresult status = cuMipmappedArrayCreate(&array, &shape, static_cast<unsigned>(some(4)));
    return keep(status, [array] { return cuMipmappedArrayDestroy(array); });
}

CUresult take_physical() {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    CUmemGenericAllocationHandle memory = 0;
    const CUresult status = cuMemCreate(&memory, 2 * kMib * some(4), &properties, 0);
    return keep(status, [memory] { return cuMemRelease(memory); });
}

CUresult give(size_t which) {
    std::swap(pieces[which], pieces.back());
    const auto back = std::move(pieces.back());
    pieces.pop_back();
    return back();
}

CUresult random_step() {
    if (!pieces.empty() && numbers() % 3 == 0) return give(numbers() % pieces.size());
    switch (numbers() % 7) {
        case 0:
            return take(some(kMostRandom));
        case 1:
            return take(some(4096));
        case 2:
            return take_pitched();
        case 3:
            return take_in_stream();
        case 4:
            return take_array(some(1024), some(1024));
        case 5:
            return take_mipmapped();
        default:
            return take_physical();
    }
}

CUresult give_all() {
    while (!pieces.empty()) CHECK(give(0));
    return cuCtxSynchronize();
}

size_t number() {
    size_t read = 0;
    std::cin >> read;
    return read;
}

CUresult carry_out(const std::string& command) {
    if (command == "take") return take(number() * kMib);
    if (command == "array") return take_array(kMib / 4, number());
    if (command == "random") return random_step();
    if (command == "seed") return numbers.seed(number()), CUDA_SUCCESS;
    if (command == "give") return give(pieces.size() - 1);
    REQUIRE(command == "give-all");
    return give_all();
}

}  // namespace

int main() {
    preload::start();
    for (std::string command; std::cin >> command;) {
        if (command == "info") {
            size_t free = 0, total = 0;
            CHECK(cuMemGetInfo(&free, &total));
            std::cout << free / 1024 << ' ' << total / 1024 << std::endl;
            continue;
        }
        const CUresult status = carry_out(command);
        if (status == CUDA_SUCCESS)
            std::cout << "ok" << std::endl;
        else
            std::cout << status << std::endl;
    }
}
