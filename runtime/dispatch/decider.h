// What decides on a stream's next step: the policy's orders (orders.h), or an experiment in their place
// (experiments.h). The dispatcher carries steps out, the same for all.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "runtime/dispatch/control_block.h"
#include "runtime/schedule/snapshot.h"

namespace smt::runtime::dispatch {

class ManagedStream;

// What is done to a stream's first unfinished launch, and to those behind it.
struct Step {
    enum class What {
        kNone,
        kStop,         // in pass-through mode: all that is in flight stops
        kHalt,         // in quota mode: the run stops
        kPassThrough,  // stopped: all launches resume
        kRun,          // stopped: the first launch runs with `quotas`, at most `slice` of its blocks (0: all)
        kChange,       // in quota mode: other `quotas`, and `growth` further workers
        kGrow,         // in quota mode: `growth` further workers
        kFillUp,       // in quota mode: as many further workers as find a place
    } what = What::kNone;
    QuotaTable quotas = {};
    uint64_t slice = 0;
    uint32_t growth = 0;

    bool operator==(What other) const { return what == other; }
};

// A stream with unfinished launches, at a look.
struct View {
    ManagedStream& stream;  // to be asked only
    const schedule::Kernel& kernel;
    bool passes_through;
    schedule::TimePoint now;
};

class Decider {
public:
    virtual ~Decider() = default;
    virtual Step next(const View& view) = 0;
    virtual void done(const Step&) {}                   // it was carried out; else the next look asks again
    virtual void idle(schedule::TimePoint) {}           // at a look the stream has no launches
    virtual bool samples() const { return false; }      // next() needs the progress of running launches
    virtual std::string summary() const { return ""; }  // for the journal, at the stream's end
};

}  // namespace smt::runtime::dispatch
