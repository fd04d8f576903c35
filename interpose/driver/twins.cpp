#include "interpose/driver/twins.h"

#include <cstdlib>
#include <cstring>

#include "driver.gen.h"
#include "interpose/driver/function.h"
#include "interpose/driver/lock.h"
#include "interpose/driver/queries.h"
#include "interpose/transport/lane.h"

namespace smt::interpose {

// What all twins have in common. `images` is the list of them.
struct Twins {
    Image* images;
    const void* data;
    uint64_t bytes;
    void* copy;  // null: `data` is the program's
    JitOptions jit;
};

namespace {

// Guards all Twins, their lists, the rings of kernels, and Image::twins. It is held while a twin is loaded,
// so that no session loads it twice.
constinit pthread_mutex_t twins_lock = PTHREAD_MUTEX_INITIALIZER;

bool sees_several_devices() {
    int count = 0;
    const DriverApi* driver = query_driver();
    return driver && driver->cuDeviceGetCount && driver->cuDeviceGetCount(&count) == CUDA_SUCCESS &&
           count > 1;
}

Image* find_twin(Twins& twins) {
    for (Image* each = twins.images; each; each = each->next_twin)
        if (each->session == thread_session) return each;
    return nullptr;
}

// Before an image goes: no kernel names one of its kernels then. Called with twins_lock held.
void break_rings(Twins& twins) {
    for (Image* image = twins.images; image; image = image->next_twin) {
        Function* function = image->functions.load(std::memory_order_acquire);
        for (; function; function = function->next) function->twin.store(nullptr, std::memory_order_relaxed);
    }
}

void free_twins(Twins* twins) {
    std::free(twins->copy);
    std::free(twins);
}

}  // namespace

void keep_source(Image& image, const void* data, uint64_t bytes, bool preserved, const JitOptions& jit) {
    if (!sees_several_devices()) return;
    auto* twins = static_cast<Twins*>(std::calloc(1, sizeof(Twins)));
    if (!twins) return;
    if (!preserved) {
        twins->copy = std::malloc(bytes);
        if (!twins->copy) return free_twins(twins);
        data = std::memcpy(twins->copy, data, bytes);
    }
    twins->images = &image;
    twins->data = data;
    twins->bytes = bytes;
    twins->jit = jit.without_logs();
    Lock lock(twins_lock);
    image.twins = twins;
}

Image* twin_here(Image* image) {
    if (!image || image->session == thread_session) return image;
    Lock lock(twins_lock);
    if (!image->twins) return image;
    Twins& twins = *image->twins;
    if (Image* known = find_twin(twins)) return known;
    Image* made = nullptr;
    JitOptions jit = twins.jit;
    if (load_image(protocol::ImageOwner::kLibrary, twins.data, twins.bytes, jit, nullptr, 0, made) !=
        CUDA_SUCCESS)
        return image;
    made->twins = &twins;
    made->next_twin = twins.images;
    twins.images = made;
    return made;
}

// Found again by a launch without a lock: a kernel keeps its twins in a list to which the newest is added.
Function* twin_here(Function* function) {
    if (!function || function->image->session == thread_session) return function;
    for (Function* each = function->twin.load(std::memory_order_acquire); each;
         each = each->twin.load(std::memory_order_acquire)) {
        if (each == function) break;
        if (each->image->session == thread_session) return each;
    }
    Image* const image = twin_here(function->image);
    Function* made = nullptr;
    if (image == function->image || fetch_function(*image, function->name, made) != CUDA_SUCCESS)
        return function;
    Lock lock(twins_lock);
    if (!image->twins || image->twins != function->image->twins) return function;  // a reset came between
    if (made->twin.load(std::memory_order_relaxed)) return made;  // another thread was faster
    Function* const next = function->twin.load(std::memory_order_relaxed);
    made->twin.store(next ? next : function, std::memory_order_release);  // the list is a ring
    function->twin.store(made, std::memory_order_release);
    return made;
}

CUmodule twin_here(CUmodule handle) {
    Image* const image = find_image(handle);
    return image ? reinterpret_cast<CUmodule>(twin_here(image)) : handle;
}
CUlibrary twin_here(CUlibrary handle) {
    Image* const image = find_image(handle);
    return image ? reinterpret_cast<CUlibrary>(twin_here(image)) : handle;
}
CUfunction twin_here(CUfunction handle) {
    Function* const function = find_function(handle);
    return function ? reinterpret_cast<CUfunction>(twin_here(function)) : handle;
}
CUkernel twin_here(CUkernel handle) {
    Function* const function = find_function(handle);
    return function ? reinterpret_cast<CUkernel>(twin_here(function)) : handle;
}

CUresult unload_twins(Image* image) {
    Twins* twins;
    Image* each;
    {
        Lock lock(twins_lock);
        twins = image->twins;
        each = twins ? twins->images : nullptr;
        if (twins) {
            break_rings(*twins);
            twins->images = nullptr;
        }
        for (Image* twin = each; twin; twin = twin->next_twin) twin->twins = nullptr;
    }
    if (!twins) return unload_image(image);
    CUresult status = CUDA_SUCCESS;
    Image* kept = nullptr;
    while (each) {
        Image* const next = each->next_twin;
        const InSession in(each->session);
        bool released;
        const CUresult result = unload_image(each, &released);
        if (status == CUDA_SUCCESS) status = result;
        if (!released) {  // its server refused
            each->next_twin = kept;
            kept = each;
        }
        each = next;
    }
    Lock lock(twins_lock);
    twins->images = kept;
    for (Image* twin = kept; twin; twin = twin->next_twin) twin->twins = twins;
    if (!kept) free_twins(twins);
    return status;
}

void forget_twins_here() {
    Lock lock(twins_lock);
    for_each_image(
        [](Image& image, void*) {
            Twins* const twins = image.twins;
            if (!twins) return;
            break_rings(*twins);
            Image** at = &twins->images;
            while (*at && *at != &image) at = &(*at)->next_twin;
            if (*at) *at = image.next_twin;
            image.twins = nullptr;
            if (!twins->images) free_twins(twins);
        },
        nullptr);
}

}  // namespace smt::interpose
