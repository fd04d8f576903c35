// A form: how launches of a kind are given to the driver, stopped and resumed. Work::function says which form
// a launch has; what it can do is abilities_of() (work.h).
//
//     persistent_form   its workers stop between two blocks and keep to quotas
//     door_form         its door refuses CTAs from a stop on
//     graph_form        a graph: the doors of its kernels do
//     (whole)           unmanaged work: launched as it is, by the program's thread (unmanaged.h)
//
// A stream launches in one form at a time: two forms are stopped by two words, and a launch must not begin
// after an earlier one was stopped.
//
// Not thread-safe: guarded by its stream's lock. Nothing here waits for the GPU, but for collect() where
// reports came too early.
#pragma once

#include <cuda.h>

#include "runtime/device/held_up.h"
#include "runtime/dispatch/control_block.h"
#include "runtime/dispatch/detour.h"
#include "runtime/dispatch/learner.h"
#include "runtime/dispatch/markers.h"
#include "runtime/dispatch/tenants.h"
#include "runtime/dispatch/work.h"

namespace smt::runtime::dispatch {

class LaunchForm {
public:
    // What the forms of a stream share.
    struct Parts {
        Dispatcher& dispatcher;
        const Tenant& tenant;
        CUstream stream;
        Markers& markers;
        Learner& learner;
        Detour& detour;
    };
    explicit LaunchForm(const Parts& parts) : parts_(parts) {}
    virtual ~LaunchForm() = default;
    LaunchForm(const LaunchForm&) = delete;
    LaunchForm& operator=(const LaunchForm&) = delete;

    virtual bool suits(const Work&) const { return true; }
    virtual bool may_follow(size_t in_flight) const = 0;  // one more, behind so many of this form

    // Whether `work` may be in flight with what is there of this form, of which `first` is the oldest.
    virtual bool follows(const Work& /*work*/, const Work& /*first*/) const { return true; }

    // Before a launch in pass-through mode. `idle`: nothing is in flight. `*anew`: what stops launches was
    // set up anew in the stream's order; a stop before the GPU gets there would be lost.
    virtual CUresult prepare(const Work& work, bool idle, bool* anew) = 0;
    virtual CUresult launch(Work& work) = 0;  // all that is left of it, if Work::covered can say so much
    // The same in quota mode. `blocks`: a range, the next so many (0: all that are left).
    virtual CUresult prepare_run(const Work& work, const QuotaTable& /*quotas*/, bool* anew) {
        return prepare(work, true, anew);
    }
    virtual CUresult run(Work& work, uint64_t /*blocks*/) { return launch(work); }

    // Another operation follows what is in flight. True: a stop leaves that alone from now on. False: a stop
    // has to wait for its end.
    virtual bool let_pass() { return false; }
    virtual bool worth_stopping(const Work&) const { return true; }
    // Whether a stop should end the blocks of `work` before their end, of which they are begun anew.
    virtual bool ends_blocks(const Work&) const { return false; }
    // All launches that are in flight, or the run. `inside`: blocks that can be begun anew are ended.
    virtual CUresult stop(bool inside) = 0;
    // Enqueues a report of how far launches got, from the first to the last in flight.
    virtual CUresult report(const Work& /*first*/, const Work& /*last*/) { return CUDA_SUCCESS; }
    // The report is there, or all of them have ended. `first`: as in report().
    virtual CUresult collect(const Work& first) = 0;
    virtual void settle(Work& work) = 0;  // accounts for a launch that has ended or was stopped
    virtual void settle_run(Work& work, bool /*halted*/) { settle(work); }  // for the run of quota mode

protected:
    device::LaunchOf launch_of(const Work& work) const {  // for the driver's calls that make it
        return {parts_.tenant.session, work.entry.name, parts_.tenant.kernel_limit};
    }
    const Parts parts_;
};

// CTAs of the launch that fit on an SM. NOT_SUPPORTED: none, where the kernel itself might fit.
CUresult fitting(const DriverApi& driver, const Work& work, uint32_t* ctas);

}  // namespace smt::runtime::dispatch
