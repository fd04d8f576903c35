// What a program can ask an image for by name, and whether another image has all of it.
#pragma once

#include <string>
#include <string_view>

namespace smt::runtime::jit {

// What `replacement` lacks of `original`, in words; empty: it can stand in for it. Both are PTX, or both cubins,
// as NVRTC makes them, and neither is trusted. Of PTX the kernels with their parameters and the visible variables
// with their types are compared, of a cubin the names of its kernels. What cannot be read lacks everything.
std::string missing_from(std::string_view original, std::string_view replacement);

}  // namespace smt::runtime::jit
