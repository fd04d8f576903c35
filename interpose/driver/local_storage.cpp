#include "interpose/driver/local_storage.h"

#include <pthread.h>
#include <stdlib.h>

#include <atomic>
#include <cstdint>

#include "interpose/driver/context.h"
#include "interpose/process/state.h"

namespace smt::interpose {

namespace {

using Destructor = void (*)(CUcontext, void* key, void* value);

// Values that a runtime stores with a context. Nodes are never freed and their (context, key) never change,
// so get(), which cudart calls in nearly every call, needs no lock.
struct Stored {
    CUcontext context;
    void* key;
    std::atomic<void*> value;
    std::atomic<Destructor> destructor;
    std::atomic<uint32_t> live;
    Stored* next;
};

constinit std::atomic<Stored*> stored{nullptr};
constinit pthread_mutex_t storage_lock = PTHREAD_MUTEX_INITIALIZER;

Stored* find_stored(CUcontext context, void* key) {
    for (Stored* at = stored.load(std::memory_order_acquire); at; at = at->next) {
        if (at->key == key && at->context == context) return at;
    }
    return nullptr;
}

CUresult storage_put(CUcontext context, void* key, void* value, Destructor destructor) {
    if (!ready()) return not_ready();
    if (!context) context = current_context();
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&storage_lock);
    Stored* found = find_stored(context, key);
    if (!found) {
        found = static_cast<Stored*>(calloc(1, sizeof(Stored)));
        if (found) {
            found->context = context;
            found->key = key;
            found->next = stored.load(std::memory_order_relaxed);
            stored.store(found, std::memory_order_release);
        }
    }
    if (found) {
        found->value.store(value, std::memory_order_relaxed);
        found->destructor.store(destructor, std::memory_order_relaxed);
        found->live.store(1, std::memory_order_release);
    }
    pthread_mutex_unlock(&storage_lock);
    return found ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult storage_delete(CUcontext context, void* key) {
    if (!ready()) return not_ready();
    if (!context) context = current_context();
    Stored* found = find_stored(context, key);
    return found && found->live.exchange(0, std::memory_order_acq_rel) ? CUDA_SUCCESS
                                                                       : CUDA_ERROR_INVALID_HANDLE;
}

// Miss: INVALID_HANDLE. No active context, also after a reset of it: INVALID_CONTEXT, which makes cudart
// retain the primary context (again).
CUresult storage_get(void** value, CUcontext context, void* key) {
    if (!ready()) return not_ready();
    if (!context) context = current_context();
    if (!is_active(context)) return CUDA_ERROR_INVALID_CONTEXT;
    Stored* found = find_stored(context, key);
    if (!found || found->live.load(std::memory_order_acquire) == 0) return CUDA_ERROR_INVALID_HANDLE;
    if (value) *value = found->value.load(std::memory_order_relaxed);
    return CUDA_SUCCESS;
}

// The real table has no size word either.
constinit const void* own_storage[4]{};

}  // namespace

const void* local_storage_table() {
    pthread_mutex_lock(&storage_lock);
    own_storage[0] = reinterpret_cast<const void*>(&storage_put);
    own_storage[1] = reinterpret_cast<const void*>(&storage_delete);
    own_storage[2] = reinterpret_cast<const void*>(&storage_get);
    pthread_mutex_unlock(&storage_lock);
    return own_storage;
}

void drop_local_storage(CUcontext context) {
    for (Stored* at = stored.load(std::memory_order_acquire); at; at = at->next) {
        if (at->context != context || at->live.exchange(0, std::memory_order_acq_rel) == 0) continue;
        Destructor destructor = at->destructor.load(std::memory_order_relaxed);
        if (destructor) destructor(context, at->key, at->value.load(std::memory_order_relaxed));
    }
}

}  // namespace smt::interpose
