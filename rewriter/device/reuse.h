// Whether a worker may run one block after the other. Whoever launches a managed form of a program that was
// built with it can tell by the form's name.
#pragma once

#include <array>
#include <string_view>

namespace smt {

enum class Reuse : unsigned {
    kAlways,
    kByWarps,   // where a block's width is a multiple of a warp's: its threads leave early, but a whole warp at a time
    kNever,     // some of its threads leave early (kSingle of smt_worker.h)
};
inline constexpr std::array kReuses{Reuse::kAlways, Reuse::kByWarps, Reuse::kNever};

// What stands before the kernel's own name in that of its managed form.
constexpr std::string_view prefix_of(Reuse reuse) {
    return reuse == Reuse::kNever ? "smt_single_" : reuse == Reuse::kByWarps ? "smt_warps_" : "smt_";
}

// Whether the form is for blocks of this width at all.
constexpr bool suits(Reuse reuse, unsigned width) { return reuse != Reuse::kByWarps || width % 32 == 0; }

}  // namespace smt
