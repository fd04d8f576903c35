// What the compiler says about the kernels of a cubin. Shared memory is not among it: the PTX says it better,
// since a cubin's figure includes what the system reserves for itself on some architectures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/image/image.h"

namespace smt::image {

struct KernelFacts {
    std::string name;          // as in the PTX
    bool kernel = false;       // false: a function that kernels call
    uint32_t registers = 0;    // of a thread, not rounded to what the hardware hands out
    uint32_t stack_bytes = 0;  // of a thread's local memory, its callees' included where they are known
};

// In the order of the cubin's symbols.
[[nodiscard]] std::variant<std::vector<KernelFacts>, Problem> kernel_facts(std::string_view cubin);

// The names of its variables, the compiler's own among them.
[[nodiscard]] std::variant<std::vector<std::string>, Problem> variable_names(std::string_view cubin);

}  // namespace smt::image
