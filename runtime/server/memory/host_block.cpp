// See host_block.h.
#include "runtime/server/memory/host_block.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>
#include <utility>

#include "runtime/server/memory/block_addresses.h"

namespace smt::runtime::server {

namespace {

constexpr auto kUnpinPoll = std::chrono::milliseconds(1);
constexpr uint64_t kNoBound = ~uint64_t{0};
constexpr uint64_t kPagesAtOnce = 4ull << 20;
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

// In pieces: a change of the process's list of mappings waits for each under way, and all others for it.
void make_pages(char* place, uint64_t bytes) {
    for (uint64_t at = 0; at < bytes; at += kPagesAtOnce)
        madvise(place + at, std::min(kPagesAtOnce, bytes - at), kPopulateForWriting);
}

// One thread at a time: the driver takes them in turns in any case, and what else wants its lock, such as the
// copies of the move under way, then waits for one of them and not for all.
bool pin(const DriverApi& driver, char* place, uint64_t bytes) {
    static std::mutex one;
    const std::lock_guard lock(one);
    return driver.cuMemHostRegister_v2 && driver.cuMemHostRegister_v2(place, bytes, 0) == CUDA_SUCCESS;
}

// For as many blocks as the machine has memory for. It stays: blocks may outlive all else.
BlockAddresses& addresses() {
    static auto* const all =
        new BlockAddresses(HostBlock::kLargest, meminfo_bytes(text_of_file("/proc/meminfo"), "MemTotal"));
    return *all;
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
    char* const place = addresses().take();
    if (!place) return *missing = whole, nullptr;
    if (fits_pinned) make_pages(place, bytes);  // ahead of pin(), which one thread at a time is in
    const bool pinned = fits_pinned && pin(driver, place, bytes);
    if (!pinned && !fits_pageable) {
        addresses().give_back(place);
        return *missing = whole - room.pageable, nullptr;
    }
    bytes_in_blocks.fetch_add(bytes);
    return std::shared_ptr<HostBlock>(new HostBlock(driver, place, bytes, pinned));
}

HostBlock::~HostBlock() {
    while (pinned_ && driver_.cuMemHostUnregister(base_) == CUDA_ERROR_NOT_READY)
        std::this_thread::sleep_for(kUnpinPoll);
    addresses().give_back(base_);
    bytes_in_blocks.fetch_sub(bytes_);
}

}  // namespace smt::runtime::server
