// See host_block.h.
#include "runtime/server/memory/host_block.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "runtime/thread/thread.h"

namespace smt::runtime::server {

namespace {

constexpr auto kUnpinPoll = std::chrono::milliseconds(1);
constexpr uint64_t kNoBound = ~uint64_t{0};
// Pages are cleared as they are made, which a single thread takes most of the time for that pinning takes: on
// an H100's host 4 GiB are pinned in 700 ms so, and in 300 with four threads; more are not faster.
constexpr uint64_t kPagesAtOnce = 16ull << 20, kThreads = 4;
constexpr int kPopulateForWriting =
    23;  // MADV_POPULATE_WRITE; an older kernel refuses it, and no harm is done

std::atomic<uint64_t> bytes_in_blocks{0};

std::string text_of_file(const char* path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

// A line "Name:  123 kB", in bytes; 0: there is none.
uint64_t meminfo_bytes(const std::string& text, const std::string& name) {
    const size_t at = text.find(name + ":");
    if (at == std::string::npos) return 0;
    return std::strtoull(text.c_str() + at + name.size() + 1, nullptr, 10) << 10;
}

// What the control group that this process sees as its root allows, beyond what it uses.
uint64_t left_in_group() {
    const std::string most = text_of_file("/sys/fs/cgroup/memory.max"),
                      used = text_of_file("/sys/fs/cgroup/memory.current");
    if (most.empty() || used.empty() || most.starts_with("max")) return kNoBound;
    const uint64_t bound = std::strtoull(most.c_str(), nullptr, 10),
                   now = std::strtoull(used.c_str(), nullptr, 10);
    return bound - std::min(bound, now);
}

void make_pages(char* place, uint64_t bytes) {
    std::atomic<uint64_t> next{0};
    const auto make = [&] {
        for (uint64_t at; (at = next.fetch_add(kPagesAtOnce)) < bytes;)
            madvise(place + at, std::min(kPagesAtOnce, bytes - at), kPopulateForWriting);
    };
    std::array<Thread, kThreads - 1> others;
    uint64_t pieces = bytes / kPagesAtOnce;
    for (Thread& each : others)  // what it does not make the others do
        if (pieces-- == 0 || !each.start({"pages", ""}, make).empty()) break;
    make();
}

}  // namespace

HostBlock::Room HostBlock::room_of(const std::string& meminfo, uint64_t group_left, uint64_t in_blocks) {
    const uint64_t available = meminfo_bytes(meminfo, "MemAvailable"),
                   swap = meminfo_bytes(meminfo, "SwapFree");
    const uint64_t resident = std::min(available, group_left) + in_blocks,
                   all = std::min(available + swap, group_left) + in_blocks;
    const auto beyond_blocks = [&](uint64_t most) { return most - std::min(most, in_blocks); };
    return {beyond_blocks(resident / 4 * 3), beyond_blocks(all / 16 * 15)};
}

HostBlock::Room HostBlock::room() {
    return room_of(text_of_file("/proc/meminfo"), left_in_group(), bytes_in_blocks.load());
}

std::shared_ptr<HostBlock> HostBlock::make(const DriverApi& driver, uint64_t bytes, const Room& room,
                                           uint64_t* missing) {
    const uint64_t most = std::max(room.pinned, room.pageable);
    *missing = bytes - std::min(bytes, most);
    if (*missing) return nullptr;
    const bool fits_pinned = bytes <= room.pinned, fits_pageable = bytes <= room.pageable;
    const uint64_t whole = std::exchange(bytes, std::min(bytes, kLargest));
    void* const place =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) return *missing = whole, nullptr;
    madvise(place, bytes, MADV_HUGEPAGE);  // fewer pages to pin; no matter if there are none
    if (fits_pinned) make_pages(static_cast<char*>(place), bytes);
    const bool pinned = fits_pinned && driver.cuMemHostRegister_v2 &&
                        driver.cuMemHostRegister_v2(place, bytes, 0) == CUDA_SUCCESS;
    if (!pinned && !fits_pageable) {
        munmap(place, bytes);
        return *missing = whole - room.pageable, nullptr;
    }
    bytes_in_blocks.fetch_add(bytes);
    return std::shared_ptr<HostBlock>(new HostBlock(driver, static_cast<char*>(place), bytes, pinned));
}

HostBlock::~HostBlock() {
    while (pinned_ && driver_.cuMemHostUnregister(base_) == CUDA_ERROR_NOT_READY)
        std::this_thread::sleep_for(kUnpinPoll);
    munmap(base_, bytes_);
    bytes_in_blocks.fetch_sub(bytes_);
}

}  // namespace smt::runtime::server
