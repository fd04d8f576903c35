// The variables of a cubin that can stand in memory of the program's own, and how its bytes change so that
// they do.
//
// Like managed ones (managed.h): the driver places a module's variables in memory that is lost with its
// context. Where code and constants have the address of a variable by relocations only, another address is
// written in their place.
//
//   MovablePlan found = movable_plan(cubin);
//   if (found.stays.empty()) ... with the changes of found.plan no variable that code can name is the
//   driver's
//
// The plan depends on the bytes alone. Variables stand in it in the order of their names, the first one
// kFirst bytes behind the block's beginning, which is no variable's address.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/image/managed.h"

namespace smt::image {

// Why constants count as used in ways that cannot be followed: code takes a constant's address; or it may, as
// where its architecture has the addresses of banks is not known.
inline constexpr std::string_view kConstantTaken = "the address of a __constant__ variable";
inline constexpr std::string_view kConstantsUnread =
    "__constant__ variables in code of an unknown architecture, which may take their addresses";

struct MovablePlan {
    static constexpr uint64_t kFirst = 256;
    ManagedPlan plan;                    // bytes 0: nothing is moved
    std::string stays;                   // what of the rest code refers to, for people; empty: nothing
    std::vector<std::string> constants;  // names in .nv.constant3, without NVIDIA's
};

// Constants count where code takes their address (constant_bank.h): what it reads of them by a bank is what
// they are loaded with. NVIDIA's tables (__cudart_i2opi_f), to which nothing writes, are left alone, but for
// those in global memory with `tables`. Trusts nothing in the cubin. Time: as it has symbols and relocations,
// times a logarithm.
[[nodiscard]] MovablePlan movable_plan(std::string_view cubin, bool tables = false);

}  // namespace smt::image
