// Kernels and their attributes. Attributes are read from the kernel's description and updated by this
// process's set calls. Only a set that changes a value goes to the server.
#include "interpose/driver/function.h"

#include <cstdlib>
#include <cstring>

#include "driver.gen.h"
#include "interpose/driver/lock.h"
#include "interpose/transport/answers.h"
#include "interpose/transport/remote_call.h"
#include "runtime/protocol/try.h"

namespace smt::interpose {

using namespace protocol;

namespace {

constexpr uint32_t kMaxNameBytes = 64u << 10;
constexpr uint32_t kMaxParameterBytes = 64u << 10;

uint32_t hash_of(const char* name) {
    uint32_t hash = 2166136261u;
    for (; *name; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 16777619u;
    return hash;
}

Function* find_fetched(const Image& image, const char* name, uint32_t hash) {
    Function* function = image.functions.load(std::memory_order_acquire);
    while (function && (function->name_hash != hash || std::strcmp(function->name, name) != 0))
        function = function->next;
    return function;
}

// Kernels by the server's id, in two levels. An entry may outlive its kernel: the reader checks.
constexpr uint32_t kIdsPerPage = 4096;
constexpr uint32_t kIdPages = 1024;
struct FunctionIds {
    std::atomic<std::atomic<Function*>*> pages[kIdPages];
};
constinit PerSession<FunctionIds> function_ids;

void remember_id(Function* function) {
    uint32_t page = function->id / kIdsPerPage;
    if (page >= kIdPages) return;
    auto& place = function_ids.of(*function->image->session).pages[page];
    auto* entries = place.load(std::memory_order_acquire);
    if (!entries) {
        auto* fresh =
            static_cast<std::atomic<Function*>*>(std::calloc(kIdsPerPage, sizeof(std::atomic<Function*>)));
        if (!fresh) return;
        if (place.compare_exchange_strong(entries, fresh))
            entries = fresh;
        else
            std::free(fresh);
    }
    entries[function->id % kIdsPerPage].store(function, std::memory_order_release);
}

// A kernel's tables, before they move into a Function.
struct Tables {
    ParameterInfo* parameters = nullptr;
    char* name = nullptr;
};

void free_tables(const Tables& tables) {
    std::free(tables.parameters);
    std::free(tables.name);
}

// Copies the parameter table and the name from the reply. false: out of memory, or implausible contents.
bool copy_tables(Reader& reply, const FunctionInfo& info, Tables& tables) {
    uint64_t table_bytes = uint64_t(info.parameter_count) * sizeof(ParameterInfo);
    if (info.parameter_bytes > kMaxParameterBytes) return false;
    const char* table = reply.take(table_bytes);
    const char* name = reply.take(info.name_bytes);
    if (!table || !name) return false;
    tables.parameters = static_cast<ParameterInfo*>(std::malloc(table_bytes + 1));
    tables.name = static_cast<char*>(std::malloc(uint64_t(info.name_bytes) + 1));
    if (!tables.parameters || !tables.name) return false;
    std::memcpy(tables.parameters, table, table_bytes);
    std::memcpy(tables.name, name, info.name_bytes);
    tables.name[info.name_bytes] = 0;
    for (uint32_t i = 0; i < info.parameter_count; ++i) {
        const ParameterInfo& parameter = tables.parameters[i];
        if (parameter.bytes > info.parameter_bytes) return false;
        if (parameter.offset > info.parameter_bytes - parameter.bytes) return false;
    }
    return true;
}

// Held while a kernel enters its image's list, never while waiting for the server.
constinit pthread_mutex_t publishing = PTHREAD_MUTEX_INITIALIZER;

// Adds a fetched kernel to its image's list. Two threads that fetched the same kernel concurrently get one
// object: the second finds the first's.
Function* publish(Image& image, const FunctionInfo& info, uint32_t hash, const Tables& tables) {
    Lock lock(publishing);
    Function* known = find_fetched(image, tables.name, hash);
    Function* function = known ? nullptr : new_function();
    if (!function) return free_tables(tables), known;
    function->id = info.function;
    function->image = &image;
    function->name_hash = hash;
    function->parameter_count = info.parameter_count;
    function->parameter_bytes = info.parameter_bytes;
    function->system_atomics = (info.flags & kFunctionSystemAtomics) != 0;
    function->parameters = tables.parameters;
    function->name = tables.name;
    for (uint32_t i = 0; i < kFunctionAttributes; ++i)
        function->attributes[i].store(info.attributes[i], std::memory_order_relaxed);
    function->next = image.functions.load(std::memory_order_relaxed);
    image.functions.store(function, std::memory_order_release);
    remember_id(function);
    return function;
}

}  // namespace

Function* function_by_id(uint32_t id) {
    if (id / kIdsPerPage >= kIdPages) return nullptr;
    auto* entries = function_ids.here().pages[id / kIdsPerPage].load(std::memory_order_acquire);
    if (!entries) return nullptr;
    Function* function = entries[id % kIdsPerPage].load(std::memory_order_acquire);
    function = find_function(reinterpret_cast<CUfunction>(function));
    return function && function->id == id ? function : nullptr;
}

CUresult fetch_function(Image& image, const char* name, Function*& function) {
    uint32_t hash = hash_of(name);
    function = find_fetched(image, name, hash);
    if (function) return CUDA_SUCCESS;
    uint64_t name_bytes = std::strlen(name) + 1;
    if (name_bytes > kMaxNameBytes) return CUDA_ERROR_NOT_FOUND;

    RemoteCall call(Op::kGetFunction, sizeof(ObjectRef) + 16 + name_bytes);
    if (!call.open()) return call.status();
    call.in(ObjectRef{image.id, image.owner});
    call.in_string(name);
    SMT_TRY(call.wait());
    FunctionInfo info{};
    call.out(&info);
    Tables tables;
    if (!call.reply().good() || !copy_tables(call.reply(), info, tables)) {
        free_tables(tables);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    function = publish(image, info, hash_of(tables.name), tables);
    return function ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

namespace {

// The names of some of an image's functions, one behind the other.
struct Names {
    char* text = nullptr;
    uint64_t bytes = 0;
    ~Names() { std::free(text); }
};

// Gets the names from `first` on, as many as a reply holds. `count`: of all the image's functions.
CUresult fetch_names(const Image& image, uint32_t first, Names& names, uint32_t& count) {
    RemoteCall call(Op::kEnumerateFunctions, sizeof(FunctionNames));
    if (!call.open()) return call.status();
    call.in(FunctionNames{{image.id, image.owner}, first, 0});
    SMT_TRY(call.wait());
    call.out(&count);
    // Further calls reuse the reply area.
    names.bytes = call.reply().left() & ~7ull;
    const char* from = call.reply().take(names.bytes);
    names.text = static_cast<char*>(std::malloc(names.bytes + 1));
    if (!names.text) return CUDA_ERROR_OUT_OF_MEMORY;
    if (from) std::memcpy(names.text, from, names.bytes);
    names.text[names.bytes] = 0;
    return CUDA_SUCCESS;
}

// Adds the functions of one reply. No progress although functions are left: a name is too long for a reply.
CUresult add_functions(Image& image, Function** functions, uint32_t capacity, uint32_t& done,
                       uint32_t& count) {
    Names names;
    SMT_TRY(fetch_names(image, done, names, count));
    const uint32_t before = done;
    for (const char* name = names.text; done < capacity && name < names.text + names.bytes && *name;
         name += std::strlen(name) + 1) {
        SMT_TRY(fetch_function(image, name, functions[done]));
        ++done;
    }
    return done == before && done < capacity && done < count ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

}  // namespace

CUresult enumerate_functions(Image& image, Function** functions, uint32_t capacity, uint32_t& count) {
    uint32_t done = 0;
    CUresult status = CUDA_SUCCESS;
    if (!functions) {
        Names names;
        return fetch_names(image, 0, names, count);
    }
    do status = add_functions(image, functions, capacity, done, count);
    while (status == CUDA_SUCCESS && done < capacity && done < count);
    for (; done < capacity; ++done) functions[done] = nullptr;
    return status;
}

CUresult get_function_attribute(Function* function, CUfunction_attribute attribute, int* value) {
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    if (!value || static_cast<uint32_t>(attribute) >= kFunctionAttributes) return CUDA_ERROR_INVALID_VALUE;
    *value = function->attributes[attribute].load(std::memory_order_relaxed);
    return CUDA_SUCCESS;
}

// Programs set the same attribute before each launch: an unchanged value sends nothing.
CUresult set_function_attribute(Function* function, CUfunction_attribute attribute, int value) {
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    if (static_cast<uint32_t>(attribute) >= kFunctionAttributes) return CUDA_ERROR_INVALID_VALUE;
    bool settable = attribute >= CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    if (settable && function->attributes[attribute].load(std::memory_order_relaxed) == value)
        return CUDA_SUCCESS;
    RemoteCall call(Op::kFunctionAttribute, sizeof(FunctionAttribute));
    if (!call.open()) return call.status();
    call.in(FunctionAttribute{function->id, attribute, value, 0});
    SMT_TRY(call.wait());
    function->attributes[attribute].store(value, std::memory_order_relaxed);
    forget_answers();
    return CUDA_SUCCESS;
}

namespace {

CUresult parameter_info(Function* function, size_t index, size_t* offset, size_t* bytes) {
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    if (!offset || index >= function->parameter_count) return CUDA_ERROR_INVALID_VALUE;
    *offset = function->parameters[index].offset;
    if (bytes) *bytes = function->parameters[index].bytes;
    return CUDA_SUCCESS;
}

CUresult function_name(Function* function, const char** name) {
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    *name = function->name;
    return CUDA_SUCCESS;
}

// Cache and bank preferences are hints that no current device follows.
CUresult accept_hint(Function* function, unsigned int value, unsigned int last) {
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    return value <= last ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

namespace driver {

CUresult cuFuncGetAttribute(int* pi, CUfunction_attribute attrib, CUfunction hfunc) {
    return get_function_attribute(find_function(hfunc), attrib, pi);
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
    return set_function_attribute(find_function(hfunc), attrib, value);
}

CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config) {
    return accept_hint(find_function(hfunc), config, CU_FUNC_CACHE_PREFER_EQUAL);
}

CUresult cuFuncGetModule(CUmodule* hmod, CUfunction hfunc) {
    if (!hmod) return CUDA_ERROR_INVALID_VALUE;
    Function* function = find_function(hfunc);
    if (!function) return CUDA_ERROR_INVALID_HANDLE;
    *hmod = reinterpret_cast<CUmodule>(function->image);
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char** name, CUfunction hfunc) {
    return function_name(find_function(hfunc), name);
}

CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t* paramOffset, size_t* paramSize) {
    return parameter_info(find_function(func), paramIndex, paramOffset, paramSize);
}

// The server loads a kernel when its description is fetched.
CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
    if (!state) return CUDA_ERROR_INVALID_VALUE;
    if (!find_function(function)) return CUDA_ERROR_INVALID_HANDLE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function) {
    return find_function(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelGetFunction(CUfunction* pFunc, CUkernel kernel) {
    if (!pFunc) return CUDA_ERROR_INVALID_VALUE;
    if (!find_function(kernel)) return CUDA_ERROR_INVALID_HANDLE;
    *pFunc = reinterpret_cast<CUfunction>(kernel);
    return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary* pLib, CUkernel kernel) {
    if (!pLib) return CUDA_ERROR_INVALID_VALUE;
    Function* function = find_function(kernel);
    if (!function || function->image->owner != ImageOwner::kLibrary) return CUDA_ERROR_INVALID_HANDLE;
    *pLib = reinterpret_cast<CUlibrary>(function->image);
    return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int* pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice) {
    return get_function_attribute(find_function(kernel), attrib, pi);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice) {
    return set_function_attribute(find_function(kernel), attrib, val);
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice) {
    return accept_hint(find_function(kernel), config, CU_FUNC_CACHE_PREFER_EQUAL);
}

CUresult cuKernelGetName(const char** name, CUkernel hfunc) {
    return function_name(find_function(hfunc), name);
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t* paramOffset, size_t* paramSize) {
    return parameter_info(find_function(kernel), paramIndex, paramOffset, paramSize);
}

}  // namespace driver

}  // namespace smt::interpose
