// Makes the copy with doors of a graph (graph_copies.h).
#pragma once

#include <cuda.h>

#include <memory>
#include <string>

#include "runtime/dispatch/dispatcher.h"
#include "runtime/server/code/code_table.h"

namespace smt::runtime::server {

// `flags`: those with which the program instantiated it. Null, with `why` set: there is none. May wait as a
// load does: the caller holds no lock of the dispatcher's.
std::shared_ptr<dispatch::GraphDoors> copy_with_doors(dispatch::Dispatcher& dispatcher,
                                                      const dispatch::Tenant& tenant, const CodeTable& code,
                                                      const TenantMemory& memory, CUgraph graph,
                                                      unsigned long long flags, std::string* why);

}  // namespace smt::runtime::server
