// Images, and what is in them. An image is a text:
//
//   FAKE
//   kernel NAME params BYTES,BYTES,...     (or just: kernel NAME)
//   global NAME BYTES
//
// Anything else in it is ignored. A kernel's handle serves as its function's.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <unordered_map>

#include "fake.h"

using namespace fake;

namespace fake {

namespace {

struct Image;

struct Function {
    Image* image;
    std::string name;
    std::vector<unsigned> sizes;
    std::map<int, int> attributes;
};

struct Global {
    CUdeviceptr address = 0;
    size_t bytes = 0;
};

struct Image {
    std::map<std::string, std::unique_ptr<Function>> functions;
    std::map<std::string, Global> globals;
};

struct State {
    std::unordered_map<void*, std::unique_ptr<Image>> images;   // by CUmodule or CUlibrary
    std::unordered_map<void*, Function*> functions;             // by CUfunction or CUkernel
};

State& state() {
    static State* state = new State;
    return *state;
}

Image* find_image(void* handle) {
    auto found = state().images.find(handle);
    return found == state().images.end() ? nullptr : found->second.get();
}

Function* find_function(void* handle) {
    auto found = state().functions.find(handle);
    return found == state().functions.end() ? nullptr : found->second;
}

unsigned offset_of(const Function& function, size_t index) {
    unsigned at = 0;
    for (size_t i = 0;; ++i) {
        const unsigned alignment = i < function.sizes.size() && function.sizes[i] < 8 ? function.sizes[i] : 8;
        if (i < function.sizes.size()) at = (at + alignment - 1) / alignment * alignment;
        if (i == index) return at;
        at += function.sizes[i];
    }
}

std::unique_ptr<Function> read_function(Image* image, std::istringstream& line, const std::string& name) {
    auto function = std::make_unique<Function>();
    function->image = image;
    function->name = name;
    std::string word, sizes;
    if (line >> word >> sizes && word == "params") {
        std::istringstream list(sizes);
        for (std::string size; std::getline(list, size, ',');) function->sizes.push_back(strtoul(size.c_str(), nullptr, 10));
    }
    return function;
}

CUresult load(const void* text, void** handle) {
    if (!text || strncmp(static_cast<const char*>(text), "FAKE\n", 5) != 0) return CUDA_ERROR_INVALID_IMAGE;
    auto image = std::make_unique<Image>();
    std::istringstream lines(static_cast<const char*>(text));
    Lock lock(world());
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string what, name;
        if (!(words >> what >> name)) continue;
        if (what == "kernel") {
            auto function = read_function(image.get(), words, name);
            state().functions[function.get()] = function.get();
            image->functions[name] = std::move(function);
        } else if (what == "global") {
            size_t bytes = 0;
            words >> bytes;
            image->globals[name] = {reinterpret_cast<CUdeviceptr>(calloc(1, bytes)), bytes};
            know_global(image->globals[name].address, bytes);
        }
    }
    *handle = image.get();
    state().images[*handle] = std::move(image);
    return CUDA_SUCCESS;
}

CUresult unload(void* handle) {
    Lock lock(world());
    Image* image = find_image(handle);
    if (!image) return CUDA_ERROR_INVALID_HANDLE;
    for (auto& [name, function] : image->functions) state().functions.erase(function.get());
    for (auto& [name, global] : image->globals) {
        know_global(global.address, 0);
        free(reinterpret_cast<void*>(global.address));
    }
    state().images.erase(handle);
    return CUDA_SUCCESS;
}

template <typename Handle>
CUresult get_function(Handle* to, void* image_handle, const char* name) {
    Lock lock(world());
    Image* image = find_image(image_handle);
    if (!image) return CUDA_ERROR_INVALID_HANDLE;
    auto found = image->functions.find(name);
    if (found == image->functions.end()) return CUDA_ERROR_NOT_FOUND;
    *to = reinterpret_cast<Handle>(found->second.get());
    return CUDA_SUCCESS;
}

template <typename Handle>
CUresult enumerate(Handle* to, unsigned count, void* image_handle) {
    Lock lock(world());
    Image* image = find_image(image_handle);
    if (!image) return CUDA_ERROR_INVALID_HANDLE;
    for (auto& [name, function] : image->functions) {
        if (count-- == 0) break;
        *to++ = reinterpret_cast<Handle>(function.get());
    }
    return CUDA_SUCCESS;
}

CUresult count_functions(unsigned* count, void* image_handle) {
    Lock lock(world());
    Image* image = find_image(image_handle);
    if (!image) return CUDA_ERROR_INVALID_HANDLE;
    *count = image->functions.size();
    return CUDA_SUCCESS;
}

CUresult get_global(CUdeviceptr* address, size_t* bytes, void* image_handle, const char* name) {
    Lock lock(world());
    Image* image = find_image(image_handle);
    if (!image) return CUDA_ERROR_INVALID_HANDLE;
    auto found = image->globals.find(name);
    if (found == image->globals.end()) return CUDA_ERROR_NOT_FOUND;
    if (address) *address = found->second.address;
    if (bytes) *bytes = found->second.bytes;
    return CUDA_SUCCESS;
}

CUresult parameter(void* handle, size_t index, size_t* offset, size_t* bytes) {
    Lock lock(world());
    Function* function = find_function(handle);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    if (index >= function->sizes.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = offset_of(*function, index);
    if (bytes) *bytes = function->sizes[index];
    return CUDA_SUCCESS;
}

CUresult get_attribute(int* value, int attribute, void* handle) {
    Lock lock(world());
    Function* function = find_function(handle);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    auto set = function->attributes.find(attribute);
    if (set != function->attributes.end()) {
        *value = set->second;
        return CUDA_SUCCESS;
    }
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
        case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 32; break;
        case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = 90; break;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = 48 << 10; break;
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = -1; break;
        default: *value = 0;
    }
    return CUDA_SUCCESS;
}

CUresult set_attribute(void* handle, int attribute, int value) {
    Lock lock(world());
    Function* function = find_function(handle);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    function->attributes[attribute] = value;
    return CUDA_SUCCESS;
}

CUresult get_name(const char** name, void* handle) {
    Lock lock(world());
    Function* function = find_function(handle);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    *name = function->name.c_str();
    return CUDA_SUCCESS;
}

template <typename Handle>
CUresult owner(Handle* image, void* handle) {
    Lock lock(world());
    Function* function = find_function(handle);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    *image = reinterpret_cast<Handle>(function->image);
    return CUDA_SUCCESS;
}

}  // namespace

const char* name_of(CUfunction handle) {
    Lock lock(world());
    Function* function = find_function(handle);
    return function ? function->name.c_str() : "";
}

CUresult pack(CUfunction handle, void** parameters, void** extra, std::vector<char>* packed) {
    Lock lock(world());
    Function* function = find_function(handle);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    packed->assign(offset_of(*function, function->sizes.size()), 0);
    if (parameters) {
        for (size_t i = 0; i < function->sizes.size(); ++i) {
            memcpy(packed->data() + offset_of(*function, i), parameters[i], function->sizes[i]);
        }
        return CUDA_SUCCESS;
    }
    const void* buffer = nullptr;
    size_t bytes = 0;
    for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[1];
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *static_cast<size_t*>(extra[1]);
    }
    if (!buffer && !function->sizes.empty()) return CUDA_ERROR_INVALID_VALUE;
    if (buffer) memcpy(packed->data(), buffer, bytes < packed->size() ? bytes : packed->size());
    return CUDA_SUCCESS;
}

}  // namespace fake

FAKE_EXPORT CUresult cuModuleLoadData(CUmodule* module, const void* image) {
    FAKE_ASKED(cuModuleLoadData);
    return load(image, reinterpret_cast<void**>(module));
}
FAKE_EXPORT CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
    FAKE_ASKED(cuModuleLoadDataEx);
    return load(image, reinterpret_cast<void**>(module));
}
FAKE_EXPORT CUresult cuModuleUnload(CUmodule module) {
    FAKE_ASKED(cuModuleUnload);
    return unload(module);
}
FAKE_EXPORT CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
    FAKE_ASKED(cuModuleGetFunction, "%s", name);
    return get_function(function, module, name);
}
FAKE_EXPORT CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
    FAKE_ASKED(cuModuleGetFunctionCount);
    return count_functions(count, module);
}
FAKE_EXPORT CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule module) {
    FAKE_ASKED(cuModuleEnumerateFunctions);
    return enumerate(functions, count, module);
}
FAKE_EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
    FAKE_ASKED(cuModuleGetGlobal_v2, "%s", name);
    return get_global(address, bytes, module, name);
}
FAKE_EXPORT CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option*, void**, unsigned,
                                       CUlibraryOption*, void**, unsigned) {
    FAKE_ASKED(cuLibraryLoadData);
    return load(image, reinterpret_cast<void**>(library));
}
FAKE_EXPORT CUresult cuLibraryUnload(CUlibrary library) {
    FAKE_ASKED(cuLibraryUnload);
    return unload(library);
}
FAKE_EXPORT CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
    FAKE_ASKED(cuLibraryGetKernel, "%s", name);
    return get_function(kernel, library, name);
}
FAKE_EXPORT CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
    FAKE_ASKED(cuLibraryGetKernelCount);
    return count_functions(count, library);
}
FAKE_EXPORT CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
    FAKE_ASKED(cuLibraryEnumerateKernels);
    return enumerate(kernels, count, library);
}
FAKE_EXPORT CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
    if (!module) return CUDA_ERROR_INVALID_VALUE;
    FAKE_ASKED(cuLibraryGetModule);
    *module = reinterpret_cast<CUmodule>(library);
    return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
    FAKE_ASKED(cuLibraryGetGlobal, "%s", name);
    return get_global(address, bytes, library, name);
}
// Managed variables are like the others.
FAKE_EXPORT CUresult cuLibraryGetManaged(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
    FAKE_ASKED(cuLibraryGetManaged, "%s", name);
    return get_global(address, bytes, library, name);
}
FAKE_EXPORT CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    FAKE_ASKED(cuKernelGetFunction);
    *function = reinterpret_cast<CUfunction>(kernel);
    return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) { return owner(library, kernel); }
FAKE_EXPORT CUresult cuFuncGetModule(CUmodule* module, CUfunction function) { return owner(module, function); }
FAKE_EXPORT CUresult cuKernelGetName(const char** name, CUkernel kernel) { return get_name(name, kernel); }
FAKE_EXPORT CUresult cuFuncGetName(const char** name, CUfunction function) { return get_name(name, function); }
FAKE_EXPORT CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* bytes) {
    return parameter(kernel, index, offset, bytes);
}
FAKE_EXPORT CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
    return parameter(function, index, offset, bytes);
}
FAKE_EXPORT CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice) {
    return get_attribute(value, attribute, kernel);
}
FAKE_EXPORT CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
    return get_attribute(value, attribute, function);
}
FAKE_EXPORT CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice) {
    FAKE_ASKED(cuKernelSetAttribute, "%d=%d", attribute, value);
    return set_attribute(kernel, attribute, value);
}
FAKE_EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    FAKE_ASKED(cuFuncSetAttribute, "%d=%d", attribute, value);
    return set_attribute(function, attribute, value);
}
