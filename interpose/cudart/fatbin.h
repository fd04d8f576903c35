// The images that nvcc puts into a program: a wrapper that points to a container ("fatbin") of machine
// code and PTX.
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
    // Of a linked image: the fatbins that it was made of, then null. The linked one itself holds machine
    // code only; the parts hold PTX, which is what the simulated device can link.
    const void* const* parts;
};

// Loads an image, linked anew from its parts where it has any.
CUresult load_fatbin(const FatbinWrapper* wrapper, CUlibrary* library);

}  // namespace smt::cudart
