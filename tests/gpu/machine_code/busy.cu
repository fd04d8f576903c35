// Launches one kernel again and again and says how long each took and where it ran. Built with machine code
// only, so that smt cannot manage it.
//
//   busy [--blocks N] [--threads N] [--rounds N] [--launches N] [--seconds S] [--pause US] [--ahead N]
//   [--ready] [--starts]
//
// A block multiplies and adds `rounds` times in each thread. `ahead` launches are in flight at a time; 1:
// each is waited for. `pause` is what lies between them on average: from half to one and a half of it, or
// launches would keep step with the blocks of others. Ends after so many launches or seconds, whatever comes
// first. With --ready it says READY when it begins and stops when its standard input ends. One JSON line:
// {"us": [...], "sms": [...], "seconds": S}; us: from launch to end for each, or, if several are in flight,
// from one end to the next. With --starts, and one in flight, also "start_us": from launch to the moment in
// which the program sees, in pinned memory, that a block of it has begun.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#define CHECK(call)                                                                                         \
    do {                                                                                                    \
        if (cudaError_t status = (call)) {                                                                  \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status)); \
            std::exit(1);                                                                                   \
        }                                                                                                   \
    } while (0)

constexpr int kMostSms = 256;

__global__ void busy(unsigned* blocks_on, float* out, int rounds, volatile unsigned* begun, unsigned number) {
    if (begun && threadIdx.x == 0) *begun = number;
    float value = static_cast<float>(threadIdx.x);
    for (int i = 0; i < rounds; ++i) value = value * 0.999f + 1.0f;
    if (value < 0.0f) *out = value;
    if (threadIdx.x == 0) {
        unsigned sm;
        asm("mov.u32 %0, %smid;" : "=r"(sm));
        atomicAdd(&blocks_on[sm % kMostSms], 1u);
    }
}

double now_us() {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

struct Options {
    unsigned blocks = 132, threads = 256;
    int rounds = 1000, ahead = 1;
    long launches = 1L << 40;
    double seconds = 3600, pause = 0;
    bool ready = false, starts = false;
};

Options read_options(int count, char** arguments) {
    Options options;
    for (int i = 1; i < count; ++i) {
        const char* name = arguments[i];
        if (std::strcmp(name, "--ready") == 0) {
            options.ready = true;
            continue;
        }
        if (std::strcmp(name, "--starts") == 0) {
            options.starts = true;
            continue;
        }
        if (i + 1 == count) std::exit(2);
        const double value = std::atof(arguments[++i]);
        if (std::strcmp(name, "--blocks") == 0) options.blocks = static_cast<unsigned>(value);
        if (std::strcmp(name, "--threads") == 0) options.threads = static_cast<unsigned>(value);
        if (std::strcmp(name, "--rounds") == 0) options.rounds = static_cast<int>(value);
        if (std::strcmp(name, "--ahead") == 0) options.ahead = static_cast<int>(value);
        if (std::strcmp(name, "--launches") == 0) options.launches = static_cast<long>(value);
        if (std::strcmp(name, "--seconds") == 0) options.seconds = value;
        if (std::strcmp(name, "--pause") == 0) options.pause = value;
    }
    return options;
}

bool told_to_stop() {
    pollfd input{0, POLLIN, 0};
    char byte;
    return poll(&input, 1, 0) > 0 && read(0, &byte, 1) <= 0;
}

int main(int count, char** arguments) {
    const Options options = read_options(count, arguments);
    unsigned* blocks_on = nullptr;
    cudaStream_t stream;
    CHECK(cudaMalloc(&blocks_on, kMostSms * sizeof *blocks_on));
    CHECK(cudaMemset(blocks_on, 0, kMostSms * sizeof *blocks_on));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    busy<<<1, 32, 0, stream>>>(blocks_on, reinterpret_cast<float*>(blocks_on), 1, nullptr,
                               0);  // loaded before it is timed
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemset(blocks_on, 0, kMostSms * sizeof *blocks_on));
    std::vector<cudaEvent_t> events(static_cast<size_t>(std::max(options.ahead, 1)));
    for (cudaEvent_t& event : events) CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    volatile unsigned* begun_number = nullptr;
    if (options.starts) {
        void* memory = nullptr;
        CHECK(cudaHostAlloc(&memory, sizeof(unsigned), cudaHostAllocMapped));
        begun_number = static_cast<unsigned*>(memory);
        *begun_number = 0;
    }
    if (options.ready) std::puts("READY"), std::fflush(stdout);

    std::minstd_rand random(1);
    std::vector<double> times, starts;
    std::deque<double> begun;
    const double begin = now_us();
    double last = begin;
    long launched = 0;
    const auto finish_one = [&] {
        CHECK(cudaEventSynchronize(
            events[static_cast<size_t>(launched - static_cast<long>(begun.size())) % events.size()]));
        const double now = now_us();
        times.push_back(now - std::max(begun.front(), last));
        begun.pop_front();
        last = now;
    };
    while (launched < options.launches && now_us() - begin < options.seconds * 1e6 &&
           !(options.ready && told_to_stop())) {
        if (begun.size() == events.size()) finish_one();
        begun.push_back(now_us());
        busy<<<options.blocks, options.threads, 0, stream>>>(blocks_on, reinterpret_cast<float*>(blocks_on),
                                                             options.rounds, begun_number,
                                                             static_cast<unsigned>(launched + 1));
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(events[static_cast<size_t>(launched) % events.size()], stream));
        ++launched;
        if (options.starts && options.ahead <= 1) {
            while (*begun_number != static_cast<unsigned>(launched) &&
                   cudaEventQuery(events[static_cast<size_t>(launched - 1) % events.size()]) ==
                       cudaErrorNotReady) {
            }
            starts.push_back(now_us() - begun.back());
        }
        if (options.ahead <= 1) finish_one();
        const double pause = options.pause * std::uniform_real_distribution<double>(0.5, 1.5)(random);
        if (pause > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(pause));
    }
    while (!begun.empty()) finish_one();
    const double seconds = (now_us() - begin) / 1e6;
    std::vector<unsigned> blocks(kMostSms);
    CHECK(cudaMemcpy(blocks.data(), blocks_on, kMostSms * sizeof *blocks_on, cudaMemcpyDeviceToHost));
    unsigned long all = 0;
    std::printf("{\"us\": [");
    for (size_t i = 0; i < times.size(); ++i) std::printf("%s%.1f", i ? ", " : "", times[i]);
    std::printf("], \"start_us\": [");
    for (size_t i = 0; i < starts.size(); ++i) std::printf("%s%.1f", i ? ", " : "", starts[i]);
    std::printf("], \"sms\": [");
    for (unsigned i = 0, first = 1; i < kMostSms; ++i) {
        all += blocks[i];
        if (blocks[i]) std::printf("%s%u", first ? "" : ", ", i), first = 0;
    }
    std::printf("], \"seconds\": %.3f}\n", seconds);
    return all == static_cast<unsigned long>(launched) * options.blocks ? 0 : 1;
}
