#include "interpose/driver/context.h"

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "driver.gen.h"
#include "interpose/driver/local_storage.h"
#include "interpose/driver/lock.h"
#include "interpose/driver/place.h"
#include "interpose/driver/queries.h"
#include "interpose/driver/session_work.h"
#include "interpose/process/real_driver.h"
#include "interpose/process/session.h"
#include "interpose/process/state.h"
#include "interpose/transport/connect.h"
#include "interpose/transport/lane.h"

namespace smt::interpose {

namespace {

constexpr uint32_t kMaxDevices = 32;
constexpr uint32_t kMaxContexts = 1024;
constexpr uint32_t kUsualDepth = 32;
constexpr unsigned kApiVersion = 3020;  // the driver's value for every context since CUDA 3.2
constexpr unsigned kFlagsMask = CU_CTX_FLAGS_MASK;
// The driver reports for every context that it can map host memory, requested or not.
constexpr unsigned kAlwaysSet = CU_CTX_MAP_HOST;

struct Context {
    std::atomic<uint32_t> live;
    CUdevice device;  // this and id: of a created context only
    unsigned flags;
    uint32_t attached;  // cuCtxAttach and cuCtxDetach; starts at 1
    uint64_t id;
};

struct Primary {
    Context context;    // first, so that a primary context's address gives its device
    uint32_t retained;  // unchanged by a reset, as in the driver
    std::atomic<CUcontext> token;
};

struct ThreadContexts {
    CUcontext usual[kUsualDepth];
    CUcontext* deeper;  // allocated only while the stack is deeper
    uint32_t room;      // of `deeper`
    uint32_t depth;

    CUcontext& top() { return depth <= kUsualDepth ? usual[depth - 1] : deeper[depth - 1 - kUsualDepth]; }
    bool add(CUcontext context) {
        if (depth >= kUsualDepth && depth - kUsualDepth == room) {
            const uint32_t wanted = room ? 2 * room : kUsualDepth;
            void* larger = std::realloc(deeper, wanted * sizeof(CUcontext));
            if (!larger) return false;
            deeper = static_cast<CUcontext*>(larger);
            room = wanted;
        }
        ++depth;
        top() = context;
        return true;
    }
    void drop() {
        if (--depth > kUsualDepth || !deeper) return;
        std::free(deeper);
        deeper = nullptr;
        room = 0;
    }
};

constinit pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
constinit Primary primaries[kMaxDevices]{};
constinit Context contexts[kMaxContexts]{};
constinit uint32_t created[kMaxDevices] = {};
constinit uint64_t last_id = kMaxDevices;  // the primary contexts have 1 to kMaxDevices
constinit thread_local ThreadContexts thread_contexts = {};

CUcontext token_of(CUdevice device) {
    Primary& primary = primaries[device];
    CUcontext token = primary.token.load(std::memory_order_relaxed);
    if (token) return token;
    token = real_primary_context(device);
    if (!token) token = reinterpret_cast<CUcontext>(&primary);
    primary.token.store(token, std::memory_order_relaxed);
    return token;
}

bool known_device(CUdevice device) { return device >= 0 && device < static_cast<CUdevice>(kMaxDevices); }

bool is_device(CUdevice device) {
    return known_device(device) && (place_of_session(device) || device_exists(device));
}

// The context behind a handle; null means the current one. nullptr: not one of ours, or destroyed.
Context* find_context(CUcontext handle) {
    if (!handle) handle = current_context();
    if (!handle) return nullptr;
    uintptr_t offset = reinterpret_cast<uintptr_t>(handle) - reinterpret_cast<uintptr_t>(contexts);
    if (offset < sizeof contexts) {
        Context& found = contexts[offset / sizeof(Context)];
        return offset % sizeof(Context) == 0 && found.live.load(std::memory_order_acquire) ? &found : nullptr;
    }
    // cudart may pass the primary context before it is retained.
    const CUdevice device = this_session().device();
    if (handle == token_of(device)) return &primaries[device].context;
    for (CUdevice i = 0; i < static_cast<CUdevice>(kMaxDevices); ++i) {
        if (primaries[i].token.load(std::memory_order_relaxed) == handle) return &primaries[i].context;
    }
    for (CUdevice i = 0; is_device(i); ++i)
        if (token_of(i) == handle) return &primaries[i].context;
    return nullptr;
}

bool is_primary(const Context* context) {
    uintptr_t offset = reinterpret_cast<uintptr_t>(context) - reinterpret_cast<uintptr_t>(contexts);
    return offset >= sizeof contexts;
}

CUdevice device_of(const Context* context) {
    if (!is_primary(context)) return context->device;
    return static_cast<CUdevice>(reinterpret_cast<const Primary*>(context) - primaries);
}

// A context on the device is wanted. Each device has a session.
CUresult enter_device(CUdevice device) {
    if (!known_device(device) || (connected() && !is_device(device))) return CUDA_ERROR_INVALID_DEVICE;
    return connect(device);
}

// What the thread calls from now on is for the device of its current context; without one, for the first
// device that the process used.
void follow_context() {
    const CUcontext handle = current_context();
    const Context* context = handle ? find_context(handle) : nullptr;
    Session* session = &sessions[0];
    if (context) {
        const CUdevice device = device_of(context);
        session = place_of_session(device);
        // The process's first session is left to the first call that needs it, which opens that of device 0.
        if (!session && (connected() || device != 0)) connect(device, &session);
    }
    if (session && session != thread_session) use_session(*session);
}

CUresult push(CUcontext context) {
    if (!thread_contexts.add(context)) return CUDA_ERROR_OUT_OF_MEMORY;
    follow_context();
    return CUDA_SUCCESS;
}

Context* new_context(CUdevice device, unsigned flags) {
    Lock lock(contexts_lock);
    for (Context& context : contexts) {
        if (context.live.load(std::memory_order_relaxed)) continue;
        context.device = device;
        context.flags = flags;
        context.attached = 1;
        context.id = ++last_id;
        context.live.store(1, std::memory_order_release);
        ++created[device];
        return &context;
    }
    return nullptr;
}

void remove_context(Context& context) {
    Lock lock(contexts_lock);
    if (context.live.exchange(0, std::memory_order_acq_rel)) --created[context.device];
}

}  // namespace

CUcontext current_context() {
    ThreadContexts& mine = thread_contexts;
    return mine.depth ? mine.top() : nullptr;
}

CUcontext context_of(const Session& session) {
    const CUcontext current = current_context();
    const Context* context = current ? find_context(current) : nullptr;
    return context && device_of(context) == session.device() ? current : token_of(session.device());
}

bool is_active(CUcontext context) {
    Context* found = context ? find_context(context) : nullptr;
    return found && found->live.load(std::memory_order_acquire) != 0;
}

namespace driver {

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    const CUresult status = enter_device(device);
    if (status != CUDA_SUCCESS) return status;
    if (native()) return real_driver()->cuDevicePrimaryCtxRetain(context, device);
    follow_context();  // the current one may have been there before its session
    Lock lock(contexts_lock);
    *context = token_of(device);
    ++primaries[device].retained;
    primaries[device].context.live.store(1, std::memory_order_release);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    bool last;
    {
        Lock lock(contexts_lock);
        if (primaries[device].retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
        bool active = --primaries[device].retained == 0 &&
                      primaries[device].context.live.load(std::memory_order_relaxed) != 0;
        if (!active) return CUDA_SUCCESS;
        last = created[device] == 0;
    }
    CUresult status = CUDA_SUCCESS;
    Session* const place = place_of_session(device);
    if (!place) return CUDA_SUCCESS;
    const InSession in(place);
    if (last) {
        status = free_everything(token_of(device));
    } else {
        drop_local_storage(token_of(device));
    }
    primaries[device].context.live.store(0, std::memory_order_release);
    return status;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    Context& context = primaries[device].context;
    if (context.live.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
    Session* const place = place_of_session(device);
    if (!place) return CUDA_SUCCESS;
    const InSession in(place);
    CUresult status = free_everything(token_of(device));
    context.live.store(0, std::memory_order_release);
    return status;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (flags & ~kFlagsMask) return CUDA_ERROR_INVALID_VALUE;
    Lock lock(contexts_lock);
    primaries[device].context.flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (!flags && !active) return CUDA_ERROR_INVALID_VALUE;
    Lock lock(contexts_lock);
    bool exists = primaries[device].context.live.load(std::memory_order_relaxed) != 0;
    if (flags) *flags = primaries[device].context.flags | (exists ? kAlwaysSet : 0);
    if (active) *active = exists;
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params, unsigned int flags, CUdevice device) {
    if (!context || (flags & ~kFlagsMask)) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult status = enter_device(device); status != CUDA_SUCCESS) return status;
    if (native()) {
        const DriverApi* real = real_driver();
        if (real->cuCtxCreate_v4) return real->cuCtxCreate_v4(context, params, flags, device);
        return params ? CUDA_ERROR_NOT_SUPPORTED : real->cuCtxCreate_v2(context, flags, device);
    }
    if (params && params->numExecAffinityParams != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    if (params && params->cigParams) return CUDA_ERROR_NOT_SUPPORTED;
    Context* made = new_context(device, flags);
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult status = push(reinterpret_cast<CUcontext>(made));
    if (status == CUDA_SUCCESS)
        *context = reinterpret_cast<CUcontext>(made);
    else
        remove_context(*made);
    return status;
}

CUresult cuCtxDestroy_v2(CUcontext context) {
    Context* found = context ? find_context(context) : nullptr;
    if (!found || is_primary(found)) return CUDA_ERROR_INVALID_CONTEXT;
    bool last;
    {
        Lock lock(contexts_lock);
        last = created[found->device] == 1 &&
               primaries[found->device].context.live.load(std::memory_order_relaxed) == 0;
    }
    CUresult status = CUDA_SUCCESS;
    if (Session* const place = place_of_session(found->device)) {
        const InSession in(place);
        status = last ? free_everything(context) : CUDA_SUCCESS;
        if (!last) {
            drop_local_storage(context);
            destroy_streams_of(context);
        }
    }
    remove_context(*found);
    if (current_context() == context) thread_contexts.drop();
    follow_context();
    return status;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
    if (!context || !find_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
    return push(context);
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
    ThreadContexts& mine = thread_contexts;
    if (mine.depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
    CUcontext popped = mine.top();
    mine.drop();
    follow_context();
    if (context) *context = popped;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
    ThreadContexts& mine = thread_contexts;
    if (!context) {
        if (mine.depth) mine.drop();
        follow_context();
        return CUDA_SUCCESS;
    }
    if (!find_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
    if (mine.depth == 0) mine.depth = 1;
    mine.top() = context;
    follow_context();
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    *context = current_context();
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) { return cuCtxGetDevice_v2(device, nullptr); }

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    Context* found = find_context(context);
    if (!found) return CUDA_ERROR_INVALID_CONTEXT;
    *device = device_of(found);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int* flags) {
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    Context* found = find_context(nullptr);
    if (!found) return CUDA_ERROR_INVALID_CONTEXT;
    *flags = found->flags | kAlwaysSet;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags) {
    if (flags & ~kFlagsMask) return CUDA_ERROR_INVALID_VALUE;
    Context* found = find_context(nullptr);
    if (!found) return CUDA_ERROR_INVALID_CONTEXT;
    Lock lock(contexts_lock);
    found->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
    if (!id) return CUDA_ERROR_INVALID_VALUE;
    Context* found = find_context(context);
    if (!found) return CUDA_ERROR_INVALID_CONTEXT;
    *id = is_primary(found) ? static_cast<uint64_t>(device_of(found)) + 1 : found->id;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned int* version) {
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    if (!find_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
    *version = kApiVersion;
    return CUDA_SUCCESS;
}

CUresult cuCtxAttach(CUcontext* context, unsigned int flags) {
    if (!context || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    Context* found = find_context(nullptr);
    if (!found) return CUDA_ERROR_INVALID_CONTEXT;
    Lock lock(contexts_lock);
    ++found->attached;
    *context = current_context();
    return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext context) {
    Context* found = context ? find_context(context) : nullptr;
    if (!found || context != current_context()) return CUDA_ERROR_INVALID_CONTEXT;
    {
        Lock lock(contexts_lock);
        if (found->attached > 1) return --found->attached, CUDA_SUCCESS;
    }
    return driver::cuCtxDestroy_v2(context);
}

CUresult cuCtxSynchronize() {
    return require_context() == CUDA_SUCCESS ? synchronize_session() : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxSynchronize_v2(CUcontext context) {
    const Context* found = find_context(context);
    if (!found) return CUDA_ERROR_INVALID_CONTEXT;
    Session* const place = place_of_session(device_of(found));
    if (!place && connected()) return CUDA_SUCCESS;
    const InSession in(place);
    return synchronize_session();
}

}  // namespace driver

}  // namespace smt::interpose
