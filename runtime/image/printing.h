// Which kernels of an image may print (device printf): those that can reach a call of vprintf.
//
//   cubin   the attribute EXTERNS of a kernel lists every function outside of the cubin that it may reach:
//   ptxas and
//           nvlink follow calls by name, through pointers and through virtual functions
//   PTX     calls by name are followed; a kernel that calls through a pointer may reach every function of the
//   text
//
// A kernel that starts kernels may start one that prints. A failed assert is no print: it calls __assertfail,
// whose words the driver writes to stderr, and ends the context.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "runtime/image/choice.h"

namespace smt::image {

struct Printing {
    bool all = false;  // every kernel counts as one that prints,
    std::string why;   // because the image cannot be read; empty: it was read
    std::set<std::string, std::less<>> kernels;
    bool may(std::string_view kernel) const { return all || kernels.contains(kernel); }
};

// Of the entry that the device runs.
[[nodiscard]] Printing printing_kernels(std::string_view image, const Device& device);

}  // namespace smt::image
