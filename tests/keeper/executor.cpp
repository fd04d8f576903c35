// keeper_executor WHAT: with the socket of a keeper as descriptor 3, and the device that SMT_DEVICE selects.
//
//   write     makes chunks, maps them, fills each with a pattern of its own, says "written", and waits for a
//   kill read      maps what the keeper holds at the same addresses, and says how many chunks are right alone
//   makes a chunk, waits for the end of its input (by which the keeper is dead), looks at the chunk
//             and makes another one
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "runtime/device/device.h"

namespace {

using namespace smt::runtime;

constexpr uint64_t kBase = 0x2000'4000'0000;
constexpr uint64_t kBytes[] = {2ull << 20, 6ull << 20, 64ull << 20};  // of chunks, by which each is known
constexpr uint64_t kApart = 128ull << 20;

void need(CUresult status, const char* what) {
    if (status == CUDA_SUCCESS) return;
    std::fprintf(stderr, "%s: error %d\n", what, static_cast<int>(status));
    std::exit(1);
}
#define NEED(call) need(call, #call)

uint32_t pattern(uint64_t address) { return static_cast<uint32_t>(address >> 21) * 2654435761u; }

void map(device::Device& device, uint64_t address, uint64_t bytes, CUmemGenericAllocationHandle handle) {
    CUdeviceptr got = 0;
    // A range of less than 32 MiB would be put elsewhere.
    NEED(device.driver().cuMemAddressReserve(&got, kApart, 2ull << 20, address, 0));
    if (got != address) std::fprintf(stderr, "mapped elsewhere\n"), std::exit(1);
    NEED(device.driver().cuMemMap(address, bytes, 0, handle, 0));
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.device()};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    NEED(device.driver().cuMemSetAccess(address, bytes, &access, 1));
    NEED(device.driver().cuMemRelease(handle));
    device.allocated(address, bytes);
}

void fill(device::Device& device, uint64_t address, uint64_t bytes) {
    NEED(device.driver().cuMemsetD32Async(address, pattern(address), bytes / 4, nullptr));
    NEED(device.driver().cuStreamSynchronize(nullptr));
}

bool right(device::Device& device, uint64_t address, uint64_t bytes) {
    std::vector<uint32_t> words(bytes / 4);
    NEED(device.driver().cuMemcpyDtoH_v2(words.data(), address, bytes));
    for (uint32_t word : words)
        if (word != pattern(address)) return false;
    return true;
}

uint64_t address_of(uint64_t bytes) {
    return kBase + static_cast<uint64_t>(std::ranges::find(kBytes, bytes) - std::begin(kBytes)) * kApart;
}

void make(device::Device& device, size_t which) {
    const uint64_t address = kBase + which * kApart, bytes = kBytes[which];
    device::PhysicalMemory::Made made;
    NEED(device.physical_memory().make(bytes, &made));
    map(device, address, bytes, made.handle);
    fill(device, address, bytes);
}

void say(const std::string& line) {
    std::puts(line.c_str());
    std::fflush(stdout);
}

}  // namespace

int main(int, char** arguments) {
    const std::string what = arguments[1];
    std::string notice, error;
    const std::unique_ptr<device::Device> device = device::open_device("test", "", notice, error);
    if (!device) return std::fprintf(stderr, "%s\n", error.c_str()), 1;
    device::PhysicalMemory& memory = device->physical_memory();
    memory.keep_with(std::make_unique<keeper::Client>(3), std::atoi(arguments[2]));
    if (what == "write") {
        for (size_t i = 0; i < std::size(kBytes); ++i) make(*device, i);
        say("written");
        for (;;) pause();
    }
    if (what == "read") {
        std::vector<device::PhysicalMemory::Found> found;
        NEED(memory.find_all(&found));
        int good = 0;
        for (const auto& each : found) {
            map(*device, address_of(each.bytes), each.bytes, each.made.handle);
            good += right(*device, address_of(each.bytes), each.bytes);
        }
        say(std::to_string(good) + " of " + std::to_string(found.size()));
        for (const auto& each : found) {
            NEED(device->driver().cuMemUnmap(address_of(each.bytes), each.bytes));
            memory.forget(each.made.id);
        }
        found.clear();
        NEED(memory.find_all(&found));
        return found.empty() ? 0 : 1;
    }
    make(*device, 0);
    say("made");
    std::getchar();
    const bool before = memory.news().empty();  // the keeper is found out here, or by make()
    make(*device, 1);
    say(right(*device, kBase, kBytes[0]) && right(*device, kBase + kApart, kBytes[1]) ? "right" : "wrong");
    return before || memory.kept();
}
