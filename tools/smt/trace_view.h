// What `smt trace` writes, apart from the command so that tests can read it: a journal in the trace-event
// format that Perfetto (ui.perfetto.dev) and chrome://tracing open.
//
//   multiprocessors   a track each: which tenant's kernel ran there, from when to when
//   tenants           a track each: launches, as spans where it is known when they ran, else as moments
//   decisions         what the policy decided and why, and how long stops took
//   server            sessions, notes
//
// What overlaps on a track gets further tracks of the same name with a number. The journal keeps one span for
// each launch, not one for each block: on all SMs of a launch it is the launch's.
//
// Times are the journal's, from its oldest entry on. Workers of managed kernels write down the GPU's timer,
// which counts from somewhere else: it is shifted by as much as brings the entry that followed its kernel
// soonest to that kernel's end. So kernels stand right among themselves, and up to some milliseconds late
// among the rest.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "runtime/journal/journal.h"

namespace smt::tools {

// What ended in the last `last_ns` of the journal. In pieces: a full journal of kernels on all SMs of a large
// device makes gigabytes, which viewers cannot open. Returns how many events there are.
uint64_t write_trace(const runtime::journal::Reader& journal, uint64_t last_ns,
                     const std::function<void(std::string_view)>& write);

}  // namespace smt::tools
