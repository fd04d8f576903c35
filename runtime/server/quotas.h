// What one session may have of the server's at once. Beyond it the call is refused
// (CUDA_ERROR_OUT_OF_MEMORY), and the log says once in a session which quota that was and which setting
// changes it.
#pragma once

#include <cstdint>

#include "runtime/settings/read.h"

namespace smt::runtime::server {

struct Quotas {
    uint32_t lanes = settings::default_number(settings::Id::kSessionLanes);  // each is a thread of the server
    uint32_t streams = settings::default_number(settings::Id::kSessionStreams);
};

inline Quotas read_quotas() {
    using settings::Id, settings::number_of;
    return {.lanes = static_cast<uint32_t>(number_of(Id::kSessionLanes)),
            .streams = static_cast<uint32_t>(number_of(Id::kSessionStreams))};
}

}  // namespace smt::runtime::server
