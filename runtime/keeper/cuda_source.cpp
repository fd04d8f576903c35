// Chunks of a GPU: cuMemCreate needs the driver, and no context. The driver is loaded at run time.
#include <cuda.h>
#include <dlfcn.h>

#include "runtime/keeper/source.h"

namespace smt::runtime::keeper {

namespace {

struct Driver {
    CUresult (*init)(unsigned) = nullptr;
    CUresult (*device_get)(CUdevice*, int) = nullptr;
    CUresult (*create)(CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*,
                       unsigned long long) = nullptr;
    CUresult (*release)(CUmemGenericAllocationHandle) = nullptr;
    CUresult (*share)(void*, CUmemGenericAllocationHandle, CUmemAllocationHandleType,
                      unsigned long long) = nullptr;
};

class CudaSource final : public Source {
public:
    ~CudaSource() override {
        for (const auto& [id, handle] : handles_) driver_.release(handle);
    }

    bool open(const std::string& path, std::string* problem) {
        void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!library) return *problem = dlerror(), false;
        const bool complete =
            find(library, "cuInit", driver_.init) && find(library, "cuDeviceGet", driver_.device_get) &&
            find(library, "cuMemCreate", driver_.create) && find(library, "cuMemRelease", driver_.release) &&
            find(library, "cuMemExportToShareableHandle", driver_.share);
        if (!complete) return *problem = "the driver lacks a function that memory is shared by", false;
        CUresult status = driver_.init(0);
        if (status == CUDA_SUCCESS) status = driver_.device_get(&device_, 0);
        if (status == CUDA_SUCCESS) return true;
        *problem = "the driver does not begin: error " + std::to_string(static_cast<int>(status));
        return false;
    }

    int create(uint64_t id, uint64_t bytes) override {
        CUmemAllocationProp wanted{};
        wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
        wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        CUmemGenericAllocationHandle handle = 0;
        const CUresult status = driver_.create(&handle, bytes, &wanted, 0);
        if (status == CUDA_SUCCESS) handles_[id] = handle;
        return status;
    }
    void release(uint64_t id) override {
        driver_.release(handles_.at(id));
        handles_.erase(id);
    }
    int descriptor(uint64_t id, int* file) override {
        return driver_.share(file, handles_.at(id), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    }

private:
    template <typename Function>
    static bool find(void* library, const char* name, Function& function) {
        function = reinterpret_cast<Function>(dlsym(library, name));
        return function != nullptr;
    }

    Driver driver_;
    CUdevice device_ = 0;
    std::map<uint64_t, CUmemGenericAllocationHandle> handles_;
};

}  // namespace

std::unique_ptr<Source> cuda_source(const std::string& path, std::string* problem) {
    auto source = std::make_unique<CudaSource>();
    if (!source->open(path, problem)) return nullptr;
    return source;
}

}  // namespace smt::runtime::keeper
