// How much device memory the variables of an image take (__device__, and what the compiler puts beside them).
//
// Asked at each load, so the text of PTX is looked through and not parsed: declarations stand outside of
// bodies. Constants are left out: a module has 64 KiB of them at most.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/image/choice.h"

namespace smt::image {

// Of the entry that the device loads. 0 for what is no image, or holds nothing for it. A sum that 64 bits do
// not hold is the largest number.
uint64_t variable_bytes(std::string_view image, const Device& device);

uint64_t variable_bytes_of_cubin(std::string_view cubin);
uint64_t variable_bytes_of_ptx(std::string_view text);

}  // namespace smt::image
