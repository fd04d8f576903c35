// How fast does the server's own code pin host memory for moves, and what slows it down?
//
//   pinning [GIB] [--driver PATH]
//
// Blocks (runtime/server/memory/spare_blocks.h) of GIB (8) together are made in a process that does nothing
// else: by a taker alone, and with 1, 2 and 3 helpers; then again while the device copies to other pinned
// memory. Before the first one as much memory is written to once, since the first write to a virtual
// machine's memory may take its host several times as long as later ones. A row of JSON each: helpers, GiB a
// second, the part of their pages that are huge, and GiB a second of those copies. Blocks are unpinned
// between two rows, which is not timed. Some 60 s for 12 GiB.
#include <cuda.h>
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/server/memory/spare_blocks.h"

namespace {

using smt::runtime::server::SpareBlocks;
using Clock = std::chrono::steady_clock;

constexpr size_t kCopied = 256u << 20;

smt::DriverApi driver;
CUcontext context = nullptr;

void check(CUresult status, const char* call) {
    if (status == CUDA_SUCCESS) return;
    std::fprintf(stderr, "pinning: %s fails with error %d\n", call, static_cast<int>(status));
    std::exit(1);
}
#define CHECK(call) check(call, #call)

void open_driver(const char* path) {
    void* const library = dlopen(path, RTLD_NOW);
    if (!library) {
        std::fprintf(stderr, "pinning: no driver: %s\n", dlerror());
        std::exit(1);
    }
#define FIND(name)                                                                \
    driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(library, #name)); \
    if (!driver.name) std::fprintf(stderr, "pinning: the driver has no %s\n", #name), std::exit(1)
    FIND(cuInit);
    FIND(cuDeviceGet);
    FIND(cuDevicePrimaryCtxRetain);
    FIND(cuCtxSetCurrent);
    FIND(cuMemAlloc_v2);
    FIND(cuMemcpyDtoH_v2);
    FIND(cuMemHostRegister_v2);
    FIND(cuMemHostUnregister);
#undef FIND
    CUdevice device = 0;
    CHECK(driver.cuInit(0));
    CHECK(driver.cuDeviceGet(&device, 0));
    CHECK(driver.cuDevicePrimaryCtxRetain(&context, device));
    CHECK(driver.cuCtxSetCurrent(context));
}

// Of the pages of the mapping that has the address, which is that of all blocks: the part that is huge.
double huge_part(const char* address) {
    std::ifstream maps("/proc/self/smaps");
    const auto place = reinterpret_cast<uint64_t>(address);
    bool is_it = false;
    uint64_t pages = 0;  // KiB
    for (std::string line; std::getline(maps, line);) {
        // The names of figures begin with hexadecimal digits, too.
        unsigned long long from = 0, to = 0, kib = 0;
        if (std::sscanf(line.c_str(), "%llx-%llx ", &from, &to) == 2)
            is_it = from <= place && place < to;
        else if (is_it && std::sscanf(line.c_str(), "Rss: %llu kB", &kib) == 1)
            pages = kib;
        else if (is_it && pages && std::sscanf(line.c_str(), "AnonHugePages: %llu kB", &kib) == 1)
            return static_cast<double>(kib) / static_cast<double>(pages);
    }
    return 0;
}

std::atomic<uint64_t> copied{0};  // bytes

void measure(uint64_t bytes, int helpers) {
    const auto blocks = std::make_shared<SpareBlocks>(driver);
    std::vector<std::thread> threads;
    for (int i = 0; i < helpers; ++i)
        threads.emplace_back([&, i] {
            driver.cuCtxSetCurrent(context);
            while (blocks->help(static_cast<size_t>(i))) {
            }
        });
    std::vector<SpareBlocks::BlockPointer> taken;
    uint64_t left = bytes, missing = 0;
    const uint64_t copied_before = copied;
    const auto begun = Clock::now();
    while (left) {
        auto block = blocks->take(left, nullptr, &missing);
        if (!block || !block->pinned()) break;
        left -= block->bytes();
        taken.push_back(std::move(block));
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    const uint64_t copied_meanwhile = copied - copied_before;
    blocks->leave();
    for (std::thread& each : threads) each.join();
    const double huge = taken.empty() ? 0 : huge_part(taken.back()->at(0));
    const auto gib = [](uint64_t count) { return static_cast<double>(count) / (1 << 30); };
    std::printf(
        "{\"helpers\": %d, \"gib\": %.2f, \"gib_per_s\": %.2f, \"huge\": %.2f, "
        "\"copied_gib_per_s\": %.2f}\n",
        helpers, gib(bytes - left), gib(bytes - left) / seconds, huge, gib(copied_meanwhile) / seconds);
    std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
    uint64_t bytes = 8ull << 30;
    const char* library = "libcuda.so.1";
    for (int i = 1; i < count; ++i) {
        if (!std::strcmp(arguments[i], "--driver") && i + 1 < count)
            library = arguments[++i];
        else if (const double gib = std::atof(arguments[i]); gib > 0)
            bytes = static_cast<uint64_t>(gib * (1 << 30));
        else
            return std::fprintf(stderr, "usage: pinning [GIB] [--driver PATH]\n"), 2;
    }
    open_driver(library);
    {
        const std::unique_ptr<char[]> once(new char[bytes]);
        std::memset(once.get(), 1, bytes);
    }
    for (const int helpers : {0, 1, 2, 3, 5, 7, 11}) measure(bytes, helpers);
    CUdeviceptr memory = 0;
    const std::unique_ptr<char, decltype(&std::free)> pinned(
        static_cast<char*>(std::aligned_alloc(4096, kCopied)), &std::free);
    CHECK(driver.cuMemAlloc_v2(&memory, kCopied));
    CHECK(driver.cuMemHostRegister_v2(pinned.get(), kCopied, 0));
    std::atomic<bool> over{false};
    std::thread copying([&] {
        CHECK(driver.cuCtxSetCurrent(context));
        for (; !over; copied += kCopied) CHECK(driver.cuMemcpyDtoH_v2(pinned.get(), memory, kCopied));
    });
    for (const int helpers : {0, 3, 7, 11}) measure(bytes, helpers);
    over = true;
    copying.join();
    return 0;
}
