#include "runtime/dispatch/stream_words.h"

#include <sys/mman.h>

#include <new>

namespace smt::runtime::dispatch {

namespace {

constexpr uint32_t kMostStreams = 4096;
constexpr size_t kWordsBytes = sizeof(StreamWords);  // whole cache lines: the GPU writes them

}  // namespace

StreamWordsPool::~StreamWordsPool() {
    if (!words_) return;
    driver_.cuMemHostUnregister(words_);
    munmap(words_, kMostStreams * kWordsBytes);
}

bool StreamWordsPool::open() {
    if (words_) return true;
    void* memory =
        mmap(nullptr, kMostStreams * kWordsBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    constexpr unsigned kFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
    if (driver_.cuMemHostRegister_v2(memory, kMostStreams * kWordsBytes, kFlags) != CUDA_SUCCESS) {
        munmap(memory, kMostStreams * kWordsBytes);
        return false;
    }
    words_ = static_cast<char*>(memory);
    address_ = reinterpret_cast<CUdeviceptr>(memory);  // unified addresses
    for (uint32_t i = kMostStreams; i > 0; --i) free_.push_back(i - 1);
    return true;
}

bool StreamWordsPool::take(StreamWords** words, CUdeviceptr* address) {
    std::lock_guard lock(mutex_);
    if (!open() || free_.empty()) return false;
    const uint32_t index = free_.back();
    free_.pop_back();
    *words = new (words_ + index * kWordsBytes) StreamWords{};
    *address = address_ + index * kWordsBytes;
    return true;
}

void StreamWordsPool::give(StreamWords* words) {
    std::lock_guard lock(mutex_);
    free_.push_back(static_cast<uint32_t>((reinterpret_cast<char*>(words) - words_) / kWordsBytes));
}

}  // namespace smt::runtime::dispatch
