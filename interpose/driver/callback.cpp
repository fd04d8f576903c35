#include "interpose/driver/callback.h"

#include <pthread.h>

#include <cstdlib>

#include "driver.gen.h"
#include "interpose/driver/capture.h"
#include "interpose/driver/lock.h"
#include "interpose/driver/order.h"
#include "interpose/process/own_thread.h"
#include "interpose/process/session.h"
#include "interpose/transport/connect.h"
#include "interpose/transport/lane.h"
#include "interpose/transport/remote_call.h"
#include "interpose/transport/waiting.h"
#include "runtime/protocol/try.h"

namespace smt::interpose {

using protocol::CallbackKind;
using protocol::CallbackSlot;
using protocol::SessionHeader;

namespace {

constexpr uint32_t kSleepMilliseconds = 500;

constinit pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
constinit PerSession<std::atomic<bool>> started;

// A call of cuStreamAddCallback that is to come. The server has its address as the user data. A fault ends
// all work, but these calls are made, with the error.
struct PendingCallback {
    CUstream stream;
    CUstreamCallback function;
    void* user_data;
    Session* session;
    PendingCallback* next;
};
constinit pthread_mutex_t pending_lock = PTHREAD_MUTEX_INITIALIZER;
constinit PendingCallback* pending = nullptr;  // the oldest first
constinit PendingCallback** pending_end = &pending;

void add(PendingCallback* callback) {
    Lock lock(pending_lock);
    *pending_end = callback;
    pending_end = &callback->next;
}

template <typename Wanted>
PendingCallback* take(const Wanted& wanted) {
    Lock lock(pending_lock);
    PendingCallback** at = &pending;
    while (*at && !wanted(**at)) at = &(*at)->next;
    PendingCallback* found = *at;
    if (!found) return nullptr;
    *at = found->next;
    if (!*at) pending_end = at;
    return found;
}

void call(PendingCallback* callback, CUresult status) {
    const CUstream stream = callback->stream == CU_STREAM_LEGACY ? nullptr : callback->stream;
    callback->function(stream, status, callback->user_data);
    std::free(callback);
}

void call_with_error(const Session& session) {
    const CUresult error = session.sticky_error();
    if (error == CUDA_SUCCESS) return;
    while (PendingCallback* each =
               take([&](const PendingCallback& callback) { return callback.session == &session; }))
        call(each, error);
}

void run(Session& session, const CallbackSlot& slot) {
    if (slot.kind == static_cast<uint32_t>(CallbackKind::kStreamCallback)) {
        PendingCallback* const callback = take(
            [&](const PendingCallback& each) { return reinterpret_cast<uint64_t>(&each) == slot.user_data; });
        if (callback) call(callback, static_cast<CUresult>(slot.status));  // else it was, with an error
    } else {
        reinterpret_cast<CUhostFn>(slot.function)(reinterpret_cast<void*>(slot.user_data));
    }
    // A graph's node reuses its word, and results may arrive out of order.
    std::atomic<uint64_t>& word = session.completion_word(static_cast<uint32_t>(slot.done_word));
    uint64_t now = word.load(std::memory_order_relaxed);
    while (now < slot.done_value && !word.compare_exchange_weak(now, slot.done_value)) {
    }
}

void* callback_thread(void* argument) {
    Session& session = *static_cast<Session*>(argument);
    use_session(session);
    SessionHeader& header = *session.header();
    uint32_t head = header.callback_head.load(std::memory_order_relaxed);
    header.callback_thread.store(1, std::memory_order_release);
    while (true) {
        uint32_t tail = header.callback_tail.load(std::memory_order_acquire);
        if (head == tail) {
            futex_wait(header.callback_tail, tail, kSleepMilliseconds);
            const bool idle = header.callback_tail.load(std::memory_order_acquire) == head;
            const bool lives = !idle || session.server_lives();
            if (idle) call_with_error(session);
            if (!lives) break;
            continue;
        }
        CallbackSlot slot = header.callbacks[head % protocol::kCallbackSlots];
        header.callback_head.store(++head, std::memory_order_release);
        run(session, slot);
    }
    return nullptr;
}

CUresult launch_thread() {
    if (!start_own_thread(callback_thread, thread_session)) return CUDA_ERROR_OPERATING_SYSTEM;
    started.here().store(true, std::memory_order_release);
    return CUDA_SUCCESS;
}

CUresult post_host_function(CUstream stream, const void* function, void* user_data, CallbackKind kind) {
    uint32_t reference;
    if (!stream_ref(stream, reference)) return CUDA_ERROR_INVALID_HANDLE;
    if (CUresult status = start_callback_thread(); status != CUDA_SUCCESS) return status;
    if (CUresult status = order_after(stream); status != CUDA_SUCCESS) return status;
    RemoteCall call(protocol::Op::kHostFunction, sizeof(protocol::HostFunction));
    if (!call.open()) return call.status();
    call.in(protocol::HostFunction{reinterpret_cast<uint64_t>(function),
                                   reinterpret_cast<uint64_t>(user_data), reinterpret_cast<uint64_t>(stream),
                                   reference, static_cast<uint32_t>(kind)});
    CUresult status = call.post_quietly();  // a program may free what a call that fails was given
    note_use(stream);
    return status;
}

}  // namespace

CUresult start_callback_thread() {
    if (started.here().load(std::memory_order_acquire)) return CUDA_SUCCESS;
    if (CUresult status = connect(); status != CUDA_SUCCESS) return status;
    if (!this_session().header()) return CUDA_ERROR_SYSTEM_NOT_READY;
    pthread_mutex_lock(&start_lock);
    CUresult status = started.here().load(std::memory_order_relaxed) ? CUDA_SUCCESS : launch_thread();
    pthread_mutex_unlock(&start_lock);
    return status;
}

namespace driver {

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* user_data) {
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    return post_host_function(stream, reinterpret_cast<const void*>(function), user_data,
                              CallbackKind::kHostFunction);
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* user_data,
                             unsigned int flags) {
    if (!callback || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (any_capture_active()) {
        CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
        SMT_TRY(capture_status(stream, &capture));
        if (capture != CU_STREAM_CAPTURE_STATUS_NONE) return driver::cuStreamQuery(stream);  // breaks it
    }
    auto* made = static_cast<PendingCallback*>(std::malloc(sizeof(PendingCallback)));
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    *made = {stream, callback, user_data, thread_session, nullptr};
    add(made);
    const CUresult status = post_host_function(stream, reinterpret_cast<const void*>(callback), made,
                                               CallbackKind::kStreamCallback);
    const auto is_made = [&](const PendingCallback& each) { return &each == made; };
    if (status != CUDA_SUCCESS) std::free(take(is_made));
    return status;
}

}  // namespace driver

}  // namespace smt::interpose
