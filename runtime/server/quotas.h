// Limits on the server's resources that one session may hold at once. Beyond a limit the call fails with
// CUDA_ERROR_OUT_OF_MEMORY, and the log reports once per session which quota it was and which setting
// changes it.
#pragma once

#include <cstdint>

#include "runtime/settings/read.h"

namespace smt::runtime::server {

struct Quotas {
    uint32_t lanes =
        settings::default_number(settings::Id::kSessionLanes);  // each has one thread in the server
    uint32_t streams = settings::default_number(settings::Id::kSessionStreams);
};

inline Quotas read_quotas() {
    using settings::Id, settings::number_of;
    return {.lanes = static_cast<uint32_t>(number_of(Id::kSessionLanes)),
            .streams = static_cast<uint32_t>(number_of(Id::kSessionStreams))};
}

}  // namespace smt::runtime::server
