// What differs between drivers on host memory: what carries out the work of their streams, what an image
// is, and the facts about the device.
#pragma once

#include <cstdarg>

#include "runtime/device/hosted/hosted.h"

namespace smt::runtime::device::hosted {

class Backend {
public:
    virtual ~Backend() = default;

    // Before each entry point does anything. Not SUCCESS: it returns that.
    virtual CUresult asked(const char* name, const char* format, va_list arguments) = 0;

    virtual const char* device_name() const = 0;
    // The number that the device has on the machine (runtime/protocol/simulated_gpus.h); -1: there is none.
    virtual int gpu(CUdevice device) const { return device == 0 ? 0 : -1; }
    virtual int attribute(CUdevice_attribute which) const = 0;
    virtual uint64_t memory_bytes() const = 0;
    virtual bool doubts_memory() const { return false; }  // touchable() looks
    virtual void soil(void*, uint64_t) {}  // fresh device memory, mapped at a place of the driver's

    // Streams; with the lock. `submitted`: its queue has grown. The backend calls finish_front() when the
    // front is done; a stream that is closing ends when its queue is empty.
    virtual std::shared_ptr<Stream> make_stream() = 0;
    virtual void opened(const std::shared_ptr<Stream>& stream) = 0;
    virtual void submitted(Stream& stream) = 0;
    virtual double now_ms() = 0;  // what events are stamped with
    // The calling thread waits until work has made it true. `done` is called with the lock.
    virtual void await(Lock& lock, const std::function<bool()>& done) = 0;

    // Code. The log is what the driver's own compiler would say.
    virtual CUresult load(const void* image, std::unique_ptr<Image>* loaded, std::string* log) = 0;
    // Appends an input of the linker to the text that will be the image.
    virtual CUresult link(CUjitInputType type, const void* data, size_t bytes, std::string* image) = 0;
    virtual CUresult prepare(Function&) { return CUDA_SUCCESS; }  // before its parameters are read; no lock
    virtual int attribute(const Function& function, CUfunction_attribute which) const = 0;
    virtual CUresult check(Launch&) { return CUDA_SUCCESS; }  // may keep what it found in `code`
    virtual int resident_blocks(const Function& function, int threads, size_t dynamic_shared) const = 0;
    virtual size_t dynamic_shared(const Function& function, int threads, int blocks) const = 0;
    virtual CUresult launch_attribute(const CUlaunchAttribute&, Launch*) { return CUDA_SUCCESS; }

    // Memory that kernels may use came or went, in the driver's own granularity; no lock.
    virtual void allocated(uint64_t, uint64_t) {}
    virtual void freed(uint64_t, uint64_t) {}
    // Calls it while no work touches memory.
    virtual void quietly(const std::function<void()>& change) { change(); }
};

Backend& backend();
void serve(Backend& backend);  // before the first entry point is called

}  // namespace smt::runtime::device::hosted
