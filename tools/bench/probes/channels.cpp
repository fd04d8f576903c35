// Which streams of one context share a channel to the GPU: a stream waits for a word, every other one is told
// to write a word of its own, and those whose words do not come stand behind it. Streams in the order in
// which they were made, with several priorities; then some are destroyed and others made in their place.
//
//     channels [STREAMS]     needs a GPU; CUDA_DEVICE_MAX_CONNECTIONS as it is set
#include <cuda.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                            \
    do {                                                                       \
        const CUresult status = call;                                          \
        if (status) return std::fprintf(stderr, "%s: %d\n", #call, status), 1; \
    } while (false)

namespace {

constexpr int kMost = 512;
volatile uint32_t* words = nullptr;  // 0 to kMost - 1: written by streams; kMost: waited for
CUdeviceptr address = 0;
uint32_t turn = 0;

CUdeviceptr word(int number) { return address + 4 * static_cast<CUdeviceptr>(number); }

struct Made {
    CUstream stream;
    int priority;
};

// Prints which of the streams do not move while `waiter` waits.
int show(const std::vector<Made>& streams, size_t waiter) {
    ++turn;
    CHECK(cuStreamWaitValue32(streams[waiter].stream, word(kMost), turn, CU_STREAM_WAIT_VALUE_GEQ));
    for (size_t i = 0; i < streams.size(); ++i)
        if (i != waiter) CHECK(cuStreamWriteValue32(streams[i].stream, word(static_cast<int>(i)), turn, 0));
    usleep(20'000);
    std::printf("stream %zu (priority %d) waits:", waiter, streams[waiter].priority);
    int behind = 0;
    for (size_t i = 0; i < streams.size(); ++i) {
        if (i == waiter || words[i] == turn) continue;
        std::printf(" %zu", i);
        ++behind;
    }
    std::printf("%s\n", behind ? " stand behind it" : " no stream stands behind it");
    words[kMost] = turn;
    CHECK(cuCtxSynchronize());
    return 0;
}

int make(std::vector<Made>& streams, int count, int priority) {
    for (int i = 0; i < count; ++i) {
        CUstream stream = nullptr;
        CHECK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, priority));
        streams.push_back({stream, priority});
    }
    return 0;
}

}  // namespace

int main(int count, char** arguments) {
    const int most = count > 1 ? std::atoi(arguments[1]) : 40;
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    CUdevice device;
    CUcontext context;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    void* memory = nullptr;
    CHECK(cuMemHostAlloc(&memory, (kMost + 1) * 4, CU_MEMHOSTALLOC_DEVICEMAP));
    CHECK(cuMemHostGetDevicePointer(&address, memory, 0));
    words = static_cast<volatile uint32_t*>(memory);
    for (int i = 0; i <= kMost; ++i) words[i] = 0;
    std::printf("CUDA_DEVICE_MAX_CONNECTIONS=%s, %d streams of priority 0, 12 of -1, 12 of -5\n",
                std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), most);
    std::vector<Made> streams;
    if (make(streams, most, 0) || make(streams, 12, -1) || make(streams, 12, -5)) return 1;
    for (size_t i = 0; i < streams.size(); ++i)
        if (show(streams, i)) return 1;
    std::printf("each third one is destroyed and made again\n");
    for (size_t i = 0; i < streams.size(); i += 3) CHECK(cuStreamDestroy(streams[i].stream));
    for (size_t i = 0; i < streams.size(); i += 3)
        CHECK(cuStreamCreateWithPriority(&streams[i].stream, CU_STREAM_NON_BLOCKING, streams[i].priority));
    for (size_t i = 0; i < streams.size(); i += 3)
        if (show(streams, i)) return 1;
    std::printf(
        "a round like eight programs', three times: a stream each, then a waiter and a writer each, then all "
        "go\n");
    for (Made& made : streams) CHECK(cuStreamDestroy(made.stream));
    for (int round = 0; round < 3; ++round) {
        streams.clear();
        if (make(streams, 2, -5) || make(streams, 8, 0)) return 1;
        for (int i = 0; i < 8; ++i)
            if (make(streams, 1, 0) || make(streams, 1, -1)) return 1;
        for (size_t i = 0; i < streams.size(); ++i)
            if (show(streams, i)) return 1;
        for (size_t i = 2; i < streams.size(); ++i) CHECK(cuStreamDestroy(streams[i].stream));
    }
    return 0;
}
