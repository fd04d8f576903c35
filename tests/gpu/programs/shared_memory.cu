// Two processes share device memory and an event: the parent fills it by a kernel that takes long and waits
// for nothing, the child adds to it behind the event, and back. The child is a new process, since a forked
// one may not use CUDA.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "program.h"

constexpr int kCount = 100003, kRounds = 5;
constexpr long long kCycles = 4'000'000;  // two milliseconds or so

__global__ void fill_late(int* to, int value) {
    const long long begin = clock64();
    while (clock64() - begin < kCycles) {
    }
    for (int i = threadIdx.x; i < kCount; i += blockDim.x) to[i] = value + i;
}

__global__ void add(int* to, int amount) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < kCount) to[i] += amount;
}

struct Handles {
    cudaIpcMemHandle_t memory;
    cudaIpcEventHandle_t filled, added;
};

struct Pipe {
    int ends[2];
    Pipe() {
        if (pipe(ends) != 0) std::_Exit(1);
    }
};

template <typename Value>
void put(int file, const Value& value) {
    if (write(file, &value, sizeof value) != sizeof value) std::_Exit(1);
}

template <typename Value>
Value take(int file) {
    Value value;
    char* to = reinterpret_cast<char*>(&value);
    for (size_t at = 0; at < sizeof value;) {
        const ssize_t got = read(file, to + at, sizeof value - at);
        if (got <= 0) std::_Exit(1);
        at += static_cast<size_t>(got);
    }
    return value;
}

cudaEvent_t shared_event() {
    cudaEvent_t event;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
    return event;
}

int child(int from, int to) {
    const auto handles = take<Handles>(from);
    cudaEvent_t filled, added;
    cudaStream_t stream;
    void* memory = nullptr;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaIpcOpenMemHandle(&memory, handles.memory, cudaIpcMemLazyEnablePeerAccess));
    CHECK(cudaIpcOpenEventHandle(&filled, handles.filled));
    CHECK(cudaIpcOpenEventHandle(&added, handles.added));
    put(to, 0);
    for (int round = 0; round < kRounds; ++round) {
        take<int>(from);  // the parent has recorded the event, and its kernel may still run
        CHECK(cudaStreamWaitEvent(stream, filled, 0));
        add<<<(kCount + 255) / 256, 256, 0, stream>>>(static_cast<int*>(memory), 1000);
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(added, stream));
        put(to, round);
    }
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaIpcCloseMemHandle(memory));
    CHECK(cudaEventDestroy(filled));
    CHECK(cudaEventDestroy(added));
    return 0;
}

pid_t start(const Pipe& down, const Pipe& up) {
    char from[16], to[16];
    std::snprintf(from, sizeof from, "%d", down.ends[0]);
    std::snprintf(to, sizeof to, "%d", up.ends[1]);
    const pid_t started = fork();
    if (started == 0) {  // without the parent's ends, or neither would see the other's end
        close(down.ends[1]);
        close(up.ends[0]);
        execl("/proc/self/exe", "shared_memory", from, to, nullptr);
        _exit(1);
    }
    close(down.ends[0]);
    close(up.ends[1]);
    return started;
}

int main(int count, char** arguments) {
    if (count == 3) return child(std::atoi(arguments[1]), std::atoi(arguments[2]));
    Result result;
    Pipe down, up;
    const pid_t started = start(down, up);
    int* memory = nullptr;
    cudaStream_t stream;
    const cudaEvent_t filled = shared_event(), added = shared_event();
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&memory, kCount * sizeof(int)));
    Handles handles;
    CHECK(cudaIpcGetMemHandle(&handles.memory, memory));
    CHECK(cudaIpcGetEventHandle(&handles.filled, filled));
    CHECK(cudaIpcGetEventHandle(&handles.added, added));
    put(down.ends[1], handles);
    take<int>(up.ends[0]);
    std::vector<int> seen(kCount);
    for (int round = 0; round < kRounds; ++round) {
        fill_late<<<1, 256, 0, stream>>>(memory, round);
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(filled, stream));
        put(down.ends[1], round);
        take<int>(up.ends[0]);
        CHECK(cudaEventSynchronize(added));
        CHECK(cudaMemcpyAsync(seen.data(), memory, kCount * sizeof(int), cudaMemcpyDeviceToHost, stream));
        CHECK(cudaStreamSynchronize(stream));
        bool right = true;
        for (int i = 0; i < kCount; ++i) right &= seen[i] == round + i + 1000;
        result.expect(right, "what both have done");
        result.fold(seen.data(), kCount * sizeof(int));
    }
    int status = 0;
    waitpid(started, &status, 0);
    result.expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child's end");
    CHECK(cudaFree(memory));
    return result.finish();
}
