// What a PTX text says about its kernels, before any assembler has seen it: no registers and no barriers,
// but parameters, static shared memory and what a launch has to observe.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/image/kernel_facts.h"

namespace smt::image {

struct PtxKernel {
    // Without registers, barriers and stack. Shared memory: what the kernel and the functions that it calls
    // by name declare and use.
    KernelFacts facts;
    bool dynamic_shared = false;
    // It reads what the driver sets for cooperative launches alone (%envreg1, %envreg2): it waits for its
    // grid.
    bool cooperative = false;
    bool system_atomics = false;  // it, or what it may call, has atomics for the whole system (.sys)
};

struct PtxFacts {
    int version_major = 0, version_minor = 0;
    std::vector<std::string> target;  // sm_90, debug, ...
    std::vector<PtxKernel> kernels;   // in the order of the text; those with a body
};

// Problem: the text cannot be parsed.
[[nodiscard]] std::variant<PtxFacts, Problem> ptx_facts(std::string_view text);

// The kernels with system_atomics. Parses only a text that has such atomics; of one that cannot be parsed no
// kernel is known.
[[nodiscard]] std::set<std::string, std::less<>> kernels_with_system_atomics(std::string_view text);

}  // namespace smt::image
