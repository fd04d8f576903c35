// Through the CUDA driver API, opened at run time.
#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>

#include "tests/ptx/conformance/device.h"

namespace smt::conformance {
namespace {

class DriverDevice : public Device {
public:
    bool open(std::string* error) {
        library_ = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
        if (library_ == nullptr) return fail(dlerror(), error);
        const bool found = get("cuInit", init_) && get("cuDeviceGet", device_get_) &&
                           get("cuDevicePrimaryCtxRetain", retain_) && get("cuCtxSetCurrent", set_current_) &&
                           get("cuModuleLoadDataEx", load_) && get("cuModuleUnload", unload_) &&
                           get("cuModuleGetFunction", get_function_) && get("cuMemAlloc_v2", allocate_) &&
                           get("cuMemFree_v2", free_) && get("cuMemcpyHtoD_v2", to_device_) &&
                           get("cuMemcpyDtoH_v2", to_host_) && get("cuLaunchKernel", launch_) &&
                           get("cuCtxSynchronize", synchronize_) && get("cuGetErrorName", error_name_);
        if (!found) return fail("libcuda.so.1 lacks a function", error);
        CUdevice device = 0;
        CUcontext context = nullptr;
        return check(init_(0), "cuInit", error) && check(device_get_(&device, 0), "cuDeviceGet", error) &&
               check(retain_(&context, device), "cuDevicePrimaryCtxRetain", error) &&
               check(set_current_(context), "cuCtxSetCurrent", error);
    }

    bool run(const Case& one, std::vector<Value>* outputs, std::string* error) override {
        const std::string text = module_text(one);
        char log[2048] = {};
        CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
        void* values[] = {log, reinterpret_cast<void*>(sizeof(log))};
        CUmodule module = nullptr;
        if (CUresult result = load_(&module, text.c_str(), 2, options, values); result != CUDA_SUCCESS) {
            check(result, "cuModuleLoadDataEx", error);
            *error += std::string(": ") + log;
            return false;
        }
        CUfunction function = nullptr;
        const bool ok = check(get_function_(&function, module, "test"), "cuModuleGetFunction", error) &&
                        run(one, function, outputs, error);
        unload_(module);
        return ok;
    }

private:
    bool run(const Case& one, CUfunction function, std::vector<Value>* outputs, std::string* error) {
        std::vector<uint64_t> in = input_words(one);
        std::vector<uint64_t> out(2 * one.outputs.size() * one.rows.size(), kUnwritten);
        CUdeviceptr din = 0, dout = 0;
        bool ok = check(allocate_(&din, 8 * in.size()), "cuMemAlloc", error) &&
                  check(allocate_(&dout, 8 * out.size()), "cuMemAlloc", error) &&
                  check(to_device_(din, in.data(), 8 * in.size()), "cuMemcpyHtoD", error) &&
                  check(to_device_(dout, out.data(), 8 * out.size()), "cuMemcpyHtoD", error);
        void* parameters[] = {&din, &dout};
        const auto threads = static_cast<unsigned>(one.rows.size());
        ok = ok &&
             check(launch_(function, 1, 1, 1, threads, 1, 1, one.shared, nullptr, parameters, nullptr),
                   "cuLaunchKernel", error) &&
             check(synchronize_(), "cuCtxSynchronize", error) &&
             check(to_host_(out.data(), dout, 8 * out.size()), "cuMemcpyDtoH", error);
        if (din != 0) free_(din);
        if (dout != 0) free_(dout);
        for (size_t i = 0; i < out.size(); i += 2)
            outputs->push_back({out[i], out[i + 1], false, false, false});
        return ok;
    }
    template <class F>
    bool get(const char* name, F& to) {
        to = reinterpret_cast<F>(dlsym(library_, name));
        return to != nullptr;
    }
    static bool fail(const char* why, std::string* error) {
        *error = why;
        return false;
    }
    bool check(CUresult result, const char* what, std::string* error) {
        if (result == CUDA_SUCCESS) return true;
        const char* name = nullptr;
        error_name_(result, &name);
        *error = std::string(what) + ": " + (name != nullptr ? name : "unknown error");
        return false;
    }

    void* library_ = nullptr;
    decltype(&cuInit) init_ = nullptr;
    decltype(&cuDeviceGet) device_get_ = nullptr;
    decltype(&cuDevicePrimaryCtxRetain) retain_ = nullptr;
    decltype(&cuCtxSetCurrent) set_current_ = nullptr;
    decltype(&cuModuleLoadDataEx) load_ = nullptr;
    decltype(&cuModuleUnload) unload_ = nullptr;
    decltype(&cuModuleGetFunction) get_function_ = nullptr;
    decltype(&cuMemAlloc) allocate_ = nullptr;
    decltype(&cuMemFree) free_ = nullptr;
    decltype(&cuMemcpyHtoD) to_device_ = nullptr;
    decltype(&cuMemcpyDtoH) to_host_ = nullptr;
    decltype(&cuLaunchKernel) launch_ = nullptr;
    decltype(&cuCtxSynchronize) synchronize_ = nullptr;
    decltype(&cuGetErrorName) error_name_ = nullptr;
};

}  // namespace

std::vector<uint64_t> input_words(const Case& one) {
    std::vector<uint64_t> words(std::max<size_t>(2, 2 * one.inputs.size() * one.rows.size()));
    for (size_t i = 0; i < one.inputs.size(); ++i)
        for (size_t thread = 0; thread < one.rows.size(); ++thread) {
            words[2 * (i * one.rows.size() + thread)] = one.rows[thread].inputs[i].low;
            words[2 * (i * one.rows.size() + thread) + 1] = one.rows[thread].inputs[i].high;
        }
    return words;
}

std::unique_ptr<Device> open_driver(std::string* error) {
    auto device = std::make_unique<DriverDevice>();
    if (!device->open(error)) return nullptr;
    return device;
}

}  // namespace smt::conformance
