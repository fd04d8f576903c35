#include "runtime/dispatch/side_stream.h"

#include "runtime/protocol/try.h"

namespace smt::runtime::dispatch {

SideStream::~SideStream() {
    for (const auto& [set, stream] : streams_) driver_.cuStreamDestroy_v2(stream);
    if (there_) driver_.cuEventDestroy_v2(there_);
    if (back_) driver_.cuEventDestroy_v2(back_);
}

CUresult SideStream::find(CUstream home, const SmSet* set, CUstream* away) {
    std::lock_guard lock(mutex_);
    return find_locked(home, set, away);
}

CUresult SideStream::find_locked(CUstream home, const SmSet* set, CUstream* away) {
    auto known = streams_.find(set);
    if (known == streams_.end()) {
        int priority = 0;
        CUstream made = nullptr;
        driver_.cuStreamGetPriority(home, &priority);
        SMT_TRY(sets_.make_stream(set, priority, &made));
        known = streams_.emplace(set, made).first;
    }
    *away = known->second;
    return CUDA_SUCCESS;
}

CUresult SideStream::leave(CUstream home, const SmSet* set, CUstream* away) {
    std::lock_guard lock(mutex_);
    if (!there_) SMT_TRY(driver_.cuEventCreate(&there_, CU_EVENT_DISABLE_TIMING));
    if (!back_) SMT_TRY(driver_.cuEventCreate(&back_, CU_EVENT_DISABLE_TIMING));
    SMT_TRY(find_locked(home, set, away));
    SMT_TRY(driver_.cuEventRecord(there_, home));
    return driver_.cuStreamWaitEvent(*away, there_, 0);
}

CUresult SideStream::come_back(CUstream home, CUstream away) {
    std::lock_guard lock(mutex_);
    CUresult status = driver_.cuEventRecord(back_, away);
    return status == CUDA_SUCCESS ? driver_.cuStreamWaitEvent(home, back_, 0) : status;
}

}  // namespace smt::runtime::dispatch
