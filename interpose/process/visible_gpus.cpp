#include "interpose/process/visible_gpus.h"

#include <stdlib.h>

#include <atomic>

#include "interpose/process/real_driver.h"
#include "runtime/protocol/environment.h"
#include "runtime/protocol/simulated_gpus.h"

namespace smt::interpose {

namespace {

constinit int seen[protocol::kMostSimulatedGpus] = {};  // written once, before `count`
constinit std::atomic<int> count{0};

}  // namespace

void look_at_simulated_gpus() {
    if (!wants_simulated_device()) return;
    const char* const visible = getenv(environment::kVisibleDevices);
    const int found = protocol::visible_simulated_gpus(visible, protocol::simulated_gpus(), seen);
    count.store(found, std::memory_order_release);
}

int simulated_gpus() { return count.load(std::memory_order_acquire); }

int simulated_gpu(CUdevice device) { return device >= 0 && device < simulated_gpus() ? seen[device] : -1; }

}  // namespace smt::interpose
