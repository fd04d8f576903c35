#include "interpose/process/real_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/settings/read.h"

namespace smt::interpose {

namespace {

constexpr char kDriverFile[] = "libcuda.so.1";
constexpr size_t kDriverPathBytes = 1024;
constexpr const char* kUsualFolders[] = {
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib/wsl/lib",
};

// The table by which the CUDA runtime finds the primary context.
constexpr unsigned char kCudartInterface[16] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
                                                0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};

constinit pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
constinit std::atomic<bool> looked{false};
constinit std::atomic<const DriverApi*> loaded{nullptr};
constinit DriverApi api{};
constinit void* handle = nullptr;
constinit bool initialised = false;
constinit CUresult init_status = CUDA_SUCCESS;

bool is_ourselves(const char* path) {
    Dl_info self;
    struct stat ours, theirs;
    return dladdr(reinterpret_cast<void*>(&is_ourselves), &self) && self.dli_fname &&
           stat(self.dli_fname, &ours) == 0 && stat(path, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
           ours.st_ino == theirs.st_ino;
}

void* open_at(const char* path) {
    if (access(path, R_OK) != 0 || is_ourselves(path)) return nullptr;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

void* open_in(const char* folder, size_t folder_bytes) {
    char path[kDriverPathBytes];
    int bytes = snprintf(path, sizeof path, "%.*s/%s", static_cast<int>(folder_bytes), folder, kDriverFile);
    // A relative entry is no absolute path: the loader would search by name and find libsmt.so.
    if (path[0] != '/' || bytes >= static_cast<int>(sizeof path)) return nullptr;
    return open_at(path);
}

void* find_driver() {
    if (wants_simulated_device()) return nullptr;  // it would report another device
    const char* chosen = settings::c_text_of(settings::Id::kRealDriver);
    if (chosen) return strcmp(chosen, "none") == 0 ? nullptr : open_at(chosen);
    const char* rest = getenv("LD_LIBRARY_PATH");
    while (rest && *rest) {
        size_t bytes = strcspn(rest, ":;");
        if (bytes != 0) {
            if (void* found = open_in(rest, bytes)) return found;
        }
        rest += bytes;
        if (*rest) ++rest;
    }
    for (const char* folder : kUsualFolders) {
        if (void* found = open_in(folder, strlen(folder))) return found;
    }
    return nullptr;
}

void load() {
    handle = find_driver();
    if (!handle) return;
    for (const DriverApiName& name : kDriverApiNames) {
        void* address = dlsym(handle, name.symbol);
        memcpy(reinterpret_cast<char*>(&api) + name.offset, &address, sizeof address);
    }
    loaded.store(&api, std::memory_order_release);
}

}  // namespace

bool wants_simulated_device() { return settings::is(settings::Id::kDevice, "sim"); }

const DriverApi* real_driver() {
    if (looked.load(std::memory_order_acquire)) [[likely]]
        return loaded.load(std::memory_order_relaxed);
    pthread_mutex_lock(&load_lock);
    if (!looked.load(std::memory_order_relaxed)) {
        load();
        looked.store(true, std::memory_order_release);
    }
    pthread_mutex_unlock(&load_lock);
    return loaded.load(std::memory_order_relaxed);
}

CUresult initialise_real_driver() {
    const DriverApi* driver = real_driver();
    if (!driver || !driver->cuInit) return CUDA_ERROR_NO_DEVICE;
    pthread_mutex_lock(&load_lock);
    if (!initialised) {
        init_status = driver->cuInit(0);
        initialised = true;
    }
    CUresult status = init_status;
    pthread_mutex_unlock(&load_lock);
    return status;
}

CUcontext real_primary_context(CUdevice device) {
    const DriverApi* driver = real_driver();
    const void* table = nullptr;
    CUuuid id;
    memcpy(id.bytes, kCudartInterface, sizeof id.bytes);
    if (!driver || !driver->cuGetExportTable || driver->cuGetExportTable(&table, &id) != CUDA_SUCCESS)
        return nullptr;
    auto ask = reinterpret_cast<CUresult (*)(CUcontext*, int)>(static_cast<void* const*>(table)[2]);
    CUcontext context = nullptr;
    return ask(&context, device) == CUDA_SUCCESS ? context : nullptr;
}

}  // namespace smt::interpose
