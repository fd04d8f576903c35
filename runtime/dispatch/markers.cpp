#include "runtime/dispatch/markers.h"

#include <algorithm>

namespace smt::runtime::dispatch {

Markers::~Markers() {
    for (const Event& each : events_) {
        if (each.event) driver_.cuEventDestroy_v2(each.event);
    }
    if (words_) pool_.give(words_);
}

CUresult Markers::write(CUstream stream, const std::atomic<uint64_t>* word, uint64_t number) const {
    const auto offset = reinterpret_cast<const char*>(word) - reinterpret_cast<const char*>(words_);
    return driver_.cuStreamWriteValue64_v2(stream, address_ + static_cast<CUdeviceptr>(offset), number, 0);
}

CUresult Markers::mark() {
    if (end_ - first_ == kEvents) look();
    return end_ - first_ < kEvents && record() ? CUDA_SUCCESS : mark_by_write();
}

CUresult Markers::mark_by_write() {
    const CUresult status = write(stream_, &words_->reached, last_ + 1);
    if (status == CUDA_SUCCESS) ++last_;
    return status;
}

bool Markers::record() {
    Event& next = at(end_);
    if (!next.event && driver_.cuEventCreate(&next.event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
        next.event = nullptr;
        return false;
    }
    if (driver_.cuEventRecord(next.event, stream_) != CUDA_SUCCESS) return false;
    next.marker = ++last_;
    ++end_;
    return true;
}

uint64_t Markers::reached() {
    look();
    return std::max(seen_, words_->reached.load(std::memory_order_acquire));
}

// Events are over in their order. To ask for one that is over takes ten times as long as for one that is not.
void Markers::look() {
    uint64_t over = first_, not_over = end_;
    if (over == not_over || !is_over(over)) return;
    for (++over; over < not_over;) {
        const uint64_t middle = over + (not_over - over) / 2;
        if (is_over(middle))
            over = middle + 1;
        else
            not_over = middle;
    }
    first_ = over;
    seen_ = at(over - 1).marker;
}

}  // namespace smt::runtime::dispatch
