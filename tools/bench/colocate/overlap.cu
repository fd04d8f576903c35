// When blocks of this program were on the GPU, by the GPU's own clock, which all programs share.
//
//     bench_overlap [BLOCKS [US [SECONDS]]]
//
// Launches of BLOCKS blocks follow one another; each block computes for US. It reads the clock all the time,
// and a step in it says that the block did not run in between: so a program that is time-sliced does not
// count another's slice as its own. The program prints READY, begins when its input ends, and then prints the
// times in ns at which at least one of its blocks ran, as a line of JSON. overlap.py compares two of them.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <utility>
#include <vector>

namespace {

constexpr uint64_t kGapNs = 20'000;  // far above the clock's steps, far below a time slice
constexpr int kPieces = 8;           // of a block, which ends with the last of them
constexpr int kThreads = 32;
constexpr int kInFlight = 2;

struct Piece {
    uint64_t begin, end;
};

void check(cudaError_t status, const char* what) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
    std::exit(1);
}

__device__ uint64_t now_ns() {
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

}  // namespace

__global__ void compute(Piece* pieces, int* counts, uint64_t work_ns) {
    if (threadIdx.x != 0) return;
    Piece* own = pieces + static_cast<size_t>(blockIdx.x) * kPieces;
    uint64_t begin = now_ns(), last = begin, worked = 0;
    int count = 0;
    while (worked < work_ns && count < kPieces - 1) {
        const uint64_t now = now_ns();
        if (now - last > kGapNs) {
            own[count++] = {begin, last};
            begin = now;
        } else {
            worked += now - last;
        }
        last = now;
    }
    own[count++] = {begin, last};
    counts[blockIdx.x] = count;
}

namespace {

// A launch under way, in a stream of its own, and what its blocks have written.
class Launch {
public:
    explicit Launch(int blocks) : blocks_(static_cast<size_t>(blocks)) {
        check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
        check(cudaMalloc(&pieces_, sizeof(Piece) * kPieces * blocks_), "cudaMalloc");
        check(cudaMalloc(&counts_, sizeof(int) * blocks_), "cudaMalloc");
        check(cudaMallocHost(&found_, sizeof(Piece) * kPieces * blocks_), "cudaMallocHost");
        check(cudaMallocHost(&lengths_, sizeof(int) * blocks_), "cudaMallocHost");
    }
    Launch(const Launch&) = delete;
    Launch& operator=(const Launch&) = delete;

    void begin(uint64_t work_ns) {
        compute<<<static_cast<unsigned>(blocks_), kThreads, 0, stream_>>>(pieces_, counts_, work_ns);
        check(cudaGetLastError(), "launch");
        down(found_, pieces_, sizeof(Piece) * kPieces * blocks_);
        down(lengths_, counts_, sizeof(int) * blocks_);
    }
    void end(std::vector<Piece>* all) {
        check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
        for (size_t block = 0; block < blocks_; ++block)
            all->insert(all->end(), found_ + block * kPieces, found_ + block * kPieces + lengths_[block]);
    }

private:
    void down(void* to, const void* from, size_t bytes) {
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync");
    }

    size_t blocks_;
    cudaStream_t stream_ = nullptr;
    Piece *pieces_ = nullptr, *found_ = nullptr;
    int *counts_ = nullptr, *lengths_ = nullptr;
};

// The times at which at least one block ran.
std::vector<Piece> merged(std::vector<Piece> pieces) {
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
    std::vector<Piece> all;
    for (const Piece& piece : pieces) {
        if (all.empty() || piece.begin > all.back().end)
            all.push_back(piece);
        else
            all.back().end = std::max(all.back().end, piece.end);
    }
    return all;
}

}  // namespace

int main(int argc, char** argv) {
    const int blocks = argc > 1 ? std::atoi(argv[1]) : 16;
    const uint64_t work_ns = 1000ull * static_cast<uint64_t>(argc > 2 ? std::atoi(argv[2]) : 200);
    const double seconds = argc > 3 ? std::atof(argv[3]) : 1;
    if (blocks < 1 || work_ns == 0 || seconds <= 0) {
        std::fprintf(stderr, "usage: %s [BLOCKS [US [SECONDS]]]\n", argv[0]);
        return 2;
    }
    std::deque<Launch> launches;
    for (int i = 0; i < kInFlight; ++i) launches.emplace_back(blocks);
    std::vector<Piece> pieces, before;
    launches[0].begin(work_ns);  // loads the kernel
    launches[0].end(&before);
    std::printf("READY\n");
    std::fflush(stdout);
    while (std::getchar() != EOF) continue;
    const auto over = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    size_t next = 0;
    for (Launch& launch : launches) launch.begin(work_ns);
    while (std::chrono::steady_clock::now() < over) {
        launches[next].end(&pieces);
        launches[next].begin(work_ns);
        next = (next + 1) % kInFlight;
    }
    for (int left = 0; left < kInFlight; ++left) {
        launches[next].end(&pieces);
        next = (next + 1) % kInFlight;
    }
    std::printf("{\"ran_ns\": [");
    const char* between = "";
    for (const Piece& piece : merged(std::move(pieces))) {
        std::printf("%s[%llu, %llu]", between, static_cast<unsigned long long>(piece.begin),
                    static_cast<unsigned long long>(piece.end));
        between = ", ";
    }
    std::printf("]}\n");
    return 0;
}
