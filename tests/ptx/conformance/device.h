// A device that runs a case: the CUDA driver, real or simulated, or the interpreter alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/ptx/conformance/case_file.h"

namespace smt::conformance {

class Device {
public:
    virtual ~Device() = default;
    // Runs one block of the case's threads; outputs[value * threads + thread]. False: error says why.
    virtual bool run(const Case& one, std::vector<Value>* outputs, std::string* error) = 0;
};

// The library that dlopen finds as libcuda.so.1: NVIDIA's, or ours when preloaded.
std::unique_ptr<Device> open_driver(std::string* error);
std::unique_ptr<Device> open_interpreter();

// Inputs as they lie in memory.
std::vector<uint64_t> input_words(const Case& one);

}  // namespace smt::conformance
