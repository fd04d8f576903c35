// What the kernels of an image read and write, by its PTX (rewriter/ptx/effects.h).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "rewriter/ptx/effects.h"
#include "runtime/image/image.h"

namespace smt::image {

using Effects = std::map<std::string, ptx::Effects>;  // by kernel

// Problem: there is no PTX for the device, it cannot be read, or it is for another architecture than machine
// code that the device runs. Machine code for the same one was made of the same source.
[[nodiscard]] std::variant<Effects, Problem> effects(std::string_view image, int architecture);

}  // namespace smt::image
