// The forms of one stream's launches (launch_form.h), and which of them a launch has.
//
// Not thread-safe: guarded by its stream's lock.
#pragma once

#include <algorithm>

#include "runtime/dispatch/door_form.h"
#include "runtime/dispatch/graph_form.h"
#include "runtime/dispatch/launch_queue.h"
#include "runtime/dispatch/persistent_form.h"

namespace smt::runtime::dispatch {

class LaunchForms {
public:
    using Works = LaunchQueue::Works;

    explicit LaunchForms(const LaunchForm::Parts& parts) : persistent_(parts), door_(parts), graph_(parts) {}

    LaunchForm& of(const Work& work) {
        if (work.graph) return graph_;
        return work.function->has_door() ? static_cast<LaunchForm&>(door_) : persistent_;
    }
    PersistentForm& persistent() { return persistent_; }
    DoorForm& door() { return door_; }

    // `passed`: what is in flight is not stopped any more.
    bool may_follow(const Work& work, const Works& in_flight, bool passed = false) {
        if (in_flight.empty()) return true;
        const bool alike = in_flight.back().function->form == work.function->form;
        if (!alike) return passed && !work.graph && of(work).may_follow(in_flight.size());
        return of(work).may_follow(in_flight.size()) && of(work).follows(work, in_flight.front());
    }
    // One stop is of all.
    static bool alike(const Works& in_flight) {
        return std::ranges::all_of(in_flight, [&](const Work& work) {
            return work.function->form == in_flight.front().function->form;
        });
    }
    // The first launch is the one that runs. But all look at one word, and one that has checks and must not
    // be begun anew would leave its blocks, too.
    bool ends_blocks(const Works& in_flight) {
        return of(in_flight.front()).ends_blocks(in_flight.front()) &&
               std::ranges::all_of(in_flight,
                                   [](const Work& work) { return !work.function->checked || work.repeats; });
    }

private:
    PersistentForm persistent_;
    DoorForm door_;
    GraphForm graph_;
};

}  // namespace smt::runtime::dispatch
