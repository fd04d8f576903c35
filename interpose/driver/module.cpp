// Modules: images that the application loads, and the functions and variables in them.
#include <cstdlib>

#include "driver.gen.h"
#include "interpose/driver/function.h"
#include "interpose/driver/image.h"
#include "runtime/protocol/try.h"

namespace smt::interpose::driver {

using namespace protocol;

namespace {

CUresult load_module(CUmodule* module, const void* data, uint64_t bytes, JitOptions& jit) {
    Image* image = nullptr;
    SMT_TRY(load_image(ImageOwner::kModule, data, bytes, jit, nullptr, 0, image));
    *module = reinterpret_cast<CUmodule>(image);
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int numOptions,
                            CUjit_option* options, void** optionValues) {
    ImageBytes found = image_bytes(image);
    if (!module || !image) return CUDA_ERROR_INVALID_VALUE;
    if (!found.data) return CUDA_ERROR_INVALID_IMAGE;
    JitOptions jit;
    SMT_TRY(jit.read(numOptions, options, optionValues));
    return load_module(module, found.data, found.bytes, jit);
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
    return driver::cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fatCubin) {
    return driver::cuModuleLoadDataEx(module, fatCubin, 0, nullptr, nullptr);
}

// The file is the application's, and its path is meaningless in the server.
CUresult cuModuleLoad(CUmodule* module, const char* fname) {
    if (!module || !fname) return CUDA_ERROR_INVALID_VALUE;
    char* data = nullptr;
    uint64_t bytes = 0;
    SMT_TRY(read_file(fname, data, bytes));
    JitOptions jit;
    CUresult status = load_module(module, data, bytes + 1, jit);
    std::free(data);
    return status;
}

// A library's module is unloaded with the library, as in the driver.
CUresult cuModuleUnload(CUmodule hmod) {
    Image* image = find_image(hmod);
    if (!image || image->owner != ImageOwner::kModule) return CUDA_ERROR_INVALID_HANDLE;
    return unload_image(image);
}

CUresult cuModuleGetFunction(CUfunction* hfunc, CUmodule hmod, const char* name) {
    if (!hfunc || !name) return CUDA_ERROR_INVALID_VALUE;
    Image* image = find_image(hmod);
    if (!image) return CUDA_ERROR_INVALID_HANDLE;
    Function* function = nullptr;
    SMT_TRY(fetch_function(*image, name, function));
    *hfunc = reinterpret_cast<CUfunction>(function);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule mod) {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    Image* image = find_image(mod);
    return image ? enumerate_functions(*image, nullptr, 0, *count) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int numFunctions, CUmodule mod) {
    if (!functions) return CUDA_ERROR_INVALID_VALUE;
    Image* image = find_image(mod);
    if (!image) return CUDA_ERROR_INVALID_HANDLE;
    uint32_t count = 0;
    return enumerate_functions(*image, reinterpret_cast<Function**>(functions), numFunctions, count);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* dptr, size_t* bytes, CUmodule hmod, const char* name) {
    Image* image = find_image(hmod);
    if (!image) return CUDA_ERROR_INVALID_HANDLE;
    return image_global(*image, Op::kGetGlobal, name, dptr, bytes);
}

}  // namespace smt::interpose::driver
