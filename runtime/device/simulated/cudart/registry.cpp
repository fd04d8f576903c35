#include "runtime/device/simulated/cudart/registry.h"

#include <pthread.h>
#include <stdlib.h>

#include <atomic>

#include "runtime/device/simulated/cudart/convert.h"
#include "runtime/device/simulated/cudart/fatbin.h"
#include "runtime/device/simulated/cudart/runtime.h"

namespace smt::cudart {

struct Image {
    const FatbinWrapper* fatbin;
    CUlibrary library;
    Entry* entries;
    uint32_t generation;  // of the loaded library; 0: not loaded
    bool removed;
};

// Where a variable is in a device's memory. A managed one is in the memory of the first device alone.
struct VariablePlace {
    uint32_t generation;  // of the address; 0: not resolved yet
    CUdeviceptr address;
};

struct Entry {
    enum class Kind : uint8_t { kKernel, kVariable, kManaged } kind;
    std::atomic<uint32_t> generation;  // of the kernel; 0: not resolved yet
    const void* host;                  // of a managed variable: the address of the program's pointer
    const char* name;
    size_t bytes;
    Image* image;
    RegisteredKernel kernel;
    VariablePlace* places;  // of a variable, by device
    Entry* next_in_bucket;
    Entry* next_in_image;
};

namespace {

constexpr size_t kBuckets = 4096;  // hash buckets; more kernels make short chains

// Held while an image is loaded, so that two first launches do not load it twice.
constinit pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
constinit Entry* buckets[kBuckets]{};

struct RegistryLocked {
    RegistryLocked() { pthread_mutex_lock(&registry_lock); }
    ~RegistryLocked() { pthread_mutex_unlock(&registry_lock); }
};

Entry*& bucket_of(const void* host) {
    uint64_t key = reinterpret_cast<uint64_t>(host) * 0x9e3779b97f4a7c15ull;
    return buckets[key >> 52];
}
static_assert(kBuckets == 1 << 12);

// Appended after entries of the same host side: every file that uses a template registers it, and the first
// counts.
void add(Image* image, Entry::Kind kind, const void* host, const char* name, size_t bytes) {
    if (!image) return;
    auto* entry = static_cast<Entry*>(calloc(1, sizeof(Entry)));
    if (!entry) return;
    if (kind != Entry::Kind::kKernel) {
        const int devices = kind == Entry::Kind::kManaged ? 1 : kMaxDevices;
        entry->places =
            static_cast<VariablePlace*>(calloc(static_cast<size_t>(devices), sizeof(VariablePlace)));
        if (!entry->places) return free(entry);
    }
    entry->kind = kind;
    entry->host = host;
    entry->name = name;
    entry->bytes = bytes;
    entry->image = image;
    RegistryLocked locked;
    Entry** at = &bucket_of(host);
    while (*at) at = &(*at)->next_in_bucket;
    *at = entry;
    entry->next_in_image = image->entries;
    image->entries = entry;
}

Entry* find_locked(const void* host, bool kernel) {
    for (Entry* at = bucket_of(host); at; at = at->next_in_bucket) {
        if (at->host == host && (at->kind == Entry::Kind::kKernel) == kernel) return at;
    }
    return nullptr;
}

// A managed variable is also found by its own address, once it has one.
Entry* find_managed_locked(const void* address) {
    for (Entry* bucket : buckets) {
        for (Entry* at = bucket; at; at = at->next_in_bucket) {
            if (at->kind == Entry::Kind::kManaged && *static_cast<const void* const*>(at->host) == address)
                return at;
        }
    }
    return nullptr;
}

VariablePlace& place_of(const Entry& entry) {
    int device = 0;
    if (entry.kind != Entry::Kind::kManaged) current_device(&device);
    return entry.places[device];
}

CUresult locate_variable(Entry& entry) {
    VariablePlace& place = place_of(entry);
    size_t bytes = 0;
    CUresult status =
        entry.kind == Entry::Kind::kManaged
            ? driver().cuLibraryGetManaged(&place.address, &bytes, entry.image->library, entry.name)
            : driver().cuLibraryGetGlobal(&place.address, &bytes, entry.image->library, entry.name);
    if (status != CUDA_SUCCESS) return status;
    if (entry.kind == Entry::Kind::kManaged)
        *static_cast<void**>(const_cast<void*>(entry.host)) = reinterpret_cast<void*>(place.address);
    if (bytes) entry.bytes = bytes;
    place.generation = generation();
    return CUDA_SUCCESS;
}

cudaError_t load_locked(Image& image) {
    if (image.removed) return cudaErrorCudartUnloading;
    uint32_t now = generation();
    if (image.generation == now) return cudaSuccess;
    if (CUresult status = load_fatbin(image.fatbin, &image.library)) return from_driver(status);
    image.generation = now;
    for (Entry* at = image.entries; at; at = at->next_in_image) {
        if (at->kind != Entry::Kind::kManaged) continue;
        // The pointer stays null then, so the program must see the error. NOT_FOUND: the variable is unused.
        CUresult failed = locate_variable(*at);
        if (failed != CUDA_SUCCESS && failed != CUDA_ERROR_NOT_FOUND) finish(from_driver(failed));
    }
    return cudaSuccess;
}

cudaError_t ask_for_kernel(Entry& entry) {
    if (cudaError_t failed = load_locked(*entry.image)) return failed;
    CUresult status = driver().cuLibraryGetKernel(&entry.kernel.kernel, entry.image->library, entry.name);
    if (status == CUDA_ERROR_NOT_FOUND) return cudaErrorInvalidDeviceFunction;
    if (status == CUDA_SUCCESS)
        status = driver().cuKernelGetFunction(&entry.kernel.function, entry.kernel.kernel);
    if (status == CUDA_SUCCESS) entry.generation.store(generation(), std::memory_order_release);
    return from_driver(status);
}

}  // namespace

Image* add_image(const FatbinWrapper* fatbin) {
    auto* image = static_cast<Image*>(calloc(1, sizeof(Image)));
    if (image) image->fatbin = fatbin;
    return image;
}

// Entries become unreachable but stay allocated: the program's static variables still point to them.
void remove_image(Image* image) {
    if (!image) return;
    RegistryLocked locked;
    for (Entry* gone = image->entries; gone; gone = gone->next_in_image) {
        Entry** at = &bucket_of(gone->host);
        while (*at && *at != gone) at = &(*at)->next_in_bucket;
        if (*at) *at = gone->next_in_bucket;
        gone->generation.store(0, std::memory_order_release);
    }
    if (image->generation == generation()) driver().cuLibraryUnload(image->library);
    image->removed = true;
}

void add_kernel(Image* image, const void* host, const char* name) {
    add(image, Entry::Kind::kKernel, host, name, 0);
}

void add_variable(Image* image, const void* host, const char* name, size_t bytes) {
    add(image, Entry::Kind::kVariable, host, name, bytes);
}

void add_managed(Image* image, void** host_pointer, const char* name, size_t bytes) {
    add(image, Entry::Kind::kManaged, host_pointer, name, bytes);
}

Entry* find_entry(const void* host) {
    RegistryLocked locked;
    return find_locked(host, true);
}

cudaError_t resolve(Entry* entry, RegisteredKernel& kernel) {
    if (entry->generation.load(std::memory_order_acquire) != generation()) {
        RegistryLocked locked;
        if (cudaError_t failed = ask_for_kernel(*entry)) return failed;
    }
    kernel = entry->kernel;
    return cudaSuccess;
}

cudaError_t find_kernel(const void* host, RegisteredKernel& kernel) {
    if (Entry* entry = find_entry(host)) return resolve(entry, kernel);
    if (!host) return cudaErrorInvalidDeviceFunction;
    // The driver accepts any value and recognises its own handles.
    kernel.kernel = reinterpret_cast<CUkernel>(const_cast<void*>(host));
    return from_driver(driver().cuKernelGetFunction(&kernel.function, kernel.kernel));
}

cudaError_t find_symbol(const void* host, Symbol& symbol) {
    RegistryLocked locked;
    Entry* entry = find_locked(host, false);
    if (!entry && host) entry = find_managed_locked(host);
    if (!entry) return cudaErrorInvalidSymbol;
    if (place_of(*entry).generation != generation()) {
        if (cudaError_t failed = load_locked(*entry->image)) return failed;
        CUresult status = locate_variable(*entry);
        if (status == CUDA_ERROR_NOT_FOUND) return cudaErrorInvalidSymbol;
        if (status != CUDA_SUCCESS) return from_driver(status);
    }
    symbol = {place_of(*entry).address, entry->bytes};
    return cudaSuccess;
}

cudaError_t load(Image* image) {
    if (!image) return cudaErrorMemoryAllocation;
    RegistryLocked locked;
    return load_locked(*image);
}

const void* host_side(CUfunction function) {
    RegistryLocked locked;
    for (Entry* bucket : buckets) {
        for (Entry* at = bucket; at; at = at->next_in_bucket) {
            if (at->kind == Entry::Kind::kKernel && at->kernel.function == function) return at->host;
        }
    }
    return nullptr;
}

}  // namespace smt::cudart
