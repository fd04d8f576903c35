// A second home of a stream, on other multiprocessors. A launch that goes there is behind all that was enqueued on the
// stream before it, and in front of all that comes after: events see to that, so that nobody else need know.
// It costs four operations, about 1 us of processor time on an H200 (docs/results.md#green-and-back).
//
// Any thread.
#pragma once

#include <cuda.h>

#include <map>
#include <mutex>

#include "runtime/dispatch/sm_sets.h"

namespace smt::runtime::dispatch {

class SideStream {
public:
    SideStream(const DriverApi& driver, const SmSets& sets) : driver_(driver), sets_(sets) {}
    ~SideStream();   // nothing runs there any more
    SideStream(const SideStream&) = delete;
    SideStream& operator=(const SideStream&) = delete;

    // `away` is where to launch now; `set` null: on all multiprocessors.
    CUresult leave(CUstream home, const SmSet* set, CUstream* away);
    CUresult come_back(CUstream home, CUstream away);   // once it is launched

private:
    const DriverApi& driver_;
    const SmSets& sets_;
    std::mutex mutex_;   // the rest
    std::map<const SmSet*, CUstream> streams_;
    CUevent there_ = nullptr;
    CUevent back_ = nullptr;
};

}  // namespace smt::runtime::dispatch
