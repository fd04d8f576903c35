// The two sides of a fault, for faults.py. Each says READY and reads lines.
//
//   bench_faults neighbour STATE MIB [US]   what a program does while another one faults, and what it finds:
//       idle       nothing, until a line comes; then it computes
//       asking     calls that need no GPU, again and again, US microseconds apart
//       held       a launch of it waits for a more urgent program (faults.py sees to that)
//       computing  launches and waits, again and again
//       copying    copies, again and again
//       managed    several launches in its stream, again and again
//       unmanaged  the same, cooperative, which have no managed form
//       repeatable launches and waits, again and again; each launch writes other memory than it reads
//       graph      a graph of two kernels, launched again and again
//       waiting    a stream waits for another one, which waits for the program
//       printing   computes, and a kernel prints, again and again
//       array      as idle, with an array
//     A line ends the state: it computes once more, looks at all its memory, and prints a line of JSON:
//     whether each bit is right, its error, the longest call of the state in ms, and the time of that last
//     computation.
//   bench_faults culprit KIND [ROUNDS]  after a line: a kernel of so many rounds, and behind it one that
//     faults: load, store, misaligned, trap, assert, stack, shared, instruction, endless (it does
//     not end), or none. memory: it asks for more memory than it may have. Prints the error.
//   bench_faults worker EVERY  computes as repeatable until a line comes; prints after each EVERY
//     computations how many they are.
#include <cuda_runtime.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

constexpr uint32_t kFactor = 1664525;

extern "C" __global__ void advance(uint32_t* data, uint32_t step, size_t n) {
    const size_t stride = size_t{gridDim.x} * blockDim.x;
    for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride)
        data[i] = data[i] * kFactor + static_cast<uint32_t>(i) + step;
}
extern "C" __global__ void advance_to(uint32_t* to, const uint32_t* from, uint32_t step, size_t n) {
    const size_t stride = size_t{gridDim.x} * blockDim.x;
    for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride)
        to[i] = from[i] * kFactor + static_cast<uint32_t>(i) + step;
}
extern "C" __global__ void spin(uint64_t* out, int rounds) {
    uint64_t x = threadIdx.x + 1;
    for (int i = 0; i < rounds; ++i) x = x * 6364136223846793005ull + 1442695040888963407ull;
    out[(blockIdx.x * blockDim.x + threadIdx.x) % 256] = x;
}
extern "C" __global__ void faulty_store(int* out) { out[(1ull << 44) + threadIdx.x] = 1; }
extern "C" __global__ void faulty_load(int* out) { out[threadIdx.x] = out[(1ull << 44) + threadIdx.x] + 1; }
extern "C" __global__ void faulty_misaligned(char* out) { *reinterpret_cast<int*>(out + 1) = 1; }
extern "C" __global__ void faulty_trap() { __trap(); }
extern "C" __global__ void faulty_assert(const int* zero) { assert(*zero != 0); }
extern "C" __global__ void faulty_shared(int at) {
    extern __shared__ int shared[];
    *static_cast<volatile int*>(shared + at + threadIdx.x) = 1;
}
// Odd lanes shuffle among the even ones, which do something else. A thread that only votes so is forgiven.
extern "C" __global__ void faulty_shuffle(unsigned even, int* out) {
    if (threadIdx.x & 1)
        out[threadIdx.x] = __shfl_sync(even, static_cast<int>(threadIdx.x), 1);
    else
        out[threadIdx.x] = __any_sync(even, static_cast<int>(threadIdx.x));
}
__device__ __noinline__ int deeper(const volatile int* zero, int depth) {
    volatile int here[256];
    here[depth % 256] = *zero;
    if (*zero != 0) return depth;
    return deeper(zero, depth + 1) + here[(depth + 1) % 256];
}
extern "C" __global__ void faulty_stack(const volatile int* zero, int* out) { *out = deeper(zero, 0); }
extern "C" __global__ void speak(unsigned step) {
    if (threadIdx.x == 0) printf("step %u\n", step);
}
// The word stays 0.
extern "C" __global__ void endless(const volatile int* word) {
    while (*word == 0) {
    }
}

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

bool line_waits() {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    return poll(&input, 1, 0) == 1;
}

void ready() { std::puts("READY"), std::fflush(stdout); }

void CUDART_CB wait_until_set(void* flag) {
    while (!static_cast<std::atomic<bool>*>(flag)->load()) usleep(200);
}

// Its memory: words that depend on every step so far. Word i is of_index_ * i + constant_, since it is 0 at
// first, and a step makes kFactor * word + i + step of it.
class Neighbour {
public:
    explicit Neighbour(size_t mib) : words_(mib << 18) {
        note(cudaMalloc(&data_, words_ * 4));
        note(cudaMemset(data_, 0, words_ * 4));
        note(cudaDeviceSynchronize());
        note(cudaMallocHost(&pinned_, 4096));
        note(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        for (int i = 0; i < 3; ++i) compute();
    }

    // How long it took, in ms.
    double compute() {
        const auto start = Clock::now();
        launch(++step_);
        return finish({step_}, start);
    }
    // The same, of which each launch writes other memory than it reads.
    void make_spare() { note(cudaMalloc(&spare_, words_ * 4)); }
    void compute_apart() {
        const auto start = Clock::now();
        advance_to<<<ctas(), 128, 0, stream_>>>(spare_, data_, ++step_, words_);
        note(cudaGetLastError());
        std::swap(data_, spare_);
        finish({step_}, start);
    }
    // Several launches one behind the other; a cooperative one has no managed form.
    void burst(bool cooperative) {
        const auto start = Clock::now();
        std::vector<uint32_t> steps;
        for (int i = 0; i < kBurst; ++i) {
            steps.push_back(++step_);
            cooperative ? launch_together(step_) : launch(step_);
        }
        finish(steps, start);
    }
    void make_graph() {
        cudaGraph_t graph = nullptr;
        note(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
        for (const uint32_t step : kGraphSteps) launch(step);
        note(cudaStreamEndCapture(stream_, &graph));
        note(cudaGraphInstantiate(&graph_, graph, 0));
    }
    void run_graph() {
        const auto start = Clock::now();
        note(cudaGraphLaunch(graph_, stream_));
        finish(kGraphSteps, start);
    }
    // Its stream waits for an event of another one, which waits for a host function. end_wait() lets it go
    // on.
    void begin_wait() {
        cudaStream_t side = nullptr;
        cudaEvent_t over = nullptr;
        note(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
        note(cudaEventCreateWithFlags(&over, cudaEventDisableTiming));
        note(cudaLaunchHostFunc(side, wait_until_set, &let_go_));
        note(cudaEventRecord(over, side));
        note(cudaStreamWaitEvent(stream_, over, 0));
        launch(++step_);
    }
    void end_wait() {
        let_go_ = true;
        finish({step_}, Clock::now());
    }
    void print_step() {
        speak<<<1, 32, 0, stream_>>>(step_);
        compute();
    }
    void ask(useconds_t rest) {
        size_t free = 0, total = 0;
        const auto start = Clock::now();
        note(cudaMemGetInfo(&free, &total));
        called(start);
        usleep(rest);
    }
    void copy() {
        const auto start = Clock::now();
        note(cudaMemcpy(pinned_, data_, 4096, cudaMemcpyDeviceToHost));
        called(start);
        if (error_ == cudaSuccess) right_ = right_ && are_right(pinned_, 0, 4096 / sizeof *pinned_);
    }
    void make_array() {
        const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
        note(cudaMallocArray(&array_, &format, 64, 64));
    }
    void look() {
        std::vector<uint32_t> found(std::min(words_, kPiece));
        for (size_t at = 0; at < words_ && right_; at += found.size()) {
            const size_t count = std::min(found.size(), words_ - at);
            note(cudaMemcpy(found.data(), data_ + at, count * 4, cudaMemcpyDeviceToHost));
            if (error_ != cudaSuccess) return;
            right_ = are_right(found.data(), at, count);
        }
    }
    bool lives() const { return error_ == cudaSuccess; }
    void start_over() { longest_ = 0; }  // what came before READY counts for nothing
    double longest() const { return longest_; }
    void print(double longest_ms, double first_ms) const {
        std::printf(
            "{\"right\": %s, \"error\": \"%s\", \"steps\": %u, \"longest_ms\": %.3f, \"first_ms\": %.3f}\n",
            right_ ? "true" : "false", error_ == cudaSuccess ? "" : cudaGetErrorName(error_), step_,
            longest_ms, first_ms);
    }

private:
    // As few threads as a program that leaves room for others; more where it would take seconds.
    unsigned ctas() const { return words_ > kPiece * 4 ? 2048 : 32; }
    void launch(uint32_t step) {
        advance<<<ctas(), 128, 0, stream_>>>(data_, step, words_);
        note(cudaGetLastError());
    }
    void launch_together(uint32_t step) {
        size_t words = words_;
        void* parameters[] = {&data_, &step, &words};
        note(cudaLaunchCooperativeKernel(advance, dim3(32), dim3(128), parameters, 0, stream_));
    }
    // Waits for the steps, and takes them into account.
    double finish(const std::vector<uint32_t>& steps, Clock::time_point start) {
        note(cudaStreamSynchronize(stream_));
        if (error_ != cudaSuccess) return 0;
        const double took = called(start);
        for (const uint32_t step : steps) {
            of_index_ = of_index_ * kFactor + 1;
            constant_ = constant_ * kFactor + step;
        }
        return took;
    }
    bool are_right(const uint32_t* found, size_t first, size_t count) const {
        for (size_t i = 0; i < count; ++i)
            if (found[i] != of_index_ * static_cast<uint32_t>(first + i) + constant_) return false;
        return true;
    }
    void note(cudaError_t status) {
        if (error_ == cudaSuccess) error_ = status;
    }
    double called(Clock::time_point start) {
        const double took = ms_since(start);
        longest_ = std::max(longest_, took);
        return took;
    }

    static constexpr size_t kPiece = size_t{16} << 20;  // words
    static constexpr int kBurst = 4;
    const std::vector<uint32_t> kGraphSteps{3, 5};

    const size_t words_;
    uint32_t of_index_ = 0, constant_ = 0;
    uint32_t *data_ = nullptr, *spare_ = nullptr;
    uint32_t* pinned_ = nullptr;
    cudaArray_t array_ = nullptr;
    cudaStream_t stream_ = nullptr;
    cudaGraphExec_t graph_ = nullptr;
    std::atomic<bool> let_go_{false};
    uint32_t step_ = 0;
    double longest_ = 0;
    bool right_ = true;
    cudaError_t error_ = cudaSuccess;
};

void step(Neighbour& self, const std::string& state, useconds_t rest) {
    if (state == "asking")
        self.ask(rest);
    else if (state == "computing")
        self.compute();
    else if (state == "copying")
        self.copy();
    else if (state == "managed" || state == "unmanaged")
        self.burst(state == "unmanaged");
    else if (state == "repeatable")
        self.compute_apart();
    else if (state == "graph")
        self.run_graph();
    else if (state == "printing")
        self.print_step();
    else
        usleep(1000);
}

int neighbour(const std::string& state, size_t mib, useconds_t rest) {
    Neighbour self(mib);
    if (state == "array") self.make_array();
    if (state == "graph") self.make_graph();
    if (state == "repeatable") self.make_spare();
    if (state == "waiting") self.begin_wait();
    self.start_over();
    ready();
    if (state == "held") {  // the first line: the urgent program is at work
        std::getchar();
        self.compute();
    }
    while (!line_waits() && self.lives()) step(self, state, rest);
    const double longest = self.longest();
    if (state == "waiting") self.end_wait();
    const double first = self.lives() ? self.compute() : 0;
    if (self.lives()) self.look();
    self.print(longest, first);
    return 0;
}

int worker(unsigned every) {
    Neighbour self(1);
    self.make_spare();
    ready();
    for (unsigned done = 0; !line_waits() && self.lives();) {
        self.compute_apart();
        if (++done % every == 0) std::printf("%u\n", done), std::fflush(stdout);
    }
    return self.lives() ? 0 : 3;
}

// The error of an allocation that is larger than any GPU, and of those that come until there is no more.
cudaError_t all_memory() {
    void* piece = nullptr;
    cudaError_t status = cudaMalloc(&piece, size_t{1} << 42);
    if (status != cudaErrorMemoryAllocation) return status;
    std::vector<void*> pieces;
    while ((status = cudaMalloc(&piece, size_t{16} << 20)) == cudaSuccess) pieces.push_back(piece);
    cudaGetLastError();
    for (void* each : pieces)
        if (const cudaError_t freed = cudaFree(each); freed != cudaSuccess) return freed;
    return status;
}

int culprit(const std::string& kind, int rounds) {
    uint64_t* out = nullptr;
    if (cudaMalloc(&out, 4096) != cudaSuccess || cudaMemset(out, 0, 4096) != cudaSuccess) return 2;
    spin<<<1, 32>>>(out, 1);  // the image is loaded
    if (cudaDeviceSynchronize() != cudaSuccess) return 2;
    ready();
    std::getchar();
    if (rounds > 0) {
        int processors = 0;
        cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
        spin<<<static_cast<unsigned>(processors) * 16, 128>>>(out, rounds);
        std::puts("AT WORK"), std::fflush(stdout);
    }
    if (kind == "store") faulty_store<<<7, 64>>>(reinterpret_cast<int*>(out));
    if (kind == "load") faulty_load<<<7, 64>>>(reinterpret_cast<int*>(out));
    if (kind == "misaligned") faulty_misaligned<<<7, 64>>>(reinterpret_cast<char*>(out));
    if (kind == "trap") faulty_trap<<<7, 64>>>();
    if (kind == "assert") faulty_assert<<<7, 64>>>(reinterpret_cast<int*>(out) + 1000);
    if (kind == "shared") faulty_shared<<<7, 64, 1024>>>(1 << 24);
    if (kind == "instruction") faulty_shuffle<<<7, 64>>>(0x55555555, reinterpret_cast<int*>(out));
    if (kind == "stack")
        faulty_stack<<<7, 64>>>(reinterpret_cast<int*>(out) + 1000, reinterpret_cast<int*>(out));
    if (kind == "endless") endless<<<7, 64>>>(reinterpret_cast<int*>(out) + 1000);
    const cudaError_t status = kind == "memory" ? all_memory() : cudaDeviceSynchronize();
    std::printf("%s\n", cudaGetErrorName(status));
    return 0;
}

}  // namespace

int main(int count, char** arguments) {
    const std::string side = count > 2 ? arguments[1] : "";
    if (side == "neighbour" && count > 3)
        return neighbour(arguments[2], std::strtoul(arguments[3], nullptr, 10),
                         count > 4 ? static_cast<useconds_t>(std::atoi(arguments[4])) : 100);
    if (side == "worker") return worker(std::max(1, std::atoi(arguments[2])));
    if (side == "culprit") return culprit(arguments[2], count > 3 ? std::atoi(arguments[3]) : 0);
    std::fprintf(stderr,
                 "usage: bench_faults neighbour STATE MIB [US] | culprit KIND [ROUNDS] | worker EVERY\n");
    return 2;
}
