// The real driver, as far as this program asks it: which GPUs there are. No context is created.
#pragma once

#include <string>
#include <vector>

namespace smt::tools {

struct Gpu {
    std::string name;
    std::string key;      // names the GPU's server: its UUID in hex
    std::string visible;  // its UUID as CUDA_VISIBLE_DEVICES wants it
};

struct Driver {
    std::string path;  // what was opened
    int version = 0;   // CUDA_VERSION of the driver
    std::vector<Gpu> gpus;
    std::string problem;  // not empty: no driver, or it does not work; says why
};

Driver examine_driver();

// Whether the kernel shows a GPU, with or without a driver that works.
bool gpu_node_exists();

}  // namespace smt::tools
