// What one session may have of the server's at once. Beyond it the call is refused (CUDA_ERROR_OUT_OF_MEMORY), and the log says
// once in a session which quota that was and which variable changes it.
#pragma once

#include <cstdint>

#include "runtime/protocol/environment.h"
#include "runtime/protocol/environment_number.h"

namespace smt::runtime::server {

struct Quotas {
    uint32_t lanes = environment::kSessionLanesDefault;       // each is a thread of the server
    uint32_t streams = environment::kSessionStreamsDefault;
};

inline Quotas read_quotas() {
    using namespace environment;
    Quotas quotas;
    quotas.lanes = static_cast<uint32_t>(number_of(kSessionLanes, 1, kSessionLanesMax, kSessionLanesDefault));
    quotas.streams = static_cast<uint32_t>(number_of(kSessionStreams, 1, kSessionStreamsMax, kSessionStreamsDefault));
    return quotas;
}

}  // namespace smt::runtime::server
