// Graphs of kernels that are not idempotent, on the device and on the host. A block that runs twice, never,
// or before its time shows.
#pragma once

#include <cstring>
#include <vector>

#include "program.h"

constexpr unsigned kThreads = 128, kFactor = 1664525u, kSummand = 1013904223u;

// Each value of `to` from itself and one of `from`, which another kernel has made. Their number is a power of
// two.
static __global__ void step(unsigned* to, const unsigned* from, unsigned by, unsigned plus, int rounds) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    unsigned value = to[i] * by + from[(i * 7 + plus) & (n - 1)];
    for (int round = 0; round < rounds; ++round) value = value * kFactor + kSummand;
    to[i] = value;
}

using Words = std::vector<unsigned>;

struct Work {
    unsigned blocks;
    int rounds;
    unsigned factor = 1, summand = 0;  // of all rounds at once

    Work(unsigned blocks, int rounds) : blocks(blocks), rounds(rounds) {
        for (int round = 0; round < rounds; ++round)
            factor *= kFactor, summand = summand * kFactor + kSummand;
    }
    unsigned values() const { return blocks * kThreads; }
    void step_on_host(Words& to, const Words& from, unsigned by, unsigned plus) const {
        const unsigned n = values();
        for (unsigned i = 0; i < n; ++i)
            to[i] = (to[i] * by + from[(i * 7 + plus) & (n - 1)]) * factor + summand;
    }
};

// The arrays, on the device and as they should be.
struct Arrays {
    static constexpr int kCount = 4;
    const Work& work;
    unsigned* on_device[kCount] = {};
    Words expected[kCount];

    explicit Arrays(const Work& work) : work(work) {
        for (int i = 0; i < kCount; ++i) {
            expected[i].resize(work.values());
            for (unsigned k = 0; k < work.values(); ++k) expected[i][k] = k * 2654435761u + i;
            CHECK(cudaMalloc(&on_device[i], bytes()));
            CHECK(cudaMemcpy(on_device[i], expected[i].data(), bytes(), cudaMemcpyHostToDevice));
        }
    }
    ~Arrays() {
        for (unsigned* each : on_device) cudaFree(each);
    }
    size_t bytes() const { return work.values() * sizeof(unsigned); }
    void step_on_host(int to, int from, unsigned by, unsigned plus) {
        work.step_on_host(expected[to], expected[from], by, plus);
    }
    void launch(cudaStream_t stream, int to, int from, unsigned by, unsigned plus) const {
        step<<<work.blocks, kThreads, 0, stream>>>(on_device[to], on_device[from], by, plus, work.rounds);
    }
    void compare(Result& result, const char* what) const {
        Words found(work.values());
        for (int i = 0; i < kCount; ++i) {
            CHECK(cudaMemcpy(found.data(), on_device[i], bytes(), cudaMemcpyDeviceToHost));
            result.expect(found == expected[i], what);
            for (unsigned each : found) result.fold(each);
        }
    }
};

constexpr unsigned kPitch = 256, kWide = 100;  // bytes of the rows that are filled in part

inline void fill_rows_on_host(Words& words, unsigned char value) {
    auto* const bytes = reinterpret_cast<unsigned char*>(words.data());
    for (size_t row = 0; row < words.size() * sizeof(unsigned) / kPitch; ++row)
        std::memset(bytes + row * kPitch, value, kWide);
}

struct Streams {
    cudaStream_t one = nullptr, two = nullptr;
    cudaEvent_t fork = nullptr, join = nullptr;
    Streams() {
        for (cudaStream_t* each : {&one, &two}) CHECK(cudaStreamCreateWithFlags(each, cudaStreamNonBlocking));
        for (cudaEvent_t* each : {&fork, &join})
            CHECK(cudaEventCreateWithFlags(each, cudaEventDisableTiming));
    }
    ~Streams() {
        for (cudaStream_t each : {one, two}) cudaStreamDestroy(each);
        for (cudaEvent_t each : {fork, join}) cudaEventDestroy(each);
    }
};

//   0 <- 3 -+- 1 <- 0, 1 <- 0 ---------+- 3 <- 2, 3 <- 1, rows of 2 filled, 2 <- 3, 0 = 2, rows of 0 = 1
//           +- 2 filled, 2 <- 0, 2 <- 0 +
inline cudaGraph_t capture(const Streams& streams, const Arrays& arrays) {
    CHECK(cudaStreamBeginCapture(streams.one, cudaStreamCaptureModeThreadLocal));
    arrays.launch(streams.one, 0, 3, 3, 1);
    CHECK(cudaEventRecord(streams.fork, streams.one));
    CHECK(cudaStreamWaitEvent(streams.two, streams.fork, 0));
    arrays.launch(streams.two, 1, 0, 5, 2);
    arrays.launch(streams.two, 1, 0, 7, 3);
    CHECK(cudaMemsetAsync(arrays.on_device[2], 0x5a, arrays.bytes(), streams.one));
    arrays.launch(streams.one, 2, 0, 9, 4);
    arrays.launch(streams.one, 2, 0, 11, 5);
    CHECK(cudaEventRecord(streams.join, streams.two));
    CHECK(cudaStreamWaitEvent(streams.one, streams.join, 0));
    arrays.launch(streams.one, 3, 2, 13, 6);
    arrays.launch(streams.one, 3, 1, 15, 7);
    CHECK(cudaMemset2DAsync(arrays.on_device[2], kPitch, 0x33, kWide, arrays.bytes() / kPitch, streams.one));
    arrays.launch(streams.one, 2, 3, 17, 8);
    // 0 gets all of 2 but its first word, and rows of 1
    CHECK(cudaMemcpyAsync(arrays.on_device[0] + 1, arrays.on_device[2] + 1, arrays.bytes() - 4,
                          cudaMemcpyDeviceToDevice, streams.one));
    CHECK(cudaMemcpy2DAsync(arrays.on_device[0], kPitch, arrays.on_device[1], kPitch, kWide,
                            arrays.bytes() / kPitch, cudaMemcpyDeviceToDevice, streams.one));
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(streams.one, &graph));
    return graph;
}

inline void on_host(Arrays& arrays) {
    arrays.step_on_host(0, 3, 3, 1);
    arrays.step_on_host(1, 0, 5, 2);
    arrays.step_on_host(1, 0, 7, 3);
    std::memset(arrays.expected[2].data(), 0x5a, arrays.bytes());
    arrays.step_on_host(2, 0, 9, 4);
    arrays.step_on_host(2, 0, 11, 5);
    arrays.step_on_host(3, 2, 13, 6);
    arrays.step_on_host(3, 1, 15, 7);
    fill_rows_on_host(arrays.expected[2], 0x33);
    arrays.step_on_host(2, 3, 17, 8);
    Words &to = arrays.expected[0], &of = arrays.expected[2];
    std::memcpy(to.data() + 1, of.data() + 1, arrays.bytes() - 4);
    for (size_t at = 0; at < to.size(); at += kPitch / 4)
        std::memcpy(to.data() + at, arrays.expected[1].data() + at, kWide);
}

struct Parameters {
    unsigned *to, *from;
    unsigned by, plus;
    int rounds;
    void* each[5] = {&to, &from, &by, &plus, &rounds};

    Parameters(const Arrays& arrays, int to, int from, unsigned by, unsigned plus)
        : to(arrays.on_device[to]),
          from(arrays.on_device[from]),
          by(by),
          plus(plus),
          rounds(arrays.work.rounds) {}
    Parameters(const Parameters&) = delete;
    cudaKernelNodeParams node(const Arrays& arrays) {
        cudaKernelNodeParams made{};
        made.func = reinterpret_cast<void*>(step);
        made.gridDim = dim3(arrays.work.blocks);
        made.blockDim = dim3(kThreads);
        made.kernelParams = each;
        return made;
    }
};

inline cudaGraphNode_t add(cudaGraph_t graph, const Arrays& arrays, const cudaGraphNode_t* behind, int to,
                           int from, unsigned by, unsigned plus) {
    Parameters parameters(arrays, to, from, by, plus);
    const cudaKernelNodeParams node = parameters.node(arrays);
    cudaGraphNode_t made = nullptr;
    CHECK(cudaGraphAddKernelNode(&made, graph, behind, behind ? 1 : 0, &node));
    return made;
}

// NAME [LAUNCHES [ROUNDS [BLOCKS]]]; BLOCKS is a power of two.
struct Arguments {
    int launches = 20, rounds = 2000;
    unsigned blocks = 4096;
    Arguments(int count, char** given) {
        if (count > 1) launches = std::atoi(given[1]);
        if (count > 2) rounds = std::atoi(given[2]);
        if (count > 3) blocks = static_cast<unsigned>(std::atoi(given[3]));
    }
};
