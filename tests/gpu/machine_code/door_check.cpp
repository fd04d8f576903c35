// Whether kernels with the door in front of each CTA (rewriter/machine_code) do what they did before, how
// much slower they are, and how soon they stop. Needs a GPU of sm_90 and ptxas; nothing of smt runs.
//
//   door_check OUT CUBIN... [--libraries SECONDS FILE...]
//
// CUBINs are door_kernels.cu, compiled in several ways. Writes lines of JSON to OUT; the exit code is 1 if a
// result was another one, or a library's kernel was refused that the driver takes unpatched.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "door_cases.h"
#include "door_stops.h"

using namespace smt::machine_code;

std::FILE* rows = nullptr;
int failures = 0;

namespace {

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

// Its exit code; 128 and more: a signal.
template <typename Part>
int code_of_process(unsigned seconds, Part&& part) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        failures = 0;  // of this part
        alarm(seconds);
        open_device();
        part();
        std::fflush(nullptr);
        _exit(failures ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Whether it lived to its end.
template <typename Part>
bool in_process(const char* what, const std::string& build, unsigned seconds, Part&& part) {
    const int code = code_of_process(seconds, part);
    failures += code != 0;
    if (code <= 1) return true;
    row(R"({"part":"%s","build":"%s","died":true,"code":%d})", what, build.c_str(), code);
    return false;
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

// Of a case that died: does it die unpatched, too, with no orders, or only in use?
void find_cause(const Case& test, const std::string& path, const std::string& build, Prologues& prologues) {
    const auto code_of = [&](LaunchForm form) {
        return code_of_process(kMostSeconds, [&] {
            const Pair pair = load(path, prologues);
            run_form(test, form == LaunchForm::kPlain ? pair.before : pair.after, form, Streams());
        });
    };
    const int plain = code_of(LaunchForm::kPlain), null = code_of(LaunchForm::kNull),
              used = code_of(LaunchForm::kUsed);
    row(R"({"part":"cause","build":"%s","kernel":"%s","unpatched":%d,"null":%d,"used":%d})", build.c_str(),
        test.kernel, plain, null, used);
}

const std::vector<StopCase>& stop_cases() {
    static const std::vector<StopCase> all = {
        {20000, 2000, false, 250},  {20000, 2000, true, 250},    {400000, 2000, false, 250},
        {20000, 20000, false, 250}, {20000, 100000, false, 250},
    };
    return all;
}

void check_build(const std::string& path, Prologues& prologues, bool first) {
    const std::string build = path.substr(path.rfind('/') + 1);
    const bool slow = build.find("debug") != build.npos;
    for (Case test : cases()) {
        if (slow) test.iterations = std::max(1, test.iterations / 40);
        const bool lived = in_process(test.kernel, build, kMostSeconds, [&] {
            const Pair pair = load(path, prologues);
            check_case(test, build.c_str(), pair.before, pair.after, Streams());
        });
        if (!lived) find_cause(test, path, build, prologues);
    }
    if (!first) return;
    in_process("one_cta", build, kMostSeconds, [&] {
        const Pair pair = load(path, prologues);
        check_latency(pair.before, pair.after, Streams());
    });
    for (const StopCase& test : stop_cases())
        in_process("stop", build, 2 * kMostSeconds, [&] {
            const Pair pair = load(path, prologues);
            check_stops(pair.before, pair.after, Streams(), test);
        });
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
    rows = count < 3 ? nullptr : std::fopen(arguments[1], "a");
    if (!rows)
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
