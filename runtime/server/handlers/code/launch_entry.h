// The journal entry of a launch.
#pragma once

#include "runtime/dispatch/sm_sets.h"
#include "runtime/journal/journal.h"
#include "runtime/protocol/record.h"
#include "runtime/server/call.h"
#include "runtime/server/code/code_table.h"

namespace smt::runtime::server::handlers {

// `treatment`: a name of the journal (treatment.h).
journal::Entry launch_entry(Call& call, const LoadedKernel& kernel, const protocol::Launch& launch,
                            uint32_t treatment);

// Enters the SMs that the launch may use, for launches without a report of those that it used.
void put_places(Call& call, const dispatch::SmSet& places, journal::Entry& entry);

// Notes a kernel that is captured or becomes a graph node. Graphs run as a whole: which of their kernels ran
// is not reported.
void note_into_graph(Call& call, const LoadedKernel& kernel, const protocol::Launch& launch);

}  // namespace smt::runtime::server::handlers
