// Markers of one stream: numbered places in it, of which it is seen when the GPU has come so far.
//
// A marker is an event without a time, which costs the GPU nothing. A word that the GPU writes keeps the next
// kernel waiting for 2 us, the host for 0.9 instead of 0.1 (tools/bench/probes/markers.cu). So there is one
// only where all events are in use, and where the end of a stop is polled for.
//
// Not thread-safe.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/dispatch/stream_words.h"

namespace smt::runtime::dispatch {

class Markers {
public:
    Markers(const DriverApi& driver, StreamWordsPool& pool, CUstream stream)
        : driver_(driver), pool_(pool), stream_(stream) {}
    ~Markers();
    Markers(const Markers&) = delete;
    Markers& operator=(const Markers&) = delete;

    CUresult open() { return pool_.take(&words_, &address_) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY; }
    StreamWords& words() const { return *words_; }
    // `*word` becomes `number` when `stream` has come so far.
    CUresult write(CUstream stream, const std::atomic<uint64_t>* word, uint64_t number) const;

    void at(CUstream stream) { stream_ = stream; }  // of further markers, behind the earlier ones
    CUresult mark();                                // behind all that was enqueued
    CUresult mark_by_write();                       // likewise: seen without a call of the driver
    uint64_t last() const { return last_; }
    uint64_t reached();  // asks the driver for events that are not known to be over

    static constexpr uint64_t kEvents = 32;

private:
    struct Event {
        CUevent event = nullptr;  // made on demand
        uint64_t marker = 0;
    };
    Event& at(uint64_t number) { return events_[number % kEvents]; }
    bool is_over(uint64_t number) { return driver_.cuEventQuery(at(number).event) == CUDA_SUCCESS; }
    void look();
    bool record();

    const DriverApi& driver_;
    StreamWordsPool& pool_;
    CUstream stream_;
    StreamWords* words_ = nullptr;
    CUdeviceptr address_ = 0;
    uint64_t last_ = 0, seen_ = 0;  // by events
    std::array<Event, kEvents> events_;
    uint64_t first_ = 0, end_ = 0;  // events not known to be over: [first_, end_)
};

}  // namespace smt::runtime::dispatch
