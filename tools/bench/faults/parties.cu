// The two sides of a fault, for faults.py. Each says READY and reads lines.
//
//   bench_faults neighbour STATE MIB [US]   what a program does while another one faults, and what it finds:
//       idle       nothing, until a line comes; then it computes
//       asking     calls that need no GPU, again and again, US microseconds apart
//       held       a launch of it waits for a more urgent program (faults.py sees to that)
//       computing  launches and waits, again and again
//       copying    copies, again and again
//       array      as idle, with an array
//     A line ends the state: it computes once more, looks at all its memory, and prints a line of JSON:
//     whether each bit is right, its error, the longest call of the state in ms, and the time of that last
//     computation.
//   bench_faults culprit KIND [ROUNDS]  after a line: a kernel of so many rounds, and behind it one that
//     faults: load, store, misaligned, trap, endless (it does not end), or none. Prints the error.
#include <cuda_runtime.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

constexpr uint32_t kFactor = 1664525;

extern "C" __global__ void advance(uint32_t* data, uint32_t step, size_t n) {
    const size_t stride = size_t{gridDim.x} * blockDim.x;
    for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride)
        data[i] = data[i] * kFactor + static_cast<uint32_t>(i) + step;
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

// Its memory: words that depend on every step so far, on the device and as they ought to be.
class Neighbour {
public:
    explicit Neighbour(size_t mib) : words_(mib << 18), expected_(std::min(words_, kPiece)) {
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
        ++step_;
        // As few threads as a program that leaves room for others; more where it would take seconds.
        const unsigned ctas = words_ > kPiece * 4 ? 2048 : 32;
        advance<<<ctas, 128, 0, stream_>>>(data_, step_, words_);
        note(cudaGetLastError());
        note(cudaStreamSynchronize(stream_));
        if (error_ != cudaSuccess) return 0;
        const double took = called(start);
        for (size_t i = 0; i < expected_.size(); ++i)
            expected_[i] = expected_[i] * kFactor + static_cast<uint32_t>(i) + step_;
        between_pieces_ = between_pieces_ * kFactor + static_cast<uint32_t>(kPiece);
        return took;
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
        if (error_ == cudaSuccess && std::memcmp(pinned_, expected_.data(), 4096) != 0) right_ = false;
    }
    void make_array() {
        const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
        note(cudaMallocArray(&array_, &format, 64, 64));
    }
    void look() {
        std::vector<uint32_t> found(expected_.size());
        for (size_t at = 0, piece = 0; at < words_ && right_; at += found.size(), ++piece) {
            const size_t count = std::min(found.size(), words_ - at);
            note(cudaMemcpy(found.data(), data_ + at, count * 4, cudaMemcpyDeviceToHost));
            if (error_ != cudaSuccess) return;
            const uint32_t beyond = static_cast<uint32_t>(piece) * between_pieces_;
            right_ =
                std::equal(found.begin(), found.begin() + static_cast<ptrdiff_t>(count), expected_.begin(),
                           [beyond](uint32_t word, uint32_t first) { return word == first + beyond; });
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
    void note(cudaError_t status) {
        if (error_ == cudaSuccess) error_ = status;
    }
    double called(Clock::time_point start) {
        const double took = ms_since(start);
        longest_ = std::max(longest_, took);
        return took;
    }

    static constexpr size_t kPiece = size_t{16} << 20;  // words

    const size_t words_;
    std::vector<uint32_t> expected_;  // of the first piece
    uint32_t between_pieces_ = 0;     // what each word has more than that of the piece in front of it
    uint32_t* data_ = nullptr;
    uint32_t* pinned_ = nullptr;
    cudaArray_t array_ = nullptr;
    cudaStream_t stream_ = nullptr;
    uint32_t step_ = 0;
    double longest_ = 0;
    bool right_ = true;
    cudaError_t error_ = cudaSuccess;
};

int neighbour(const std::string& state, size_t mib, useconds_t rest) {
    Neighbour self(mib);
    if (state == "array") self.make_array();
    self.start_over();
    ready();
    if (state == "held") {  // the first line: the urgent program is at work
        std::getchar();
        self.compute();
    }
    while (!line_waits() && self.lives()) {
        if (state == "asking")
            self.ask(rest);
        else if (state == "computing")
            self.compute();
        else if (state == "copying")
            self.copy();
        else
            usleep(1000);
    }
    const double longest = self.longest();
    const double first = self.lives() ? self.compute() : 0;
    if (self.lives()) self.look();
    self.print(longest, first);
    return 0;
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
    if (kind == "endless") endless<<<7, 64>>>(reinterpret_cast<int*>(out) + 1000);
    std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    return 0;
}

}  // namespace

int main(int count, char** arguments) {
    const std::string side = count > 2 ? arguments[1] : "";
    if (side == "neighbour" && count > 3)
        return neighbour(arguments[2], std::strtoul(arguments[3], nullptr, 10),
                         count > 4 ? static_cast<useconds_t>(std::atoi(arguments[4])) : 100);
    if (side == "culprit") return culprit(arguments[2], count > 3 ? std::atoi(arguments[3]) : 0);
    std::fprintf(stderr, "usage: bench_faults neighbour STATE MIB [US] | culprit KIND [ROUNDS]\n");
    return 2;
}
