// What the simulated GPUs that this process sees say about themselves. Their servers are asked, each once; a
// server that is not there is started, but not with SMT_SYSTEM=1. No session comes of it.
#pragma once

#include <cuda.h>

#include "runtime/protocol/handshake.h"

namespace smt::interpose {

// Of simulated_gpu(device). Any thread. Null: `status` holds the error.
const protocol::DeviceReply* device_facts(CUdevice device, CUresult& status);

}  // namespace smt::interpose
