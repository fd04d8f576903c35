// Whether kernels with the door in front of each CTA (rewriter/machine_code) do what they did before, how
// much slower they are, and how soon they stop. Needs a GPU of sm_90 and ptxas; nothing of smt runs.
//
//   door_check OUT CUBIN... [--libraries SECONDS FILE...]
//
// CUBINs are door_kernels.cu, compiled in several ways. Writes lines of JSON to OUT; the exit code is 1 if a
// result was another one, or a library's kernel was refused that the driver takes unpatched.
#include "door_check.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>

using namespace smt::machine_code;
using Clock = std::chrono::steady_clock;

std::FILE* rows = nullptr;
int failures = 0;

namespace {

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Case {
    const char* kernel;
    Launch shape;
    int iterations;
    size_t extra = 0;  // bytes of a parameter behind the four
    bool any = true;   // false: it has no parameters, and writes to a variable
};

const std::vector<Case>& cases() {
    static const std::vector<Case> all = {
        {"compute", {{20000, 1, 1}, {256, 1, 1}}, 2000},
        {"tiny", {{400000, 1, 1}, {64, 1, 1}}, 0},
        {"tiny", {{100000, 1, 1}, {32, 1, 1}}, 0},
        {"few_registers", {{50000, 2, 3}, {32, 2, 1}}, 0},
        {"compute", {{300, 40, 3}, {16, 4, 2}}, 1000},
        {"shared_barriers", {{8000, 1, 1}, {1024, 1, 1}}, 60},
        {"shared_barriers", {{20000, 1, 1}, {100, 1, 1}}, 60},
        {"named_barriers", {{10000, 1, 1}, {256, 1, 1}}, 60},
        {"dynamic_shared", {{4000, 1, 1}, {256, 1, 1}, 49152}, 500},
        {"all_registers", {{8000, 1, 1}, {128, 1, 1}}, 20},
        {"bounded", {{3000, 1, 1}, {1024, 1, 1}}, 100},
        {"printing", {{20000, 1, 1}, {128, 1, 1}}, 500},
        {"no_parameters", {{8192, 1, 1}, {128, 1, 1}}, 0, 0, false},
        {"large_parameters", {{20000, 1, 1}, {128, 1, 1}}, 1000, 988 * 4},
        {"largest_parameters", {{20000, 1, 1}, {128, 1, 1}}, 1000, 1018 * 4},
        {"odd_parameters", {{20000, 1, 1}, {128, 1, 1}}, 1000, 13},
        {"early_return", {{20000, 1, 1}, {129, 1, 1}}, 1000},
        {"calling", {{20000, 1, 1}, {128, 1, 1}}, 200},
        {"clustered", {{20000, 1, 1}, {256, 1, 1}}, 1000},
        {"clustered", {{200, 31, 3}, {64, 1, 1}}, 1000},
        {"any_cluster", {{20000, 1, 1}, {128, 1, 1}, 0, 4}, 1000},
        {"any_cluster", {{2000, 3, 2}, {128, 1, 1}, 0, 8}, 1000},
        {"compute", {{20000, 1, 1}, {256, 1, 1}, 0, 2}, 1000},  // in clusters, of which it knows nothing
    };
    return all;
}

// Buffers and parameters of one case, for one of its two modules.
class Bench {
public:
    Bench(const Case& test, CUmodule module, const std::vector<float>& first)
        : test_(test),
          first_(first),
          n_(static_cast<int>(test.shape.threads())),
          in_(n_ * sizeof(float)),
          own_(n_ * sizeof(float)) {
        MUST(cuModuleGetFunction(&function_, module, test.kernel));
        if (test.shape.shared > 48 << 10)
            MUST(cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    static_cast<int>(test.shape.shared)));
        out_ = own_.address();
        out_bytes_ = own_.bytes();
        if (!test.any) MUST(cuModuleGetGlobal(&out_, &out_bytes_, module, "global_out"));
        MUST(cuMemcpyHtoD(in_.address(), first.data(), in_.bytes()));
        in_address_ = in_.address();
        for (size_t i = 0; i < sizeof extra_; ++i) extra_[i] = static_cast<char>(i % 5);
        for (size_t i = 0; i + 4 <= test.extra && test.extra > 16; i += 4) {
            const float value = static_cast<float>(i % 97);
            std::memcpy(extra_ + i, &value, 4);
        }
    }

    void begin() {
        MUST(cuMemcpyHtoD(out_, first_.data(), std::min(out_bytes_, first_.size() * sizeof(float))));
    }
    void run(CUstream stream, const CUdeviceptr* control) { MUST(try_run(stream, control)); }
    CUresult try_run(CUstream stream, const CUdeviceptr* control) {
        control_ = control ? *control : 0;
        std::vector<void*> parameters;
        if (test_.any) parameters = {&out_, &in_address_, &n_, const_cast<int*>(&test_.iterations)};
        if (test_.extra) parameters.push_back(extra_);
        if (control) parameters.push_back(&control_);
        return launch(function_, test_.shape, stream, parameters.data());
    }
    std::vector<char> result() {
        std::vector<char> bytes(out_bytes_);
        MUST(cuMemcpyDtoH(bytes.data(), out_, out_bytes_));
        return bytes;
    }
    CUfunction function() const { return function_; }

private:
    const Case& test_;
    const std::vector<float>& first_;
    int n_;
    Buffer in_, own_;
    CUfunction function_ = nullptr;
    CUdeviceptr out_ = 0, in_address_ = 0, control_ = 0;
    size_t out_bytes_ = 0;
    char extra_[4096];
};

struct Streams {
    CUstream work, stop;
    Streams() {
        MUST(cuStreamCreate(&work, CU_STREAM_NON_BLOCKING));
        MUST(cuStreamCreateWithPriority(&stop, CU_STREAM_NON_BLOCKING, -5));
    }
};

class Control {
public:
    explicit Control(const Case& test) : words_(door_bytes(test.shape.ctas(), true)) {}
    CUdeviceptr address() const { return words_.address(); }
    void clear(CUstream stream) { MUST(cuMemsetD8Async(words_.address(), 0, words_.bytes(), stream)); }
    void begin_run(CUstream stream, uint32_t run) {
        MUST(cuMemsetD32Async(words_.address() + offsetof(DoorWords, run), run, 1, stream));
        MUST(cuMemsetD32Async(words_.address() + offsetof(DoorWords, refused), 0, 1, stream));
    }
    void stop(CUstream stream, uint32_t run) {
        MUST(cuStreamWriteValue32(stream, words_.address() + offsetof(DoorWords, stopped), run, 0));
    }
    uint32_t refused() const {
        uint32_t count = 0;
        MUST(cuMemcpyDtoH(&count, words_.address() + offsetof(DoorWords, refused), sizeof count));
        return count;
    }

private:
    Buffer words_;
};

void wait_for(double seconds) {
    const auto begin = Clock::now();
    while (seconds_since(begin) < seconds) {
    }
}

double time_of(Bench& bench, CUstream stream, const CUdeviceptr* control) {
    static CUevent begin = nullptr, end = nullptr;
    if (!begin) {
        MUST(cuEventCreate(&begin, 0));
        MUST(cuEventCreate(&end, 0));
    }
    MUST(cuEventRecord(begin, stream));
    bench.run(stream, control);
    MUST(cuEventRecord(end, stream));
    MUST(cuStreamSynchronize(stream));
    float ms = 0;
    MUST(cuEventElapsedTime(&ms, begin, end));
    return ms;
}

struct Stops {
    int launches = 0, stopped = 0, partly = 0, runs = 0, wrong = 0;
    uint32_t refused = 0;
};

// One launch to its end, with stops at random times.
void run_with_stops(Bench& bench, Control& control, const Streams& streams, double ms, std::mt19937& random,
                    const Case& test, Stops& sum) {
    std::uniform_real_distribution<double> moment(0, ms * 1.1e-3);
    control.clear(streams.work);
    const CUdeviceptr address = control.address();
    ++sum.launches;
    for (uint32_t run = 1;; ++run) {
        control.begin_run(streams.work, run);
        MUST(cuStreamSynchronize(streams.work));
        bench.run(streams.work, &address);
        if (run <= 6) {
            wait_for(moment(random) / (run > 1 ? 2 : 1));
            control.stop(streams.stop, run);
        }
        MUST(cuStreamSynchronize(streams.work));
        MUST(cuStreamSynchronize(streams.stop));
        ++sum.runs;
        const uint32_t refused = control.refused();
        sum.stopped += refused != 0;
        sum.partly += refused != 0 && refused < test.shape.ctas();
        sum.refused += refused;
        if (refused == 0) return;
        if (run > 100) {
            ++sum.wrong;
            return;
        }
    }
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

void check_case(const Case& test, const char* build, CUmodule plain, CUmodule patched,
                const Streams& streams) {
    std::vector<float> first(std::max<size_t>(test.shape.threads(), 1 << 20));
    for (size_t i = 0; i < first.size(); ++i) first[i] = static_cast<float>(i % 1021) * 0.125f;
    Bench before(test, plain, first), after(test, patched, first);
    Control control(test);
    const CUdeviceptr none = 0, address = control.address();
    std::mt19937 random(7);

    before.begin();
    before.run(streams.work, nullptr);
    MUST(cuStreamSynchronize(streams.work));
    const auto expected = before.result();
    after.begin();
    if (const CUresult status = after.try_run(streams.work, &none); status != CUDA_SUCCESS) {
        row(R"({"part":"kernel","build":"%s","kernel":"%s","ctas":%zu,"launch":"%s"})", build, test.kernel,
            test.shape.ctas(), error_text(status));
        ++failures;
        return;
    }
    MUST(cuStreamSynchronize(streams.work));
    const bool same_null = after.result() == expected;

    std::vector<double> times[3];
    for (int round = 0; round < 20; ++round) {
        times[0].push_back(time_of(before, streams.work, nullptr));
        times[1].push_back(time_of(after, streams.work, &none));
        control.clear(streams.work);
        control.begin_run(streams.work, 1);
        times[2].push_back(time_of(after, streams.work, &address));
    }
    const uint32_t late = control.refused();
    control.begin_run(streams.work, 2);
    const double resume_of_nothing = time_of(after, streams.work, &address);

    Stops stops;
    for (int i = 0; i < 12; ++i) {
        after.begin();
        run_with_stops(after, control, streams, median(times[2]), random, test, stops);
        stops.wrong += after.result() != expected;
    }
    int registers[2] = {}, ctas[2] = {};
    const int threads = static_cast<int>(test.shape.block[0] * test.shape.block[1] * test.shape.block[2]);
    for (int i = 0; i < 2; ++i) {
        const CUfunction function = i ? after.function() : before.function();
        MUST(cuFuncGetAttribute(&registers[i], CU_FUNC_ATTRIBUTE_NUM_REGS, function));
        MUST(cuOccupancyMaxActiveBlocksPerMultiprocessor(&ctas[i], function, threads, test.shape.shared));
    }
    const bool good = same_null && stops.wrong == 0 && late == 0;
    failures += !good;
    row(R"({"part":"kernel","build":"%s","kernel":"%s","ctas":%zu,"threads":%d,"cluster":%u,"same_null":%s,"launches":%d,"runs":%d,"stopped":%d,"partly":%d,"wrong":%d,)"
        R"("ms":%.4f,"ms_null":%.4f,"ms_admitted":%.4f,"null":%.4f,"admitted":%.4f,"ms_all_refused":%.4f,"registers":[%d,%d],"ctas_per_sm":[%d,%d]})",
        build, test.kernel, test.shape.ctas(), threads, test.shape.cluster, same_null ? "true" : "false",
        stops.launches, stops.runs, stops.stopped, stops.partly, stops.wrong, median(times[0]),
        median(times[1]), median(times[2]), median(times[1]) / median(times[0]),
        median(times[2]) / median(times[0]), resume_of_nothing, registers[0], registers[1], ctas[0], ctas[1]);
}

// Launch and wait of one CTA, as the host sees it.
void check_latency(CUmodule plain, CUmodule patched, const Streams& streams) {
    const Case test = {"tiny", {{1, 1, 1}, {64, 1, 1}}, 0};
    std::vector<float> first(1 << 20, 1.0f);
    Bench before(test, plain, first), after(test, patched, first);
    Control control(test);
    control.clear(streams.work);
    control.begin_run(streams.work, 1);
    const CUdeviceptr none = 0, address = control.address();
    std::vector<double> times[3];
    for (int round = 0; round < 2000; ++round)
        for (int form = 0; form < 3; ++form) {
            const auto begin = Clock::now();
            if (form == 0)
                before.run(streams.work, nullptr);
            else
                after.run(streams.work, form == 1 ? &none : &address);
            MUST(cuStreamSynchronize(streams.work));
            times[form].push_back(seconds_since(begin) * 1e6);
        }
    row(R"({"part":"one_cta","us":%.2f,"us_null":%.2f,"us_admitted":%.2f})", median(times[0]),
        median(times[1]), median(times[2]));
}

// From the order to stop to the launch's end.
void check_stop(CUmodule patched, const Streams& streams, int iterations, bool by_copy) {
    const Case test = {"compute", {{400000, 1, 1}, {256, 1, 1}}, iterations};
    const Case one = {"compute", {{1, 1, 1}, {256, 1, 1}}, iterations};
    std::vector<float> first(test.shape.threads(), 1.0f);
    Bench bench(test, patched, first), single(one, patched, first);
    Control control(test);
    const CUdeviceptr none = 0, address = control.address();
    std::vector<double> singles, times;
    for (int i = 0; i < 9; ++i) singles.push_back(time_of(single, streams.work, &none) * 1e3);
    uint32_t* stopped = nullptr;
    MUST(cuMemAllocHost(reinterpret_cast<void**>(&stopped), sizeof *stopped));
    *stopped = 1;
    int early = 0;
    for (int i = 0; i < 41; ++i) {
        control.clear(streams.work);
        control.begin_run(streams.work, 1);
        MUST(cuStreamSynchronize(streams.work));
        bench.run(streams.work, &address);
        wait_for(2e-3);
        const auto begin = Clock::now();
        if (by_copy)
            MUST(cuMemcpyHtoDAsync(address, stopped, sizeof *stopped, streams.stop));
        else
            control.stop(streams.stop, 1);
        MUST(cuStreamSynchronize(streams.work));
        times.push_back(seconds_since(begin) * 1e6);
        early += control.refused() == 0;
    }
    std::sort(times.begin(), times.end());
    row(R"({"part":"stop","by":"%s","us_one_cta":%.1f,"n":%zu,"ended_before":%d,"us_min":%.1f,"us_median":%.1f,"us_max":%.1f})",
        by_copy ? "copy" : "value", median(singles), times.size(), early, times.front(),
        times[times.size() / 2], times.back());
    MUST(cuMemFreeHost(stopped));
}

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) std::fprintf(stderr, "no file %s\n", path.c_str()), std::exit(2);
    return std::string(std::istreambuf_iterator<char>(file), {});
}

// ---- Each part in a process of its own: a fault ends its context, and a hang its time.

constexpr unsigned kMostSeconds = 45;

void open_device() {
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);  // every kernel of a library, at its load
    MUST(cuInit(0));
    CUdevice device;
    CUcontext context;
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxSetFlags(device, CU_CTX_SCHED_SPIN));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
}

template <typename Part>
void in_process(const char* what, const std::string& build, unsigned seconds, Part&& part) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        alarm(seconds);
        open_device();
        part();
        std::fflush(nullptr);
        _exit(failures ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status == 0) return;
    ++failures;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 1)
        row(R"({"part":"%s","build":"%s","died":true,"signal":%d,"code":%d})", what, build.c_str(),
            WIFSIGNALED(status) ? WTERMSIG(status) : 0, WIFEXITED(status) ? WEXITSTATUS(status) : 0);
}

struct Pair {
    CUmodule before, after;
};

Pair load(const std::string& path, Prologues& prologues) {
    const std::string bytes = read_file(path);
    auto result = patch(bytes, prologues);
    if (auto* problem = std::get_if<Problem>(&result)) {
        std::fprintf(stderr, "%s: %s\n", path.c_str(), problem->text.c_str());
        std::exit(2);
    }
    const auto& patched = std::get<Patched>(result);
    for (const PatchedEntry& entry : patched.entries)
        if (!entry.reason.empty()) std::printf("%s: %s\n", entry.name.c_str(), entry.reason.c_str());
    Pair pair;
    MUST(cuModuleLoadData(&pair.before, bytes.data()));
    MUST(cuModuleLoadData(&pair.after, patched.cubin.data()));
    return pair;
}

void check_build(const std::string& path, Prologues& prologues, bool first) {
    const std::string build = path.substr(path.rfind('/') + 1);
    const bool slow = build.find("debug") != build.npos;
    for (Case test : cases()) {
        if (slow) test.iterations = std::max(1, test.iterations / 40);
        in_process(test.kernel, build, kMostSeconds, [&] {
            const Pair pair = load(path, prologues);
            check_case(test, build.c_str(), pair.before, pair.after, Streams());
        });
    }
    if (!first) return;
    in_process("one_cta", build, kMostSeconds, [&] {
        const Pair pair = load(path, prologues);
        check_latency(pair.before, pair.after, Streams());
    });
    for (int iterations : {2000, 20000, 200000})
        for (bool by_copy : {false, true})
            in_process("stop", build, kMostSeconds,
                       [&] { check_stop(load(path, prologues).after, Streams(), iterations, by_copy); });
}

void show_device() {
    char name[100];
    int driver = 0;
    MUST(cuDeviceGetName(name, sizeof name, 0));
    MUST(cuDriverGetVersion(&driver));
    row(R"({"part":"device","name":"%s","driver":%d})", name, driver);
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 3 || !(rows = std::fopen(arguments[1], "a")))
        return std::fprintf(stderr, "usage: door_check OUT CUBIN... [--libraries SECONDS FILE...]\n"), 2;
    Prologues prologues(assemble_with_ptxas);
    in_process("device", "", kMostSeconds, show_device);
    int i = 2;
    for (; i < count && std::strcmp(arguments[i], "--libraries") != 0; ++i)
        check_build(arguments[i], prologues, i == 2);
    if (++i < count) {
        const double all = std::atof(arguments[i]);
        const auto begin = Clock::now();
        for (++i; i < count; ++i) {
            const double left = all - seconds_since(begin);
            const std::string file = arguments[i];
            in_process("library", file.substr(file.rfind('/') + 1),
                       static_cast<unsigned>(std::max(5.0, left) + 30),
                       [&] { check_library(file, left, prologues); });
        }
    }
    std::printf("%d failures\n", failures);
    return failures ? 1 : 0;
}
