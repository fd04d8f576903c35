// The images that nvcc embeds in a program: a wrapper that points to a container ("fatbin") of machine code
// and PTX.
#pragma once

#include <cstdint>

#include "driver_api.gen.h"

namespace smt::cudart {

struct FatbinWrapper {
    static constexpr uint32_t kMagic = 0x466243b1;
    static constexpr uint32_t kLinked = 2;  // the version of what nvcc -rdc=true linked

    uint32_t magic;
    uint32_t version;
    const void* data;
    // For a linked image: the fatbins that it was made of, then null. The linked image holds machine code
    // only. The parts hold PTX, which the simulated device can link.
    const void* const* parts;
};

// Loads an image. An image with parts is linked again from them.
CUresult load_fatbin(const FatbinWrapper* wrapper, CUlibrary* library);

}  // namespace smt::cudart
