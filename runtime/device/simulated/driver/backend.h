// The simulated device behind the driver's entry points.
#pragma once

#include <memory>
#include <string>

#include "runtime/device/hosted/backend.h"
#include "runtime/device/simulated/driver/engine.h"
#include "runtime/device/simulated/driver/kernel_grid.h"

namespace smt::runtime::device::simulated {

class SimulatedBackend final : public hosted::Backend {
public:
    SimulatedBackend(const Engine::Settings& settings, uint64_t memory_bytes, const std::string& streams,
                     int gpu);

    ~SimulatedBackend() override { engine_.stop(); }

    Engine& engine() { return engine_; }
    const Engine& engine() const { return engine_; }
    Memory& memory() { return memory_; }
    LaunchSurroundings& surroundings() { return surroundings_; }
    // Of the calling thread's next launch.
    void announce(const journal::Entry& entry);
    // For .managed variables of the images that the calling thread loads.
    void place_managed(const ManagedMemory& memory);
    void place_variables(const VariableMemory& memory);  // for their other ones

    CUresult asked(const char* name, const char* format, va_list arguments) override;
    const char* device_name() const override { return name_.c_str(); }
    int gpu(CUdevice device) const override { return device == 0 ? gpu_ : -1; }
    int attribute(CUdevice_attribute which) const override;
    uint64_t memory_bytes() const override { return memory_bytes_; }

    std::shared_ptr<hosted::Stream> make_stream() override { return std::make_shared<SimulatedStream>(); }
    void opened(const std::shared_ptr<hosted::Stream>& stream) override;
    void submitted(hosted::Stream& stream) override;
    double now_ms() override { return static_cast<double>(engine_.now_ns()) / 1e6; }
    void await(hosted::Lock& lock, const std::function<bool()>& done) override { engine_.await(lock, done); }

    CUresult load(const void* image, std::unique_ptr<hosted::Image>* loaded, std::string* log) override;
    CUresult link(CUjitInputType type, const void* data, size_t bytes, std::string* image) override;
    CUresult prepare(hosted::Function& function) override;
    int attribute(const hosted::Function& function, CUfunction_attribute which) const override;
    CUresult check(hosted::Launch& launch) override;
    int resident_blocks(const hosted::Function& function, int threads, size_t dynamic_shared) const override;
    size_t dynamic_shared(const hosted::Function& function, int threads, int blocks) const override;
    CUresult launch_attribute(const CUlaunchAttribute& attribute, hosted::Launch* launch) override;

    void allocated(uint64_t address, uint64_t bytes) override { memory_.allocated(address, bytes); }
    // Afterwards no step of a kernel that saw it live is under way.
    void freed(uint64_t address, uint64_t bytes) override {
        quietly([&] { memory_.freed(address, bytes); });
    }
    void quietly(const std::function<void()>& change) override { engine_.quietly(change); }

private:
    const uint64_t memory_bytes_;
    const int gpu_;
    const std::string name_;
    Memory memory_;
    Engine engine_;
    LaunchSurroundings surroundings_;
};

// A line for the log about the calling thread's session.
void tell(const std::string& line);

}  // namespace smt::runtime::device::simulated
