// What the compiler says about the kernels of a cubin: registers, memory, barriers, limits of a launch,
// parameters. It stands in the sections .nv.info, whose attributes bear the names of NVIDIA's cuobjdump -elf.
//
// Not there: that a kernel waits for its whole grid, and so needs a cooperative launch. Its PTX says it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/image/image.h"

namespace smt::image {

struct Parameter {
    uint32_t offset = 0, bytes = 0;
    bool operator==(const Parameter&) const = default;
};

using Shape = std::array<uint32_t, 3>;  // x, y, z; all 0: not said

struct KernelFacts {
    std::string name;          // as in the PTX
    bool kernel = false;       // false: a function that kernels call
    uint32_t registers = 0;    // of a thread, not rounded to what the hardware hands out
    uint32_t stack_bytes = 0;  // of a thread's local memory, its callees' included where they are known
    // What the source declares, without what the system reserves for itself. Nothing: not laid out yet,
    // which the linker does (relocatable code).
    std::optional<uint32_t> shared_bytes;
    uint32_t barriers = 0;             // the highest that it uses, + 1
    Shape most_threads{};              // __launch_bounds__
    Shape required_block{};            // __block_size__
    Shape cluster{};                   // __cluster_dims__
    bool explicit_cluster = false;     // it synchronises with its cluster: no launch without one
    bool grid_of_clusters = false;     // the launch's grid counts clusters
    uint32_t most_cluster_blocks = 0;  // 0: not said
    std::vector<std::string>
        externs;  // functions outside of the image that it may reach: vprintf, malloc, ...
    std::vector<Parameter> parameters;  // in the order of the source
};

// In the order of the cubin's symbols.
[[nodiscard]] std::variant<std::vector<KernelFacts>, Problem> kernel_facts(std::string_view cubin);

// Whether the linker still has to bind it to others (nvcc -rdc=true). False for what is no cubin.
bool is_relocatable(std::string_view cubin);
// The names of its variables, the compiler's own among them.
[[nodiscard]] std::variant<std::vector<std::string>, Problem> variable_names(std::string_view cubin);

}  // namespace smt::image
