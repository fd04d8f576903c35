// What the examples share: options, repeatable input, arrays on the device, the clock, and the report.
//
// A program prints these lines, and leaves with 0 when its result is right, 1 when it is wrong, 2 after
// a mistake in its options, 3 when a CUDA call fails:
//
//   program stencil3d size trivial iterations 1     and `part 0.5`, where it is not 1
//   checked values: 40960 of 40960                   how much was compared with the CPU
//   kernel update launches 1 mean_ms 0.012345        by CUDA events
//   fingerprint 0123456789abcdef                     only where the checksum is not taken from all the bits
//   checksum 0123456789abcdef
//
// The checksum is the same on every device: sums are of integers or in a fixed order, the compiler does
// not contract a * b + c behind our back (fmaf says where we want it), and results that depend on the
// device's exp or log enter it rounded. These results' bits go into the fingerprint, which is the same
// in every run on one device. A part of a size has a checksum of its own. Input is computed from the
// element's index, so that it can be made on the device and checked on the CPU without ever being
// copied.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#define CHECK(call) ::example::check_call((call), #call, __FILE__, __LINE__)

namespace example {

inline void check_call(cudaError_t status, const char* text, const char* file, int line) {
    if (status == cudaSuccess) return;
    std::fflush(stdout);
    std::fprintf(stderr, "%s:%d: %s: %s (%s)\n", file, line, text, cudaGetErrorString(status),
                 cudaGetErrorName(status));
    std::_Exit(3);
}

// ---- options

enum class Size { kTrivial, kSmall, kLarge };

inline bool show_times = false;  // --times: Timer prints each iteration's time besides their mean
inline bool is_part = false;     // --part is not 1: the checksum is unknown

// --arrivals: when each iteration may begin, as the times between them are drawn from an exponential
// distribution, so that they arrive as a Poisson process does. A queue: one that arrives while another one
// runs begins behind it.
struct Arrivals {
    double mean_ms = -1;  // below 0: none, iterations begin at once
    uint32_t seed = 0;
    double begin_s = 0;  // by the machine's clock; where it is past, the first one arrives now
};
inline Arrivals arrivals;
inline int iterations_left = 1;

struct Options {
    Size size = Size::kSmall;
    int iterations = 1;
    double part = 1;

    template <typename Value>
    Value pick(Value trivial, Value small, Value large) const {
        return size == Size::kTrivial ? trivial : size == Size::kSmall ? small : large;
    }
    // The part of a size's number, rounded down to a multiple, of which there is at least one.
    template <typename Count>
    Count scaled(Count of_size, std::common_type_t<Count> multiple = 1) const {
        return std::max<Count>(1, static_cast<Count>(of_size * part) / multiple) * multiple;
    }
};

[[noreturn]] inline void refuse(const char* program, const std::string& why) {
    std::fprintf(stderr, "%s: %s (see %s --help)\n", program, why.c_str(), program);
    std::exit(2);
}

inline Options parse_options(int argc, char** argv, const char* program, const char* summary) {
    const char* const sizes[] = {"trivial", "small", "large"};
    Options options;
    for (int i = 1; i < argc; ++i) {
        std::string name = argv[i], value;
        if (name == "--help" || name == "-h") {
            std::printf(
                "%s: %s\n\nusage: %s [--size trivial|small|large] [--part P] [--iterations N] [--times]\n"
                "       [--arrivals MS,SEED,SECOND]\n"
                "  --size        how much to compute (default: small)\n"
                "  --part        about how much of it: above 0 and at most 1 (default: 1)\n"
                "  --iterations  how often to compute it, each time the same (default: 1)\n"
                "  --times       prints the time of each iteration besides their mean\n"
                "  --arrivals    as --times, and an iteration begins when it has arrived: so many ms after "
                "the\n"
                "                one before, on average (drawn by SEED), the first at that second of the\n"
                "                monotonic clock\n",
                program, summary, program);
            std::exit(0);
        }
        if (name == "--times") {
            show_times = true;
            continue;
        }
        const size_t equals = name.find('=');
        const bool joined = equals != std::string::npos;
        if (joined) value = name.substr(equals + 1), name.resize(equals);
        if (name != "--size" && name != "--part" && name != "--iterations" && name != "--arrivals")
            refuse(program, "unknown option '" + name + "'");
        if (!joined) {
            if (++i == argc) refuse(program, name + " needs a value");
            value = argv[i];
        }
        if (name == "--size") {
            const auto found = std::find(std::begin(sizes), std::end(sizes), value);
            if (found == std::end(sizes))
                refuse(program, "--size is trivial, small or large, not '" + value + "'");
            options.size = static_cast<Size>(found - std::begin(sizes));
        } else if (name == "--part") {
            char* end = nullptr;
            options.part = std::strtod(value.c_str(), &end);
            if (value.empty() || *end != '\0' || !(options.part > 0 && options.part <= 1))
                refuse(program, "--part is a number above 0 and at most 1, not '" + value + "'");
        } else if (name == "--arrivals") {
            int read = 0;
            if (std::sscanf(value.c_str(), "%lf,%u,%lf%n", &arrivals.mean_ms, &arrivals.seed,
                            &arrivals.begin_s, &read) != 3 ||
                static_cast<size_t>(read) != value.size() || !(arrivals.mean_ms >= 0))
                refuse(program, "--arrivals is MS,SEED,SECOND, and MS is not negative, not '" + value + "'");
            show_times = true;
        } else {
            char* end = nullptr;
            const long number = std::strtol(value.c_str(), &end, 10);
            if (value.empty() || *end != '\0' || number < 1 || number > 1000000)
                refuse(program, "--iterations is a whole number from 1 to 1000000, not '" + value + "'");
            options.iterations = static_cast<int>(number);
        }
    }
    is_part = options.part != 1;
    iterations_left = options.iterations;
    std::printf("program %s size %s iterations %d", program, sizes[static_cast<int>(options.size)],
                options.iterations);
    if (is_part) std::printf(" part %g", options.part);
    std::printf("\n");
    return options;
}

// ---- input, the same on the CPU and on the device

__host__ __device__ inline uint32_t hash(uint32_t index, uint32_t seed = 0) {  // MurmurHash3's last step
    uint32_t bits = index + seed * 0x9e3779b9u;
    bits = (bits ^ (bits >> 16)) * 0x85ebca6bu;
    bits = (bits ^ (bits >> 13)) * 0xc2b2ae35u;
    return bits ^ (bits >> 16);
}

// From low up to, but not including, high.
__host__ __device__ inline float uniform(uint32_t index, uint32_t seed, float low, float high) {
    return fmaf(high - low, static_cast<float>(hash(index, seed) >> 8) * 0x1p-24f, low);
}

__host__ __device__ inline uint64_t mixed(uint32_t word, uint64_t position) {  // for checksums
    uint64_t bits = (position + 1) * 0x9e3779b97f4a7c15ull ^ word;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ull;
    return bits ^ (bits >> 31);
}

template <typename Count>
constexpr unsigned blocks_for(Count count, unsigned per_block) {
    return static_cast<unsigned>((count + per_block - 1) / per_block);
}

// ---- the CPU's side

// How many of the numbers below count the body says true for, asked in several threads.
template <typename Body>
size_t count_where(size_t count, Body body) {
    const size_t threads = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 16);
    const size_t step = std::max<size_t>(1, count / (threads * 32));
    std::atomic<size_t> next{0}, found{0};
    auto work = [&] {
        for (size_t begin; (begin = next.fetch_add(step)) < count;) {
            size_t here = 0;
            for (size_t i = begin; i < std::min(count, begin + step); ++i) here += body(i) ? 1 : 0;
            found += here;
        }
    };
    std::vector<std::thread> others;
    for (size_t i = 1; i < threads && i * step < count; ++i) others.emplace_back(work);
    work();
    for (std::thread& other : others) other.join();
    return found;
}

template <typename Body>
void in_parallel(size_t count, Body body) {
    count_where(count, [&](size_t i) { return body(i), true; });
}

// ---- the device's side

template <typename Element>
class DeviceArray {
public:
    explicit DeviceArray(size_t size) : size_(size) { CHECK(cudaMalloc(&data_, size * sizeof(Element))); }
    explicit DeviceArray(const std::vector<Element>& values) : DeviceArray(values.size()) { upload(values); }
    DeviceArray(const DeviceArray&) = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;
    ~DeviceArray() { cudaFree(data_); }

    size_t size() const { return size_; }
    Element* data() const { return data_; }

    void upload(const std::vector<Element>& values) {
        CHECK(cudaMemcpy(data_, values.data(), values.size() * sizeof(Element), cudaMemcpyHostToDevice));
    }
    void download(Element* to, size_t first, size_t count) const {
        CHECK(cudaMemcpy(to, data_ + first, count * sizeof(Element), cudaMemcpyDeviceToHost));
    }
    std::vector<Element> download() const {
        std::vector<Element> values(size_);
        download(values.data(), 0, size_);
        return values;
    }

private:
    Element* data_ = nullptr;
    size_t size_;
};

// Times what runs between start() and stop(). Names the kernel and loads it, which else happens at the
// first launch and would be counted.
class Timer {
public:
    template <typename Kernel>
    Timer(const char* name, Kernel* kernel) : name_(name) {
        cudaFuncAttributes attributes;
        CHECK(cudaFuncGetAttributes(&attributes, kernel));
        CHECK(cudaEventCreate(&begin_));
        CHECK(cudaEventCreate(&end_));
    }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;
    ~Timer() {
        cudaEventDestroy(begin_);
        cudaEventDestroy(end_);
    }

    void start() {
        if (arrivals.mean_ms >= 0) await_arrival();
        CHECK(cudaEventRecord(begin_));
        lapped_ = false;
    }
    // The end of an iteration: with --times it is timed by itself, and waited for.
    void lap() {
        if (!show_times) return;
        measure();
        if (--iterations_left > 0) start();
        lapped_ = true;
    }
    void stop(int launches) {
        launches_ += launches;
        if (!lapped_) measure();
    }
    void print() const {
        std::printf("kernel %s launches %d mean_ms %.6f\n", name_, launches_,
                    milliseconds_ / std::max(1, launches_));
        if (!show_times) return;
        std::printf("times_ms");
        for (float each : each_) std::printf(" %.6f", static_cast<double>(each));
        std::printf("\nends_s");
        for (double each : ends_) std::printf(" %.6f", each);
        std::printf("\n");
        if (arrivals_.empty()) return;
        std::printf("arrivals_s");
        for (double each : arrivals_) std::printf(" %.6f", each);
        std::printf("\n");
    }

private:
    static double now_s() {
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    }
    void await_arrival() {
        if (arrivals_.empty()) {
            arrivals_.push_back(std::max(arrivals.begin_s, now_s()));
        } else {
            const uint32_t drawn = hash(static_cast<uint32_t>(arrivals_.size()), arrivals.seed);
            const double share = (drawn + 0.5) * 0x1p-32;
            arrivals_.push_back(arrivals_.back() - std::log(share) * arrivals.mean_ms / 1e3);
        }
        const double left = arrivals_.back() - now_s();
        if (left > 0) std::this_thread::sleep_for(std::chrono::duration<double>(left));
    }
    void measure() {
        CHECK(cudaGetLastError());  // a launch that was refused
        CHECK(cudaEventRecord(end_));
        CHECK(cudaEventSynchronize(end_));
        float elapsed = 0;
        CHECK(cudaEventElapsedTime(&elapsed, begin_, end_));
        milliseconds_ += static_cast<double>(elapsed);
        each_.push_back(elapsed);
        ends_.push_back(now_s());
    }

    const char* name_;
    cudaEvent_t begin_, end_;
    bool lapped_ = false;  // nothing ran since the last lap
    double milliseconds_ = 0;
    int launches_ = 0;
    std::vector<float> each_;  // of each iteration
    std::vector<double>
        ends_;  // when the host knew of its end, by the machine's clock that only goes forward
    std::vector<double> arrivals_;  // with --arrivals
};

static __global__ void sum_mixed(const uint32_t* words, size_t count, unsigned long long* sum) {
    unsigned long long own = 0;
    const size_t threads = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads)
        own += mixed(words[i], i);
    atomicAdd(sum, own);
}

// ---- the result

class Report {
public:
    void expect(bool right, const char* what) {
        if (right) return;
        wrong_ = true;
        std::printf("WRONG: %s\n", what);
    }

    // Compares about `sample` elements of an array (all of them, if there are not more) with the CPU:
    // right(index, value) says whether the value is what the CPU finds. It is called from several
    // threads. Longer arrays are sampled in up to 64 pieces from the first element to the last.
    template <typename Element, typename Right>
    void check(const char* what, const DeviceArray<Element>& array, size_t sample, Right right) {
        const size_t size = array.size();
        const size_t pieces = size <= sample ? 1 : std::min<size_t>(sample, 64);
        const size_t length = size <= sample ? size : sample / pieces;
        std::vector<Element> values(pieces * length);
        std::vector<size_t> first(pieces);
        for (size_t i = 0; i < pieces; ++i) {
            first[i] = pieces == 1 ? 0 : (size - length) / (pieces - 1) * i;
            if (i > 0 && i == pieces - 1) first[i] = size - length;
            array.download(values.data() + i * length, first[i], length);
        }
        const size_t equal = count_where(
            values.size(), [&](size_t i) { return right(first[i / length] + i % length, values[i]); });
        checked(what, equal, values.size(), size);
    }
    void checked(const char* what, size_t right, size_t compared, size_t all) {
        if (right != compared) {
            wrong_ = true;
            std::printf("WRONG: %s: %zu of %zu compared\n", what, compared - right, compared);
        }
        std::printf("checked %s: %zu of %zu\n", what, compared, all);
    }

    // Into the checksum: all the bits. Long arrays stay on the device and are summed there.
    template <typename Element>
    void fold(const DeviceArray<Element>& array) {
        checksum_ = follow(checksum_, sum_of(array));
    }
    void fold(uint64_t number) { checksum_ = follow(checksum_, number); }

    // For results that are not the same bits on every device: a number that is the same to well within
    // a step, and the bits beside it. The steps suit whole sizes; the sum of a part lies where it may.
    void fold_rounded(double value, double step) {
        const double steps = value / step, distance = std::fabs(steps - std::floor(steps) - 0.5);
        expect(is_part || distance > 0.05,
               "a sum for the checksum lies where it could be rounded to either side");
        fold(static_cast<uint64_t>(std::llround(steps)));
    }
    template <typename Element>
    void fingerprint(const DeviceArray<Element>& array) {
        fingerprint_ = follow(fingerprint_, sum_of(array));
        has_fingerprint_ = true;
    }

    int finish(const Timer& timer) {
        timer.print();
        if (has_fingerprint_)
            std::printf("fingerprint %016llx\n", static_cast<unsigned long long>(fingerprint_));
        std::printf("checksum %016llx\n", static_cast<unsigned long long>(checksum_));
        return wrong_ ? 1 : 0;
    }

private:
    static uint64_t follow(uint64_t before, uint64_t number) {
        return before * 6364136223846793005ull + mixed(static_cast<uint32_t>(number), number >> 32);
    }

    template <typename Element>
    static uint64_t sum_of(const DeviceArray<Element>& array) {
        static_assert(sizeof(Element) % sizeof(uint32_t) == 0 || sizeof(uint32_t) % sizeof(Element) == 0);
        constexpr size_t kMostCopied = size_t{1} << 26;
        const size_t words = array.size() * sizeof(Element) / sizeof(uint32_t);
        if (words * sizeof(uint32_t) <= kMostCopied) {
            const std::vector<Element> values = array.download();
            std::vector<uint32_t> bits(words);
            std::memcpy(bits.data(), values.data(), words * sizeof(uint32_t));
            std::atomic<uint64_t> sum{0};
            constexpr size_t kStep = 65536;
            in_parallel(blocks_for(words, kStep), [&](size_t step) {
                uint64_t own = 0;
                for (size_t i = step * kStep; i < std::min(words, (step + 1) * kStep); ++i)
                    own += mixed(bits[i], i);
                sum += own;
            });
            return sum;
        }
        DeviceArray<unsigned long long> sum(std::vector<unsigned long long>{0});
        sum_mixed<<<4096, 256>>>(reinterpret_cast<const uint32_t*>(array.data()), words, sum.data());
        CHECK(cudaGetLastError());
        return sum.download()[0];
    }

    bool wrong_ = false, has_fingerprint_ = false;
    uint64_t checksum_ = 0, fingerprint_ = 0;
};

}  // namespace example
