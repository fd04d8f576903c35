// Whether the code of an image refers to variables of the image: __device__, __constant__ and __managed__
// ones, texture, surface and sampler references. If not, the image can be loaded twice, and it makes no
// difference which copy a kernel runs from. A variable that the code does not name means nothing.
//
// Tables of NVIDIA's mathematical functions (__cudart_i2opi_f), to which nothing writes, are counted with
// `tables` only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace smt::image {

// Reads words and not syntax: a name that stands in a function's body is a use.
bool uses_variables_of_ptx(std::string_view text, bool tables = false);

// Of a text's constants (.const) and its other variables. What code reads of a constant is what it was loaded
// with until a call writes it. A constant's generic address (cvta.const) is another one in another context.
struct TextUses {
    bool variables = false;              // code refers to variables that are no constants, textures included
    bool constant_addresses = false;     // code, or a variable's first value, has the address of a constant
    bool within = false;                 // a body declares a variable
    std::vector<std::string> constants;  // their names, without NVIDIA's
};
TextUses uses_of_ptx(std::string_view text, bool tables = false);

// True if a variable has a constant bank, or a place in a table of addresses (.nv.constant4). ptxas gives one
// to variables that nothing uses, too, if their source defines them. True also for what cannot be read.
bool uses_variables_of_cubin(std::string_view cubin, bool tables = false);

}  // namespace smt::image
