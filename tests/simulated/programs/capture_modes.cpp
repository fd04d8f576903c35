// What captures forbid, by their modes, the threads' modes, and the streams on which they began. A call that
// is forbidden is not made, and breaks the capture.
#include <thread>

#include "tests/preload/program.h"

namespace {

constexpr CUstreamCaptureMode kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;
constexpr CUstreamCaptureMode kThreadLocal = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
constexpr CUstreamCaptureMode kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
constexpr CUresult kFine = CUDA_SUCCESS;
constexpr CUresult kForbidden = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
constexpr CUresult kImplicit = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;

CUcontext context = nullptr;
CUstream stream = nullptr, blocking = nullptr;
CUdeviceptr memory = 0;

template <typename Work>
void in_another_thread(Work work) {
    std::thread([&work] {
        CHECK(cuCtxSetCurrent(context));
        work();
    }).join();
}

CUstreamCaptureMode exchange(CUstreamCaptureMode mode) {
    CHECK(cuThreadExchangeStreamCaptureMode(&mode));
    return mode;
}

// A capture with one node, in which the call has that result.
template <typename Call>
void in_capture(CUstream on, CUstreamCaptureMode mode, CUresult result, Call call) {
    CUgraph graph = nullptr;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CHECK(cuStreamBeginCapture(on, mode));
    CHECK(cuMemsetD32Async(memory, 1, 1, on));
    REQUIRE(call() == result);
    CHECK(cuStreamIsCapturing(on, &status));
    const bool goes_on = result == kFine;
    REQUIRE(status == (goes_on ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED));
    REQUIRE(cuStreamEndCapture(on, &graph) ==
            (goes_on ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));
    if (goes_on) CHECK(cuGraphDestroy(graph));
}

CUresult allocate() {
    CUdeviceptr made = 0;
    const CUresult status = cuMemAlloc(&made, 4096);
    if (status == CUDA_SUCCESS) CHECK(cuMemFree(made));
    return status;
}

CUresult allocate_in_mode(CUstreamCaptureMode mode) {
    const CUstreamCaptureMode before = exchange(mode);
    const CUresult status = allocate();
    REQUIRE(exchange(before) == mode);
    return status;
}

CUresult allocate_elsewhere(CUstreamCaptureMode mode) {
    CUresult status = CUDA_SUCCESS;
    in_another_thread([&] { status = allocate_in_mode(mode); });
    return status;
}

void unsafe_calls() {
    for (const CUstreamCaptureMode mode : {kGlobal, kThreadLocal, kRelaxed}) {
        const CUresult result = mode == kRelaxed ? kFine : kForbidden;
        in_capture(stream, mode, result, allocate);
        in_capture(stream, mode, result, [] {
            unsigned word = 7;
            return cuMemcpyHtoD(memory, &word, sizeof word);
        });
        in_capture(stream, mode, result, [] {
            CUevent event = nullptr;
            CHECK(cuEventCreate(&event, CU_EVENT_DEFAULT));
            const CUresult status = cuEventQuery(event);
            CHECK(cuEventDestroy(event));
            return status;
        });
        in_capture(stream, mode, kFine, [] { return allocate_in_mode(kRelaxed); });
        in_capture(stream, mode, result, [] { return allocate_in_mode(kThreadLocal); });
        in_capture(stream, mode, mode == kGlobal ? kForbidden : kFine,
                   [] { return allocate_elsewhere(kGlobal); });
        in_capture(stream, mode, kFine, [] { return allocate_elsewhere(kThreadLocal); });
        in_capture(stream, mode, kFine, [] { return allocate_elsewhere(kRelaxed); });
    }
}

CUresult use_legacy_stream() { return cuMemsetD32Async(memory, 5, 1, CU_STREAM_LEGACY); }

// Beside the capture of a blocking stream the legacy stream cannot be used, in whatever mode.
void legacy_stream() {
    unsigned word = 0;
    CHECK(cuMemsetD32(memory, 9, 1));
    for (const CUstreamCaptureMode mode : {kGlobal, kThreadLocal, kRelaxed}) {
        in_capture(blocking, mode, kImplicit, use_legacy_stream);
        in_capture(blocking, mode, kImplicit, [] { return cuStreamSynchronize(CU_STREAM_LEGACY); });
        in_capture(blocking, mode, kImplicit, [] {
            unsigned word = 7;
            return cuMemcpyHtoD(memory, &word, sizeof word);
        });
        in_capture(blocking, mode, kImplicit, [] {
            CUresult status = CUDA_SUCCESS;
            in_another_thread([&status] { status = use_legacy_stream(); });
            return status;
        });
        in_capture(blocking, mode, kFine, [] {  // which does not break the capture
            CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
            FAILS(cuStreamIsCapturing(CU_STREAM_LEGACY, &status), kImplicit);
            return cuMemsetD32Async(memory, 5, 1, blocking);
        });
    }
    CHECK(cuMemcpyDtoH(&word, memory, sizeof word));
    REQUIRE(word == 9);
    in_capture(stream, kGlobal, kFine, use_legacy_stream);
    CHECK(cuMemcpyDtoH(&word, memory, sizeof word));
    REQUIRE(word == 5);
}

void in_any_mode() {
    for (const CUstreamCaptureMode mode : {kGlobal, kThreadLocal, kRelaxed}) {
        in_capture(stream, mode, kForbidden, [] { return cuCtxSynchronize(); });
        in_capture(stream, mode, kForbidden,
                   [] { return cuStreamAddCallback(stream, [](CUstream, CUresult, void*) {}, nullptr, 0); });
    }
}

void end_elsewhere() {
    for (const CUstreamCaptureMode mode : {kGlobal, kThreadLocal})
        in_capture(stream, mode, kFine, [] {
            in_another_thread([] {
                CUgraph graph = nullptr;
                FAILS(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
            });
            return cuMemsetD32Async(memory, 5, 1, stream);
        });
    CHECK(cuStreamBeginCapture(stream, kRelaxed));
    in_another_thread([] {
        CUgraph graph = nullptr;
        CHECK(cuStreamEndCapture(stream, &graph));
        CHECK(cuGraphDestroy(graph));
    });
}

// A capture that ends with its stream, or with its thread, forbids nothing any more.
void ends_otherwise() {
    CUstream made = nullptr;
    CHECK(cuStreamCreate(&made, CU_STREAM_DEFAULT));
    CHECK(cuStreamBeginCapture(made, kGlobal));
    CHECK(cuStreamDestroy(made));
    CHECK(allocate());
    in_another_thread([] { CHECK(cuStreamBeginCapture(CU_STREAM_PER_THREAD, kGlobal)); });
    CHECK(allocate());
    CHECK(use_legacy_stream());
    CHECK(cuCtxSynchronize());
}

// Of a thread's default stream, which only the thread itself can name.
void of_default_stream() {
    CUgraph graph = nullptr;
    CHECK(cuStreamBeginCapture(CU_STREAM_PER_THREAD, kGlobal));
    REQUIRE(allocate_elsewhere(kGlobal) == kForbidden);
    FAILS(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(cuStreamBeginCapture(CU_STREAM_PER_THREAD, kGlobal));
    REQUIRE(allocate_elsewhere(kThreadLocal) == kFine);
    CHECK(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph));
    CHECK(cuGraphDestroy(graph));
}

}  // namespace

int main() {
    context = preload::start();
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    CHECK(cuMemAlloc(&memory, 4096));
    unsafe_calls();
    legacy_stream();
    in_any_mode();
    end_elsewhere();
    ends_otherwise();
    of_default_stream();
}
