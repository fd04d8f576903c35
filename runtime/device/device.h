// What a device is to the server: a driver to ask, and the one context everything runs in.
//
// cuda/ is the real driver; a simulated device stands beside it with the same face, because its
// driver is a table of the same functions. A Device outlives every session and is never reopened:
// a context that a fault has poisoned ends with the process.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <string>

#include "driver_api.gen.h"

namespace smt::runtime::device {

struct Properties {
    std::string name;
    uint64_t total_memory = 0;
    uint64_t granularity = 0;   // of cuMemCreate and cuMemMap
    int multiprocessors = 0;
    int compute_major = 0;
    int compute_minor = 0;
};

class Device {
public:
    virtual ~Device() = default;
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    const DriverApi& driver() const { return driver_; }
    CUdevice device() const { return device_; }
    CUcontext context() const { return context_; }
    const Properties& properties() const { return properties_; }
    const std::string& key() const { return key_; }   // names this device's files in the runtime directory

    // Makes the calling thread ready to serve: the context is current, and a capture of another
    // thread does not forbid this thread's calls.
    virtual CUresult enter_thread() const = 0;

protected:
    Device() = default;

    DriverApi driver_{};
    CUdevice device_ = 0;
    CUcontext context_ = nullptr;
    Properties properties_;
    std::string key_;
};

// The driver at $SMT_DRIVER, else the system's. Null, and why in `error`, when there is none.
std::unique_ptr<Device> open_cuda(const std::string& key, std::string& error);

}  // namespace smt::runtime::device
