// One call to the server from the current thread: the only way in which anything leaves libsmt.so.
//
//   RemoteCall call(op, payload_bound);       // opens the lane, checks state; see open errors below
//   if (!call.open()) return call.status();
//   call.in(x); call.in_stream(s); ...        // the payload, in the order the server reads it
//   call.post();                              // fire and forget  -> CUresult (usually SUCCESS; see below)
//   call.wait();                              // or: synchronous  -> the server's CUresult
//   call.out(y); call.out_array(p, n); ...    // after wait(): the reply, in the server's order
//
// Rules: it runs in the application's thread; it never throws, allocates, prints or exits; it never holds a
// lock while waiting. A RemoteCall lives on the stack and is used once.
//
// open() is false, and status() is the error, when the process never initialised CUDA or was forked
// (NOT_INITIALIZED), when the server is lost or a fault poisoned the shared context (the sticky error), or
// when no lane is available (OUT_OF_MEMORY).
//
// The error of an earlier fire-and-forget record of this thread, the late error (lane.h), prevents no call.
// post() returns it, once, although the call is made: made() tells. wait() leaves it to a later call, and so
// does post_quietly(), for a call that gives the program something to keep, or that is a part of another one.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "runtime/protocol/codec.h"
#include "runtime/protocol/record.h"

namespace smt::interpose {

struct Lane;

class RemoteCall {
public:
    // payload_bound: an upper bound of the payload's bytes, at most kMaxRecordBytes.
    RemoteCall(uint16_t op, uint64_t payload_bound);
    RemoteCall(protocol::Op op, uint64_t payload_bound)
        : RemoteCall(static_cast<uint16_t>(op), payload_bound) {}
    RemoteCall(const RemoteCall&) = delete;
    RemoteCall& operator=(const RemoteCall&) = delete;

    bool open() const { return lane_ != nullptr; }
    CUresult status() const { return status_; }

    template <typename T>
    void in(const T& value) {
        writer_.scalar(value);
    }
    template <typename T>
    void in_array(const T* values, uint64_t count) {
        writer_.array(values, count);
    }
    void in_string(const char* text) { writer_.string(text); }
    void in_bytes(const void* data, uint64_t bytes) { writer_.bytes(data, bytes); }
    // Space in the record itself, to be filled before post() or wait(); nullptr if it does not fit.
    char* in_space(uint64_t bytes) { return writer_.space(bytes); }

    // Both publish the record, or return CUDA_ERROR_INVALID_VALUE without sending if the payload did not fit.
    // wait() spins shortly, then sleeps; it returns the sticky error if the server goes away.
    CUresult post();
    CUresult post_quietly();
    CUresult wait();
    // The same for a call whose answers are remembered (answers.h): one that is known is not asked for again.
    CUresult recall_or_wait();
    // The record was sent and, if it was waited for, the server returned SUCCESS.
    bool made() const { return made_; }

    template <typename T>
    void out(T* value) {
        T v = reply_.scalar<T>();
        if (value && reply_.good()) *value = v;
    }
    // Copies min(count in reply, capacity) elements; returns the count in the reply.
    template <typename T>
    uint64_t out_array(T* values, uint64_t capacity) {
        uint64_t count = 0;
        const T* from = reply_.array<T>(count);
        for (uint64_t i = 0; from && values && i < count && i < capacity; ++i) values[i] = from[i];
        return count;
    }
    // The same for a list of handles: where the call succeeded, entries beyond the count become null.
    template <typename T>
    uint64_t out_list(T* values, uint64_t capacity) {
        const uint64_t count = out_array(values, capacity);
        if (status_ != CUDA_SUCCESS || !values) return count;
        for (uint64_t i = count; i < capacity; ++i) values[i] = T{};
        return count;
    }
    protocol::Reader& reply() { return reply_; }

private:
    void send(uint16_t flags, uint32_t reply_seq);

    Lane* lane_ = nullptr;
    CUresult status_ = CUDA_SUCCESS;
    uint16_t op_;
    bool made_ = false;
    protocol::Writer writer_{nullptr, 0};
    protocol::Reader reply_{nullptr, 0};
};

}  // namespace smt::interpose
