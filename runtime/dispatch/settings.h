// What the environment says to a server's dispatcher.
#pragma once

#include "runtime/schedule/snapshot.h"

namespace smt::runtime::dispatch {

struct Settings {
    bool maps = false;             // every worker writes down where it ran, and the journal says so
    schedule::Duration ahead{};    // of the GPU's time, that the driver has of a stream; zero: without end (launch_ahead.h)
};

// A device that keeps a clock of its own would see when launches are handed over: there all are at once, unless it is asked for.
Settings read_settings(bool keeps_a_clock);

}  // namespace smt::runtime::dispatch
