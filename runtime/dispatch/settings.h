// The dispatcher's settings, from the server's environment variables.
#pragma once

#include "runtime/schedule/snapshot.h"

namespace smt::runtime::dispatch {

struct Settings {
    bool gpu_time = false;       // of each kernel, for the journal (kernel_times.h)
    bool maps = false;           // each worker records its mapping, for the journal
    schedule::Duration ahead{};  // launch-ahead limit of a stream, in GPU time; zero: none (launch_ahead.h)
};

// A device that keeps its own clock would make the launch-ahead limit visible in its times, so there the
// default is no limit.
Settings read_settings(bool keeps_a_clock);

}  // namespace smt::runtime::dispatch
