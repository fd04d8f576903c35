// What the journal is told of a launch.
#pragma once

#include "runtime/dispatch/sm_sets.h"
#include "runtime/journal/journal.h"
#include "runtime/protocol/record.h"
#include "runtime/server/call.h"
#include "runtime/server/handlers/code_table.h"

namespace smt::runtime::server::handlers {

// `treatment`: a name of the journal (treatment.h).
journal::Entry launch_entry(Call& call, const LoadedKernel& kernel, const protocol::Launch& launch, uint32_t treatment);

// What it may use, where nobody knows what it did use.
void put_places(Call& call, const dispatch::SmSet& places, journal::Entry& entry);

// A kernel that was captured, or made a node: graphs run as a whole, and nobody hears which of their kernels ran.
void note_into_graph(Call& call, const LoadedKernel& kernel, const protocol::Launch& launch);

}  // namespace smt::runtime::server::handlers
