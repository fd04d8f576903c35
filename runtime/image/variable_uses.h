// Whether the code of an image refers to variables of the image: __device__, __constant__ and __managed__
// ones, texture, surface and sampler references. If not, the image can be loaded twice, and it makes no
// difference which copy a kernel runs from. A variable that the code does not name means nothing.
//
// Tables of NVIDIA's mathematical functions (__cudart_i2opi_f) are not counted: nothing writes to them.
#pragma once

#include <string_view>

namespace smt::image {

// Reads words and not syntax: a name that stands in a function's body is a use.
bool uses_variables_of_ptx(std::string_view text);

// True if a variable has a constant bank, or a place in a table of addresses (.nv.constant4). ptxas gives one
// to variables that nothing uses, too, if their source defines them. True also for what cannot be read.
bool uses_variables_of_cubin(std::string_view cubin);

}  // namespace smt::image
