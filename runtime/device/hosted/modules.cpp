// Images and their functions, by handle. What an image is the backend knows.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "runtime/device/hosted/backend.h"

namespace smt::runtime::device::hosted {

namespace {

struct ModulesState {
    std::unordered_map<void*, std::unique_ptr<Image>> images;  // by CUmodule or CUlibrary
    std::unordered_map<const void*, Function*> functions;      // by CUfunction or CUkernel
};

ModulesState& modules_state() {
    static ModulesState* state = new ModulesState;
    return *state;
}

Image* find_image(void* handle) {
    auto found = modules_state().images.find(handle);
    return found == modules_state().images.end() ? nullptr : found->second.get();
}

// The function, ready to be asked about.
CUresult prepared(const void* handle, Function** function) {
    *function = find_function(handle);
    if (!*function) return CUDA_ERROR_INVALID_HANDLE;
    return backend().prepare(**function);
}

// Where the caller of the driver's compiler wants its words.
struct Logs {
    char* text[2] = {};    // what it says, what is wrong
    void** bytes[2] = {};  // in: the room; out: how much of it is used
    void write(int which, const std::string& words) const {
        if (!text[which] || !bytes[which]) return;
        const auto room = reinterpret_cast<uintptr_t>(*bytes[which]);
        const size_t used = room == 0 ? 0 : std::min<size_t>(words.size(), room - 1);
        memcpy(text[which], words.data(), used);
        if (room) text[which][used] = 0;
        *bytes[which] = reinterpret_cast<void*>(used);
    }
};

Logs find_logs(unsigned count, CUjit_option* options, void** values) {
    Logs logs;
    for (unsigned i = 0; i < count; ++i) {
        switch (options[i]) {
            case CU_JIT_INFO_LOG_BUFFER:
                logs.text[0] = static_cast<char*>(values[i]);
                break;
            case CU_JIT_ERROR_LOG_BUFFER:
                logs.text[1] = static_cast<char*>(values[i]);
                break;
            case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
                logs.bytes[0] = &values[i];
                break;
            case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
                logs.bytes[1] = &values[i];
                break;
            default:
                break;
        }
    }
    return logs;
}

CUresult load(const void* bytes, unsigned count, CUjit_option* options, void** values, void** handle) {
    if (!bytes || !handle) return CUDA_ERROR_INVALID_VALUE;
    std::unique_ptr<Image> image;
    std::string log;
    const CUresult status = backend().load(bytes, &image, &log);
    const Logs logs = find_logs(count, options, values);
    logs.write(0, "");
    logs.write(1, log);
    if (status != CUDA_SUCCESS) return status;
    Lock lock(world());
    for (auto& [name, function] : image->functions)
        modules_state().functions[function.get()] = function.get();
    for (auto& [name, global] : image->globals)
        if (!global.lent) know_global(global.address, global.bytes);
    *handle = image.get();
    modules_state().images[*handle] = std::move(image);
    return CUDA_SUCCESS;
}

CUresult unload(void* handle) {
    std::unique_ptr<Image> image;
    {
        Lock lock(world());
        auto found = modules_state().images.find(handle);
        if (found == modules_state().images.end()) return CUDA_ERROR_INVALID_HANDLE;
        image = std::move(found->second);
        modules_state().images.erase(found);
        for (auto& [name, function] : image->functions) modules_state().functions.erase(function.get());
        for (auto& [name, global] : image->globals) know_global(global.address, 0);
    }
    backend().quietly([&] { image.reset(); });
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
    Function* function = found->second.get();
    lock.unlock();
    return backend().prepare(*function);
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

CUresult get_texture(CUtexref* to, void* image_handle, const char* name) {
    Lock lock(world());
    Image* image = find_image(image_handle);
    if (!image) return CUDA_ERROR_INVALID_HANDLE;
    auto found = image->textures.find(name);
    if (found == image->textures.end()) return CUDA_ERROR_NOT_FOUND;
    *to = reinterpret_cast<CUtexref>(found->second.get());
    return CUDA_SUCCESS;
}

CUresult parameter(void* handle, size_t index, size_t* offset, size_t* bytes) {
    Function* function = nullptr;
    if (CUresult status = prepared(handle, &function); status != CUDA_SUCCESS) return status;
    if (index >= function->parameters.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = function->parameters[index].offset;
    if (bytes) *bytes = function->parameters[index].bytes;
    return CUDA_SUCCESS;
}

CUresult get_attribute(int* value, CUfunction_attribute attribute, void* handle) {
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    Function* function = nullptr;
    if (CUresult status = prepared(handle, &function); status != CUDA_SUCCESS) return status;
    Lock lock(world());
    auto set = function->attributes.find(attribute);
    *value = set != function->attributes.end() ? set->second : backend().attribute(*function, attribute);
    return CUDA_SUCCESS;
}

CUresult set_attribute(void* handle, int attribute, int value) {
    Function* function = nullptr;
    if (CUresult status = prepared(handle, &function); status != CUDA_SUCCESS) return status;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        const int most = backend().attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
        const int fixed = backend().attribute(*function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
        if (value < 0 || value > most - fixed) return CUDA_ERROR_INVALID_VALUE;
    }
    Lock lock(world());
    function->attributes[attribute] = value;
    return CUDA_SUCCESS;
}

CUresult get_name(const char** name, void* handle) {
    Function* function = find_function(handle);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    *name = function->name.c_str();
    return CUDA_SUCCESS;
}

template <typename Handle>
CUresult owner(Handle* image, void* handle) {
    Function* function = find_function(handle);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    *image = reinterpret_cast<Handle>(function->image);
    return CUDA_SUCCESS;
}

}  // namespace

Function* find_function(const void* handle) {
    Lock lock(world());
    auto found = modules_state().functions.find(handle);
    return found == modules_state().functions.end() ? nullptr : found->second;
}

CUresult pack(CUfunction handle, void** parameters, void** extra, std::vector<char>* packed) {
    Function* function = nullptr;
    if (CUresult status = prepared(handle, &function); status != CUDA_SUCCESS) return status;
    packed->assign(function->parameter_bytes, 0);
    if (parameters) {
        for (size_t i = 0; i < function->parameters.size(); ++i) {
            memcpy(packed->data() + function->parameters[i].offset, parameters[i],
                   function->parameters[i].bytes);
        }
        return CUDA_SUCCESS;
    }
    const void* buffer = nullptr;
    size_t bytes = 0;
    for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[1];
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *static_cast<size_t*>(extra[1]);
    }
    if (!function->parameters.empty() && (!buffer || bytes == 0)) return CUDA_ERROR_INVALID_VALUE;
    if (bytes > packed->size()) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (bytes) memcpy(packed->data(), buffer, bytes);
    return CUDA_SUCCESS;
}

}  // namespace smt::runtime::device::hosted

using namespace smt::runtime::device::hosted;

DRIVER_EXPORT CUresult cuModuleLoadData(CUmodule* module, const void* image) {
    DRIVER_ASKED(cuModuleLoadData);
    return load(image, 0, nullptr, nullptr, reinterpret_cast<void**>(module));
}
DRIVER_EXPORT CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count,
                                          CUjit_option* options, void** values) {
    DRIVER_ASKED(cuModuleLoadDataEx);
    return load(image, count, options, values, reinterpret_cast<void**>(module));
}
DRIVER_EXPORT CUresult cuModuleUnload(CUmodule module) {
    DRIVER_ASKED(cuModuleUnload);
    return unload(module);
}
DRIVER_EXPORT CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
    DRIVER_ASKED(cuModuleGetFunction, "%s", name);
    return get_function(function, module, name);
}
DRIVER_EXPORT CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
    DRIVER_ASKED(cuModuleGetFunctionCount);
    return count_functions(count, module);
}
DRIVER_EXPORT CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule module) {
    DRIVER_ASKED(cuModuleEnumerateFunctions);
    return enumerate(functions, count, module);
}
DRIVER_EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module,
                                            const char* name) {
    DRIVER_ASKED(cuModuleGetGlobal_v2, "%s", name);
    return get_global(address, bytes, module, name);
}
// A reference is used by its handle alone, as graphs are.
DRIVER_EXPORT CUresult cuModuleGetTexRef(CUtexref* texture, CUmodule module, const char* name) {
    if (!texture) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuModuleGetTexRef, "%s", name);
    return get_texture(texture, module, name);
}
DRIVER_EXPORT CUresult cuTexRefSetFlags(CUtexref texture, unsigned flags) {
    DRIVER_ASKED(cuTexRefSetFlags);
    reinterpret_cast<TextureReference*>(texture)->flags = flags;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuTexRefGetFlags(unsigned* flags, CUtexref texture) {
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuTexRefGetFlags);
    *flags = reinterpret_cast<TextureReference*>(texture)->flags;
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option* options,
                                         void** values, unsigned count, CUlibraryOption*, void**, unsigned) {
    DRIVER_ASKED(cuLibraryLoadData);
    return load(image, count, options, values, reinterpret_cast<void**>(library));
}
DRIVER_EXPORT CUresult cuLibraryUnload(CUlibrary library) {
    DRIVER_ASKED(cuLibraryUnload);
    return unload(library);
}
DRIVER_EXPORT CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
    DRIVER_ASKED(cuLibraryGetKernel, "%s", name);
    return get_function(kernel, library, name);
}
DRIVER_EXPORT CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
    DRIVER_ASKED(cuLibraryGetKernelCount);
    return count_functions(count, library);
}
DRIVER_EXPORT CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
    DRIVER_ASKED(cuLibraryEnumerateKernels);
    return enumerate(kernels, count, library);
}
DRIVER_EXPORT CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
    if (!module) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuLibraryGetModule);
    *module = reinterpret_cast<CUmodule>(library);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library,
                                          const char* name) {
    DRIVER_ASKED(cuLibraryGetGlobal, "%s", name);
    return get_global(address, bytes, library, name);
}
// Managed variables are like the others.
DRIVER_EXPORT CUresult cuLibraryGetManaged(CUdeviceptr* address, size_t* bytes, CUlibrary library,
                                           const char* name) {
    DRIVER_ASKED(cuLibraryGetManaged, "%s", name);
    return get_global(address, bytes, library, name);
}
DRIVER_EXPORT CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    DRIVER_ASKED(cuKernelGetFunction);
    *function = reinterpret_cast<CUfunction>(kernel);
    return CUDA_SUCCESS;
}
DRIVER_EXPORT CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
    return owner(library, kernel);
}
DRIVER_EXPORT CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
    return owner(module, function);
}
DRIVER_EXPORT CUresult cuKernelGetName(const char** name, CUkernel kernel) { return get_name(name, kernel); }
DRIVER_EXPORT CUresult cuFuncGetName(const char** name, CUfunction function) {
    return get_name(name, function);
}
DRIVER_EXPORT CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* bytes) {
    return parameter(kernel, index, offset, bytes);
}
DRIVER_EXPORT CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
    return parameter(function, index, offset, bytes);
}
DRIVER_EXPORT CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                                            CUdevice) {
    return get_attribute(value, attribute, kernel);
}
DRIVER_EXPORT CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
    return get_attribute(value, attribute, function);
}
DRIVER_EXPORT CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                            CUdevice) {
    DRIVER_ASKED(cuKernelSetAttribute, "%d=%d", attribute, value);
    return set_attribute(kernel, attribute, value);
}
DRIVER_EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    DRIVER_ASKED(cuFuncSetAttribute, "%d=%d", attribute, value);
    return set_attribute(function, attribute, value);
}
