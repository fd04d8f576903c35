// The GPUs of this machine, as programs see them. The real driver is asked which there are; no context is
// created.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace smt::tools {

struct Gpu {
    std::string name;
    std::string key;      // names the GPU's server: its UUID in hex
    std::string visible;  // its UUID as CUDA_VISIBLE_DEVICES wants it
    uint64_t memory = 0;  // bytes; 0: not known
};

struct Driver {
    std::string path;  // what was opened
    int version = 0;   // CUDA_VERSION of the driver
    std::vector<Gpu> gpus;
    std::string problem;  // not empty: no driver, or it does not work; says why
};

Driver examine_driver();

// The GPUs that a program sees, of the device that choose_device() returned: CUDA's, or the simulated ones;
// as CUDA_VISIBLE_DEVICES has them. Without a driver here that is the one that SMT_DRIVER serves, of which no
// more is known than its key. Throws Failure: there is none.
std::vector<Gpu> visible_gpus(const std::string& device);
// The one that --gpu names; `takes`: what it takes, in words. Throws Misuse: it is no number; Failure: there
// is no such GPU.
Gpu pick_gpu(const std::vector<Gpu>& gpus, const std::string& text, const char* takes);

// Whether the kernel shows a GPU, with or without a driver that works.
bool gpu_node_exists();

}  // namespace smt::tools
