#include "runtime/dispatch/detour.h"

#include "runtime/dispatch/supplies.h"

namespace smt::runtime::dispatch {

SmSetPointer Detour::make(int multiprocessors) const { return supplies_.places_for(multiprocessors); }

}  // namespace smt::runtime::dispatch
