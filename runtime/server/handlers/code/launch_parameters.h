// A launch's parameters as the driver takes them: the program's, and behind them the door's, all zero, of a
// kernel that has one. Such a launch cannot be stopped.
#pragma once

#include <cuda.h>

#include <array>
#include <cstring>
#include <vector>

#include "rewriter/device/door.h"
#include "runtime/server/code/code_table.h"

namespace smt::runtime::server::handlers {

// One by one, as a graph stores them. `own`: the program's, which must stay.
class ParameterList {
public:
    ParameterList(const LoadedKernel& kernel, char* own) {
        each_.reserve(kernel.parameters.size() + 1);
        for (const protocol::ParameterInfo& parameter : kernel.parameters)
            each_.push_back(own + parameter.offset);
        if (kernel.door.present) each_.push_back(&door_);
    }
    ParameterList(const ParameterList&) = delete;
    void** data() { return each_.data(); }

private:
    smt::DoorLaunch door_{};
    std::vector<void*> each_;
};

// In one buffer.
class ParameterBuffer {
public:
    ParameterBuffer(const LoadedKernel& kernel, char* own) : data_(own), bytes_(kernel.parameter_bytes) {
        if (kernel.door.present) add_door(kernel, own);
    }
    ParameterBuffer(const ParameterBuffer&) = delete;
    void** data() {  // null: the kernel has none
        whole_ = {CU_LAUNCH_PARAM_BUFFER_POINTER, data_, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes_,
                  CU_LAUNCH_PARAM_END};
        return bytes_ ? whole_.data() : nullptr;
    }

private:
    void add_door(const LoadedKernel& kernel, const char* own) {
        bytes_ = kernel.door.offset + sizeof(smt::DoorLaunch);
        if (bytes_ > sizeof few_) many_.resize(bytes_);
        data_ = many_.empty() ? few_ : many_.data();
        if (kernel.parameter_bytes) std::memcpy(data_, own, kernel.parameter_bytes);
        std::memset(data_ + kernel.parameter_bytes, 0, bytes_ - kernel.parameter_bytes);
    }

    char* data_;
    size_t bytes_;
    alignas(16) char few_[4096 + sizeof(smt::DoorLaunch)];  // as many as CUDA 11 allowed; not initialised
    std::vector<char> many_;
    std::array<void*, 5> whole_;
};

}  // namespace smt::runtime::server::handlers
