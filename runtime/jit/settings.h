// What the environment says about compiling and keeping (runtime/settings/settings.def).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace smt::runtime::jit {

struct Settings {
    std::string compiler;  // the worker's program; empty: there is none, nothing is compiled
    size_t workers = 2;    // that run at once
    std::chrono::milliseconds time{60'000};  // for one order
    std::chrono::milliseconds cpu{60'000};   // its CPU time, of all threads
    uint64_t memory_bytes = 4ull << 30;      // of the worker's addresses; 0: no limit
    std::chrono::milliseconds wait{0};       // how long a load waits for a compile
    bool compiles_ptx = true;                // the worker, not the driver
    bool doors = true;                       // kernels of machine code get the door
    bool ptx = true;                         // whether images without known source are managed by their PTX
    bool inside = false;                     // managed forms by PTX get checks inside their blocks
    uint64_t ptx_bytes = 2ull << 20;         // of more PTX than this no managed form is made
    std::string cache_folder;
    uint64_t cache_bytes = 1ull << 30;
};

// A value that makes no sense counts as its default. `own_folder`: this program's; the worker is looked for
// in it and from it (cmake/InstallLayout.cmake).
Settings read_settings(const std::string& own_folder);
// The folder of the running program.
std::string own_folder();
std::string cache_folder();

}  // namespace smt::runtime::jit
