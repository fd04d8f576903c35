// A managed form that was not made yet when its image was loaded: what it waits for, and, when it is there,
// the managed image that stands beside the program's own. Kernels that are launched again run from it.
//
// Only for images whose code refers to no variable of the image (jit::Opened::uses_variables): the variables
// of the two would differ.
#pragma once

#include <cuda.h>

#include <chrono>
#include <string>
#include <vector>

#include "runtime/jit/decision.h"
#include "runtime/jit/opened.h"
#include "runtime/server/memory/memory_account.h"

namespace smt::runtime::server {

// Guarded by the mutex of its image.
struct LateForm {
    jit::Awaited awaited;
    Charge text;       // of the PTX in `awaited`
    jit::OwnForm own;  // of a fenced image (jit::Opened::own)
    Charge own_text;
    // Of the program's load, for machine code of PTX.
    std::vector<std::string> options;
    std::string target;

    jit::Decision form;        // once it is decided
    std::string machine_code;  // what is waited for then, if the form is PTX; empty: nothing
    std::vector<char> code;    // what is to be loaded; empty: not there
    Charge bytes;              // of `code`
    uint64_t variable_bytes = 0;
    std::chrono::steady_clock::time_point try_again{};  // to load it
};

struct Beside {
    CUmodule module = nullptr;  // null: none is loaded
    jit::Decision form;
    Charge charge;  // of its variables
};

}  // namespace smt::runtime::server
