// Where CUDA's toolkit is, for what the worker opens at run time and what the rewriter includes: $CUDA_HOME,
// the toolkit that smt was built with, /usr/local/cuda, and what the loader knows.
#pragma once

#include <string>
#include <vector>

#include "runtime/settings/table.h"

namespace smt::runtime::jit {

// The root of a toolkit that has CUDA's headers, for the rewriter; empty: not found.
std::string find_toolkit();

// Paths to try for "libnvrtc.so.13", best first. `chosen`: the setting that names one.
std::vector<std::string> library_paths(const std::string& file, settings::Id chosen);

}  // namespace smt::runtime::jit
