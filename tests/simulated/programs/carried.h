// Programs that a takeover has to carry: the first call that fails ends them, and they say its error.
#pragma once

#include "tests/preload/program.h"

#define GO(call) \
    if (const CUresult status_ = (call); status_ != CUDA_SUCCESS) carried::end_with(status_)

namespace carried {

[[noreturn]] inline void end_with(CUresult status) {
    std::puts(preload::name_of(status));
    std::exit(0);
}

}  // namespace carried
