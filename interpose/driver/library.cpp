// Libraries, the form in which the CUDA runtime loads its images. A library and its module are one Image, a
// kernel and its function one Function.
#include <cstdlib>

#include "driver.gen.h"
#include "interpose/driver/function.h"
#include "interpose/driver/image.h"
#include "interpose/driver/refuse.h"
#include "interpose/driver/twins.h"
#include "runtime/protocol/try.h"

namespace smt::interpose::driver {

using namespace protocol;

namespace {

// BINARY_IS_PRESERVED has no value, and cuBLAS passes no array of values with it. A table of host functions
// cannot be used from another process.
CUresult check_library_options(CUlibraryOption* options, void** values, unsigned int count, bool& preserved) {
    preserved = false;
    if (count && !options) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < count; ++i) {
        if (options[i] == CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE && values && values[i])
            return CUDA_ERROR_NOT_SUPPORTED;
        if (static_cast<unsigned int>(options[i]) >= CU_LIBRARY_NUM_OPTIONS) return CUDA_ERROR_INVALID_VALUE;
        preserved |= options[i] == CU_LIBRARY_BINARY_IS_PRESERVED;
    }
    return CUDA_SUCCESS;
}

CUresult load_library(CUlibrary* library, const void* data, uint64_t bytes, bool preserved, JitOptions& jit) {
    Image* image = nullptr;
    SMT_TRY(load_image(ImageOwner::kLibrary, data, bytes, jit, nullptr, 0, image));
    keep_source(*image, data, bytes, preserved, jit);
    *library = reinterpret_cast<CUlibrary>(image);
    return CUDA_SUCCESS;
}

Image* find_library(CUlibrary library) {
    Image* image = find_image(library);
    return image && image->owner == ImageOwner::kLibrary ? image : nullptr;
}

}  // namespace

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jitOptions,
                           void** jitOptionsValues, unsigned int numJitOptions,
                           CUlibraryOption* libraryOptions, void** libraryOptionValues,
                           unsigned int numLibraryOptions) {
    if (!library || !code) return CUDA_ERROR_INVALID_VALUE;
    ImageBytes image = image_bytes(code);
    if (!image.data) return CUDA_ERROR_INVALID_IMAGE;
    JitOptions jit;
    SMT_TRY(jit.read(numJitOptions, jitOptions, jitOptionsValues));
    bool preserved;
    SMT_TRY(check_library_options(libraryOptions, libraryOptionValues, numLibraryOptions, preserved));
    return load_library(library, image.data, image.bytes, preserved, jit);
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* fileName, CUjit_option* jitOptions,
                               void** jitOptionsValues, unsigned int numJitOptions,
                               CUlibraryOption* libraryOptions, void** libraryOptionValues,
                               unsigned int numLibraryOptions) {
    if (!library || !fileName) return CUDA_ERROR_INVALID_VALUE;
    JitOptions jit;
    SMT_TRY(jit.read(numJitOptions, jitOptions, jitOptionsValues));
    bool preserved;
    SMT_TRY(check_library_options(libraryOptions, libraryOptionValues, numLibraryOptions, preserved));
    char* data = nullptr;
    uint64_t bytes = 0;
    SMT_TRY(read_file(fileName, data, bytes));
    CUresult status = load_library(library, data, bytes + 1, false, jit);
    std::free(data);
    return status;
}

CUresult cuLibraryUnload(CUlibrary library) {
    Image* image = find_library(library);
    return image ? unload_twins(image) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLibraryGetKernel(CUkernel* pKernel, CUlibrary library, const char* name) {
    if (!pKernel || !name) return CUDA_ERROR_INVALID_VALUE;
    Image* image = find_library(library);
    if (!image) return CUDA_ERROR_INVALID_HANDLE;
    Function* function = nullptr;
    SMT_TRY(fetch_function(*image, name, function));
    *pKernel = reinterpret_cast<CUkernel>(function);
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary lib) {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    Image* image = find_library(lib);
    return image ? enumerate_functions(*image, nullptr, 0, *count) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int numKernels, CUlibrary lib) {
    if (!kernels) return CUDA_ERROR_INVALID_VALUE;
    Image* image = find_library(lib);
    if (!image) return CUDA_ERROR_INVALID_HANDLE;
    uint32_t count = 0;
    return enumerate_functions(*image, reinterpret_cast<Function**>(kernels), numKernels, count);
}

CUresult cuLibraryGetModule(CUmodule* pMod, CUlibrary library) {
    if (!pMod) return CUDA_ERROR_INVALID_VALUE;
    if (!find_library(library)) return CUDA_ERROR_INVALID_HANDLE;
    *pMod = reinterpret_cast<CUmodule>(library);
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name) {
    Image* image = find_library(library);
    if (!image) return CUDA_ERROR_INVALID_HANDLE;
    return image_global(*image, Op::kGetGlobal, name, dptr, bytes);
}

CUresult cuLibraryGetManaged(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name) {
    Image* image = find_library(library);
    if (!image) return CUDA_ERROR_INVALID_HANDLE;
    CUresult status = image_global(*image, Op::kGetManaged, name, dptr, bytes);
    return status == CUDA_ERROR_NOT_SUPPORTED ? refuse("cuLibraryGetManaged") : status;
}

}  // namespace smt::interpose::driver
