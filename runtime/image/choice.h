// Which entry of an image a device runs, as CUDA's driver chooses.
//
// The rules are those of the CUDA C++ Programming Guide (13.0), and this is where each is said:
//   6.1.2 Binary Compatibility   a cubin for X.y runs on X.z with z >= y. On Tegra it runs on its own
//                                architecture only, and desktop and Tegra do not run each other's.
//   6.1.3 PTX Compatibility      PTX for X.y compiles for everything from X.y on; compute_90a for 9.0
//                                alone; compute_100f for its family, from 10.0 on
//   6.1.4 Application Compat.    the cubin of the highest architecture that runs, else the PTX of the
//                                highest; a cubin that runs is preferred even to newer PTX
//   Environment Variables        CUDA_FORCE_PTX_JIT=1: no cubin is looked at; CUDA_DISABLE_PTX_JIT=1: no PTX
// What the guide leaves open: of two entries for one architecture the more special (a, then f) is taken.
// Families are the PTX ISA's (.target): those of one first digit or two, as in sm_10x.
#pragma once

#include <vector>

#include "runtime/image/image.h"

namespace smt::image {

struct Device {
    int architecture = 0;  // 90 for compute capability 9.0
    bool takes_cubins = true;
    bool takes_ptx = true;
};

// With what CUDA_FORCE_PTX_JIT and CUDA_DISABLE_PTX_JIT in this process's environment say.
Device device_from_environment(int architecture);

bool runs_on(const Entry& entry, int architecture);

// Of two entries that run on a device: whether the first is for a newer architecture, or for more of one.
bool is_better(const Entry& entry, const Entry& than);

// Null: none. `architecture` is the device's.
const Entry* best_ptx(const std::vector<Entry>& entries, int architecture);
const Entry* best_cubin(const std::vector<Entry>& entries, int architecture);

// What the driver loads. Null: nothing in the image is for this device.
const Entry* choose(const std::vector<Entry>& entries, const Device& device);

}  // namespace smt::image
