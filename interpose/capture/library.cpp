#include "interpose/capture/library.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

#include <atomic>
#include <iterator>

#include "interpose/capture/dlsym.h"

namespace smt::interpose::capture {

namespace {

constinit pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;
constinit Library libraries[kLibraries]{};
constinit std::atomic<int> count{0};

struct Name {
    const char* symbol;
    size_t offset;
};
constexpr Name kNames[] = {
    {"nvrtcCreateProgram", offsetof(Library, create)},
    {"nvrtcDestroyProgram", offsetof(Library, destroy)},
    {"nvrtcAddNameExpression", offsetof(Library, add_name_expression)},
    {"nvrtcCompileProgram", offsetof(Library, compile)},
    {"nvrtcGetPTX", offsetof(Library, get_ptx)},
    {"nvrtcGetCUBIN", offsetof(Library, get_cubin)},
    {"nvrtcGetPTXSize", offsetof(Library, get_ptx_size)},
    {"nvrtcGetCUBINSize", offsetof(Library, get_cubin_size)},
};

void* base_of(void* address) {
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fbase : nullptr;
}

void* own_base() { return base_of(reinterpret_cast<void*>(&base_of)); }

bool fill(void* address, Library& found) {
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname || info.dli_fbase == own_base()) return false;
    void* handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return false;
    found.base = info.dli_fbase;
    for (const Name& name : kNames) {
        void* function = real_dlsym(handle, name.symbol);
        if (!function) return dlclose(handle), false;  // older than its cubins: not intercepted
        memcpy(reinterpret_cast<char*>(&found) + name.offset, &function, sizeof function);
    }
    return true;  // keeps the handle: the functions are called from now on
}

int known_at(void* base) {
    const int known = count.load(std::memory_order_acquire);
    for (int i = 0; i < known; ++i) {
        if (libraries[i].base == base) return i;
    }
    return -1;
}

}  // namespace

int library_at(void* address) {
    void* base = base_of(address);
    if (!base) return -1;
    if (int known = known_at(base); known >= 0) return known;
    Library found{};
    if (!fill(address, found)) return -1;
    pthread_mutex_lock(&library_lock);
    int index = known_at(base);
    if (index < 0 && count.load(std::memory_order_relaxed) < kLibraries) {
        index = count.load(std::memory_order_relaxed);
        libraries[index] = found;
        count.store(index + 1, std::memory_order_release);
    }
    pthread_mutex_unlock(&library_lock);
    return index;
}

const Library& library(int index) { return libraries[index]; }

// The libraries loaded with the program, after libsmt.so, come first, then those of the caller's library.
void* symbol_behind_us(const char* name, void* caller) {
    void* found = real_dlsym(RTLD_NEXT, name);
    Dl_info info;
    if (found || !dladdr(caller, &info) || !info.dli_fname) return found;
    void* handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return nullptr;
    found = real_dlsym(handle, name);
    dlclose(handle);
    return found && base_of(found) != own_base() ? found : nullptr;
}

namespace {

// A caller may have our function's address from a library that has NVRTC among its dependencies (PyTorch
// passes a table of such functions) without NVRTC in its own scope.
int is_nvrtc(dl_phdr_info* info, size_t, void* path) {
    static constexpr char kFile[] = "/libnvrtc.so";
    if (!info->dlpi_name || !strstr(info->dlpi_name, kFile)) return 0;
    *static_cast<const char**>(path) = info->dlpi_name;
    return 1;
}

void* symbol_of_any(const char* name) {
    const char* path = nullptr;
    dl_iterate_phdr(is_nvrtc, &path);
    void* handle = path ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
    if (!handle) return nullptr;
    void* found = real_dlsym(handle, name);
    dlclose(handle);
    return found;
}

}  // namespace

const Library* library_for(void* caller) {
    const char* name = kNames[0].symbol;
    void* found = symbol_behind_us(name, caller);
    if (!found) found = symbol_of_any(name);
    const int index = found ? library_at(found) : -1;
    return index >= 0 ? &libraries[index] : nullptr;
}

}  // namespace smt::interpose::capture
