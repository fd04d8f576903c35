// A side stream: a second stream, on another set of SMs, for single launches of a stream. Events order such a
// launch behind everything enqueued on the stream before it and ahead of everything after it, so no other
// code has to know. Cost: four driver operations. Measured: about 1 us of CPU time on an H200
// (docs/results.md#green-and-back).
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
    ~SideStream();  // precondition: nothing runs there
    SideStream(const SideStream&) = delete;
    SideStream& operator=(const SideStream&) = delete;

    CUresult find(CUstream home, const SmSet* set, CUstream* away);  // the stream, made on its first use
    // `away`: the stream to launch on. `set` null: all SMs.
    CUresult leave(CUstream home, const SmSet* set, CUstream* away);
    CUresult come_back(CUstream home, CUstream away);  // after the launch

private:
    const DriverApi& driver_;
    const SmSets& sets_;
    CUresult find_locked(CUstream home, const SmSet* set, CUstream* away);

    std::mutex mutex_;  // guards the rest
    std::map<const SmSet*, CUstream> streams_;
    CUevent there_ = nullptr;
    CUevent back_ = nullptr;
};

}  // namespace smt::runtime::dispatch
