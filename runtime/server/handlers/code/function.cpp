// Kernels and variables of images: lookup and attributes.
#include <algorithm>
#include <mutex>
#include <string_view>
#include <vector>

#include "rewriter/device/fence.h"
#include "runtime/protocol/try.h"
#include "runtime/server/code/code_table.h"
#include "runtime/server/handlers/handlers.h"
#include "runtime/server/memory/tenant_memory.h"
#include "runtime/server/session.h"

namespace smt::runtime::server::handlers {

namespace {

constexpr uint64_t kMaxNameBytes = 192u << 10;  // of all names in one reply

// The attributes that the client answers queries from.
void fill_attributes(Call& call, CUfunction function, protocol::FunctionInfo& info) {
    for (uint32_t i = 0; i < protocol::kFunctionAttributes; ++i) {
        int value = 0;
        if (call.driver.cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(i), function) ==
            CUDA_SUCCESS)
            info.attributes[i] = value;
    }
}

CUresult module_names(const DriverApi& driver, CUmodule module, std::vector<const char*>& names) {
    unsigned int count = 0;
    SMT_TRY(driver.cuModuleGetFunctionCount(&count, module));
    std::vector<CUfunction> functions(count);
    SMT_TRY(driver.cuModuleEnumerateFunctions(functions.data(), count, module));
    for (CUfunction function : functions) {
        const char* name = nullptr;
        if (driver.cuFuncGetName(&name, function) == CUDA_SUCCESS && name) names.push_back(name);
    }
    return CUDA_SUCCESS;
}

CUresult library_names(const DriverApi& driver, CUlibrary library, std::vector<const char*>& names) {
    unsigned int count = 0;
    SMT_TRY(driver.cuLibraryGetKernelCount(&count, library));
    std::vector<CUkernel> kernels(count);
    SMT_TRY(driver.cuLibraryEnumerateKernels(kernels.data(), count, library));
    for (CUkernel kernel : kernels) {
        const char* name = nullptr;
        if (driver.cuKernelGetName(&name, kernel) == CUDA_SUCCESS && name) names.push_back(name);
    }
    return CUDA_SUCCESS;
}

// Removes the names of managed forms, which are not the program's own.
void drop_managed(const Image& image, std::vector<const char*>& names) {
    const jit::ResultPointer& compiled = image.form.compiled;
    if (!compiled) return;
    std::erase_if(names, [&](const char* name) {
        return std::any_of(compiled->kernels.begin(), compiled->kernels.end(),
                           [&](const jit::CompiledKernel& kernel) { return kernel.managed == name; });
    });
}

// Whether launches that are held back would be others after the request: it lowers the limit of a kernel that
// has a managed form, or it changes one with a door, which may then be launched in clusters.
bool changes_held_back(Call& call, const protocol::FunctionAttribute& request) {
    constexpr CUfunction_attribute kLimit = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    const auto attribute = static_cast<CUfunction_attribute>(request.attribute);
    KernelUse kernel(call.session.code(), request.function);
    int now = 0;
    if (!kernel || call.driver.cuFuncGetAttribute(&now, attribute, kernel->function) != CUDA_SUCCESS)
        return false;
    if (kernel->at_door.function && request.value != now) return true;
    const dispatch::ManagedFunction* form = kernel->managed.load();
    return form && attribute == kLimit &&
           call.driver.cuFuncGetAttribute(&now, attribute, form->function) == CUDA_SUCCESS &&
           request.value < now;
}

}  // namespace

CUresult handle_get_function(Call& call) {
    auto request = call.in.scalar<protocol::ObjectRef>();
    const char* name = call.in.string();
    if (!call.in.good() || !name) return CUDA_ERROR_INVALID_VALUE;
    LoadedKernel* kernel = nullptr;
    CUresult status = call.session.code().fetch(request.object, name, &kernel);
    if (status) return status;
    protocol::FunctionInfo info{};
    info.function = kernel->id;
    info.parameter_count = static_cast<uint32_t>(kernel->parameters.size());
    info.parameter_bytes = kernel->parameter_bytes;
    info.name_bytes = static_cast<uint32_t>(kernel->name.size() + 1);
    info.flags = kernel->system_atomics ? protocol::kFunctionSystemAtomics : 0;
    fill_attributes(call, kernel->function, info);
    if (kernel->door.present) info.attributes[CU_FUNC_ATTRIBUTE_NUM_REGS] = kernel->registers;
    call.out.scalar(info);
    call.out.bytes(kernel->parameters.data(), kernel->parameters.size() * sizeof(protocol::ParameterInfo));
    call.out.bytes(kernel->name.c_str(), info.name_bytes);
    return CUDA_SUCCESS;
}

// Replies with the count of all, then as many names as fit.
CUresult handle_enumerate_functions(Call& call) {
    protocol::FunctionNames request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    ImagePointer image = call.session.code().image(request.image.object);
    if (!image) return CUDA_ERROR_INVALID_HANDLE;
    std::vector<const char*> names;
    CUresult status = image->library ? library_names(call.driver, image->library, names)
                                     : module_names(call.driver, image->module, names);
    if (status) return status;
    drop_managed(*image, names);
    std::string text;
    for (size_t i = request.first; i < names.size(); ++i) {
        size_t bytes = std::char_traits<char>::length(names[i]) + 1;
        if (text.size() + bytes > kMaxNameBytes) break;
        text.append(names[i], bytes);
    }
    call.out.scalar(static_cast<uint32_t>(names.size()));
    call.out.bytes(text.data(), text.size());
    return CUDA_SUCCESS;
}

CUresult handle_function_attribute(Call& call) {
    protocol::FunctionAttribute request;
    if (!decode(call, request)) return CUDA_ERROR_INVALID_VALUE;
    const auto attribute = static_cast<CUfunction_attribute>(request.attribute);
    // Earlier launches that are held back still use the old value, so they go to the driver first.
    const bool changes = changes_held_back(call, request);
    if (changes) {
        SMT_TRY(call.session.streams().guard_all());
    }
    KernelUse kernel(call.session.code(), request.function);
    if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
    const std::lock_guard lock(call.session.code().attributes());
    int before = 0;
    if (call.driver.cuFuncGetAttribute(&before, attribute, kernel->function) == CUDA_SUCCESS)
        kernel->before.emplace(request.attribute, before);
    CUresult status = call.driver.cuFuncSetAttribute(kernel->function, attribute, request.value);
    if (status == CUDA_SUCCESS) kernel->set[request.attribute] = request.value;
    if (changes && status == CUDA_SUCCESS && kernel->at_door.function) {
        kernel->at_door.cluster = CodeTable::required_cluster(call.driver, kernel->function);
        kernel->at_door.forget();
    }
    dispatch::ManagedFunction* const form = kernel->managed.load();
    if (status == CUDA_SUCCESS && form && call.session.code().set_attribute(*form, attribute, request.value))
        form->forget();  // the occupancy may have changed
    return status;
}

CUresult handle_get_global(Call& call) {
    auto request = call.in.scalar<protocol::ObjectRef>();
    const char* name = call.in.string();
    if (!call.in.good() || !name) return CUDA_ERROR_INVALID_VALUE;
    ImagePointer image = call.session.code().image(request.object);
    if (!image) return CUDA_ERROR_INVALID_HANDLE;
    if (call.session.fence() && std::string_view(name) == kFenceConstant) return CUDA_ERROR_NOT_FOUND;
    uint64_t place = 0, size = 0;
    if (image->managed.look_up(name, &place, &size) || image->moved.look_up(name, &place, &size)) {
        call.out.scalar(protocol::MemAllocated{place, size});
        return CUDA_SUCCESS;
    }
    CUdeviceptr address = 0;
    size_t bytes = 0;
    CUmodule module = nullptr;
    SMT_TRY(call.module(request.object, &module));
    CUresult status = image->library ? call.driver.cuLibraryGetGlobal(&address, &bytes, image->library, name)
                                     : call.driver.cuModuleGetGlobal_v2(&address, &bytes, module, name);
    if (status) return status;
    if (!call.session.memory().in_device_range(address, bytes))  // else it was moved there
        SMT_TRY(call.session.code().give_out(*image, name, &address, bytes));
    call.out.scalar(protocol::MemAllocated{address, bytes});
    return CUDA_SUCCESS;
}

// The address of a variable that the driver itself placed is not given out: only this process can access that
// memory. On the simulated device these variables are in the arena.
CUresult handle_get_managed(Call& call) {
    auto request = call.in.scalar<protocol::ObjectRef>();
    const char* name = call.in.string();
    if (!call.in.good() || !name) return CUDA_ERROR_INVALID_VALUE;
    ImagePointer image = call.session.code().image(request.object);
    if (!image || !image->library) return CUDA_ERROR_INVALID_HANDLE;
    uint64_t place = 0, size = 0;
    if (image->managed.look_up(name, &place, &size)) {
        call.out.scalar(protocol::MemAllocated{place, size});
        return CUDA_SUCCESS;
    }
    if (!call.driver.cuLibraryGetManaged) return CUDA_ERROR_NOT_FOUND;
    CUdeviceptr address = 0;
    size_t bytes = 0;
    CUresult status = call.driver.cuLibraryGetManaged(&address, &bytes, image->library, name);
    if (status) return status;
    if (!call.session.arena().contains(address, bytes)) return CUDA_ERROR_NOT_SUPPORTED;
    call.out.scalar(protocol::MemAllocated{address, bytes});
    return CUDA_SUCCESS;
}

}  // namespace smt::runtime::server::handlers
