// Managed buffers that go from stream to stream: tasks alternate between the host and the device, in several
// threads with a stream each. Before a step its buffers are attached to the host, to the thread's stream or
// to all streams, and the stream waits for the step before, which another thread took.
#include <thread>
#include <vector>

#include "program.h"

constexpr int kThreads = 4, kTasks = 12, kRounds = 9, kRepeats = 16;

// One step of an element; the same on both sides.
__host__ __device__ inline uint32_t advance(uint32_t value, uint32_t index, uint32_t key) {
    for (int i = 0; i < kRepeats; ++i) value = value * 1664525u + key + index;
    return value;
}

__global__ void advance_all(uint32_t* data, int count, uint32_t key) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] = advance(data[i], static_cast<uint32_t>(i), key);
}

__global__ void add_up(const uint32_t* data, int count, uint32_t* sum) {
    __shared__ uint32_t all;
    if (threadIdx.x == 0) all = 0;
    __syncthreads();
    uint32_t mine = 0;
    for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) mine += data[i];
    atomicAdd(&all, mine);
    __syncthreads();
    if (threadIdx.x == 0) *sum = *sum * 31 + all;
}

struct Task {
    int count = 0;
    uint32_t* data = nullptr;    // managed
    uint32_t* sum = nullptr;     // likewise: of all steps
    cudaEvent_t done = nullptr;  // behind the last step on the device
    std::vector<uint32_t> expected;
    uint32_t expected_sum = 0;
};

void step(uint32_t* data, int count, uint32_t key, uint32_t* sum) {
    uint32_t all = 0;
    for (int i = 0; i < count; ++i) all += data[i] = advance(data[i], static_cast<uint32_t>(i), key);
    *sum = *sum * 31 + all;
}

uint32_t key_of(int task, int round) { return static_cast<uint32_t>(task * 7919 + round * 104729 + 1); }
bool on_host(int task, int round) { return (task + round) % 2 == 0; }

void attach(const Task& task, cudaStream_t stream, unsigned how) {
    CHECK(cudaStreamAttachMemAsync(stream, task.data, 0, how));
    CHECK(cudaStreamAttachMemAsync(stream, task.sum, 0, how));
}

// Nothing on the device is waited for but what a step on the host needs.
void take(Task& task, int number, int round, cudaStream_t stream) {
    CHECK(cudaStreamWaitEvent(stream, task.done, 0));
    if (on_host(number, round)) {
        attach(task, stream, cudaMemAttachHost);
        CHECK(cudaStreamSynchronize(stream));
        step(task.data, task.count, key_of(number, round), task.sum);
        return;
    }
    attach(task, stream, round % 3 ? cudaMemAttachSingle : cudaMemAttachGlobal);
    advance_all<<<(task.count + 127) / 128, 128, 0, stream>>>(task.data, task.count, key_of(number, round));
    CHECK(cudaGetLastError());
    add_up<<<1, 128, 0, stream>>>(task.data, task.count, task.sum);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(task.done, stream));
}

void make(Task& task, Random& random) {
    task.count = 256 + random.below(1792);
    const size_t bytes = static_cast<size_t>(task.count) * sizeof(uint32_t);
    CHECK(cudaMallocManaged(&task.data, bytes, cudaMemAttachHost));
    CHECK(cudaMallocManaged(&task.sum, sizeof *task.sum, cudaMemAttachHost));
    CHECK(cudaEventCreateWithFlags(&task.done, cudaEventDisableTiming));
    for (int i = 0; i < task.count; ++i) task.data[i] = random.next();
    *task.sum = 0;
    task.expected.assign(task.data, task.data + task.count);
}

int main() {
    Result result;
    Random random;
    std::vector<Task> tasks(kTasks);
    for (Task& task : tasks) make(task, random);
    cudaStream_t streams[kThreads];
    for (cudaStream_t& stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

    // A task's step is taken by another thread in each round.
    for (int round = 0; round < kRounds; ++round) {
        std::vector<std::thread> threads;
        for (int thread = 0; thread < kThreads; ++thread) {
            threads.emplace_back([&, thread] {
                for (int i = 0; i < kTasks; ++i) {
                    if ((i + round) % kThreads == thread) take(tasks[i], i, round, streams[thread]);
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
    }
    for (cudaStream_t stream : streams) CHECK(cudaStreamSynchronize(stream));

    int right = 0;
    for (int i = 0; i < kTasks; ++i) {
        Task& task = tasks[i];
        for (int round = 0; round < kRounds; ++round)
            step(task.expected.data(), task.count, key_of(i, round), &task.expected_sum);
        bool same = *task.sum == task.expected_sum;
        for (int j = 0; j < task.count; ++j) same &= task.data[j] == task.expected[j];
        right += same;
        result.fold(task.data, static_cast<size_t>(task.count) * sizeof(uint32_t));
        result.fold(*task.sum);
    }
    std::printf("tasks that are right: %d\n", right);
    result.expect(right == kTasks, "tasks");

    for (cudaStream_t stream : streams) CHECK(cudaStreamDestroy(stream));
    for (Task& task : tasks) {
        CHECK(cudaEventDestroy(task.done));
        CHECK(cudaFree(task.sum));
        CHECK(cudaFree(task.data));
    }
    return result.finish();
}
