// Whether a worker may run one block after the other. The name of a managed form says so, so a launcher needs
// no more than the name of a form that is built into a program.
#pragma once

#include <array>
#include <string_view>

namespace smt {

enum class Reuse : unsigned {
    kAlways,
    // If a block's width is a multiple of a warp's: its threads leave early, but a whole warp at a time.
    kByWarps,
    kNever,  // some threads of a block leave early (kSingle of smt_worker.h)
};
inline constexpr std::array kReuses{Reuse::kAlways, Reuse::kByWarps, Reuse::kNever};

// The prefix of a managed form's name, before the kernel's own name.
constexpr std::string_view prefix_of(Reuse reuse) {
    return reuse == Reuse::kNever ? "smt_single_" : reuse == Reuse::kByWarps ? "smt_warps_" : "smt_";
}

// Whether the form supports blocks of this width.
constexpr bool suits(Reuse reuse, unsigned width) { return reuse != Reuse::kByWarps || width % 32 == 0; }

}  // namespace smt
