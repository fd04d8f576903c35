// The length of an image that an application passes. The driver's interface passes a bare pointer, so the
// length is read from the image itself.
#pragma once

#include <cstdint>

namespace smt::interpose {

// The bytes of a module or library image: a fatbin's wrapper struct, a fatbin, a cubin, or NUL-terminated
// text (the NUL counts). {nullptr, 0}: no image.
struct ImageBytes {
    const void* data;
    uint64_t bytes;
};
ImageBytes image_bytes(const void* image);

}  // namespace smt::interpose
