// The kernels that really run, once for a whole launch. A kernel of another name does nothing.
//
//   add(int* a, int* b, int* sum, int n)        fill(int* to, int value, int n)
//   scale(float* x, float by, int n)            sum(int* from, int n, long long* to)
//   spin(uint64_t* word, uint64_t value)        until the word is at least that
//   wait_ms(int milliseconds)                   busy for so long
//   gate(int number)                            makes $SMT_FAKE_GATES/NUMBER.reached, ends with NUMBER.open
//   say(int number)                             device printf
//   fault()                                     an illegal address: sticky; dumped first, where that is asked
//   for
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "fake.h"

namespace fake {

namespace {

// Reads packed parameters one after the other, each at its own alignment.
class Arguments {
public:
    explicit Arguments(const std::vector<char>& bytes) : bytes_(bytes) {}
    template <typename T>
    T next() {
        used_ = (used_ + alignof(T) - 1) / alignof(T) * alignof(T);
        T value{};
        if (used_ + sizeof(T) <= bytes_.size()) memcpy(&value, bytes_.data() + used_, sizeof(T));
        used_ += sizeof(T);
        return value;
    }

private:
    const std::vector<char>& bytes_;
    size_t used_ = 0;
};

void add(Arguments arguments) {
    auto a = arguments.next<const int*>(), b = arguments.next<const int*>();
    auto sum = arguments.next<int*>();
    for (int i = 0, n = arguments.next<int>(); i < n; ++i) sum[i] = a[i] + b[i];
}

void fill(Arguments arguments) {
    auto to = arguments.next<int*>();
    const int value = arguments.next<int>(), n = arguments.next<int>();
    for (int i = 0; i < n; ++i) to[i] = value;
}

void scale(Arguments arguments) {
    auto x = arguments.next<float*>();
    const float by = arguments.next<float>();
    for (int i = 0, n = arguments.next<int>(); i < n; ++i) x[i] *= by;
}

void sum(Arguments arguments) {
    auto from = arguments.next<const int*>();
    const int n = arguments.next<int>();
    long long total = 0;
    for (int i = 0; i < n; ++i) total += from[i];
    *arguments.next<long long*>() = total;
}

void nap(long nanoseconds) {
    const timespec rest{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
    nanosleep(&rest, nullptr);
}

void spin(Arguments arguments) {
    auto word = arguments.next<std::atomic<uint64_t>*>();
    const auto value = arguments.next<uint64_t>();
    while (word->load(std::memory_order_acquire) < value) nap(20'000);
}

// How a test says when a kernel ends, and learns that it runs, from another process.
void gate(Arguments arguments) {
    const char* folder = getenv("SMT_FAKE_GATES");
    if (!folder) return;
    const std::string stem = std::string(folder) + "/" + std::to_string(arguments.next<int>());
    const int reached = open((stem + ".reached").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (reached >= 0) close(reached);
    while (access((stem + ".open").c_str(), F_OK) != 0) nap(200'000);
}

void wait_ms(Arguments arguments) { nap(arguments.next<int>() * 1'000'000L); }
void say(Arguments arguments) { printf("device says %d\n", arguments.next<int>()); }
void illegal_address(Arguments) { fault(CUDA_ERROR_ILLEGAL_ADDRESS); }

struct FakeKernel {
    std::string_view name;
    void (*run)(Arguments);
};
constexpr FakeKernel kKernels[] = {{"add", add},         {"fill", fill}, {"scale", scale},
                                   {"sum", sum},         {"gate", gate}, {"spin", spin},
                                   {"wait_ms", wait_ms}, {"say", say},   {"fault", illegal_address}};

}  // namespace

void run(const Launch& launch) {
    const Function* function = find_function(launch.function);
    const std::string_view name = function ? std::string_view(function->name) : std::string_view();
    if (name == "fault") dump(*function, launch.function);
    for (const FakeKernel& kernel : kKernels) {
        if (kernel.name == name) kernel.run(Arguments(launch.parameters));
    }
}

}  // namespace fake
