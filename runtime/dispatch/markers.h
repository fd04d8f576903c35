// Markers of one stream: numbers that the GPU writes when it has come so far in the stream. Not thread-safe,
// but for reached().
#pragma once

#include "runtime/dispatch/stream_words.h"

namespace smt::runtime::dispatch {

class Markers {
public:
    Markers(const DriverApi& driver, StreamWordsPool& pool, CUstream stream)
        : driver_(driver), pool_(pool), stream_(stream) {}
    ~Markers() {
        if (words_) pool_.give(words_);
    }
    Markers(const Markers&) = delete;
    Markers& operator=(const Markers&) = delete;

    CUresult open() { return pool_.take(&words_, &address_) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY; }
    StreamWords& words() const { return *words_; }
    // `*word` becomes `number` when `stream` has come so far.
    CUresult write(CUstream stream, const std::atomic<uint64_t>* word, uint64_t number) const {
        const auto offset = reinterpret_cast<const char*>(word) - reinterpret_cast<const char*>(words_);
        return driver_.cuStreamWriteValue64_v2(stream, address_ + static_cast<CUdeviceptr>(offset), number,
                                               0);
    }

    CUresult mark() {  // behind all that was enqueued
        const CUresult status = write(stream_, &words_->reached, last_ + 1);
        if (status == CUDA_SUCCESS) ++last_;
        return status;
    }
    uint64_t last() const { return last_; }
    uint64_t reached() const { return words_->reached.load(std::memory_order_acquire); }

private:
    const DriverApi& driver_;
    StreamWordsPool& pool_;
    const CUstream stream_;
    StreamWords* words_ = nullptr;
    CUdeviceptr address_ = 0;
    uint64_t last_ = 0;
};

}  // namespace smt::runtime::dispatch
