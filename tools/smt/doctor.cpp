// smt doctor: looks at everything smt needs on this machine and says what to do about what is amiss.
#include <cuda.h>
#include <dlfcn.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/jit/service.h"
#include "runtime/jit/settings.h"
#include "runtime/jit/toolkit.h"
#include "runtime/protocol/environment.h"
#include "runtime/protocol/layout.h"
#include "runtime/protocol/runtime_folder.h"
#include "runtime/settings/config.h"
#include "runtime/settings/read.h"
#include "tools/smt/command.h"
#include "tools/smt/control.h"
#include "tools/smt/gpus.h"
#include "tools/smt/places.h"

namespace smt::tools {
namespace {

// One line for each finding, and below it what to do.
class Report {
public:
    void good(const std::string& what, const std::string& finding) { line("ok", what, finding); }
    void note(const std::string& what, const std::string& finding, const std::string& advice) {
        line("note", what, finding);
        fmt::print("{:<20}-> {}\n", "", advice);
    }
    void bad(const std::string& what, const std::string& finding, const std::string& advice) {
        ++bad_;
        line("BAD", what, finding);
        fmt::print("{:<20}-> {}\n", "", advice);
    }
    int bad_findings() const { return bad_; }

private:
    static void line(const char* mark, const std::string& what, const std::string& finding) {
        fmt::print("{:<8}{:<12}{}\n", mark, what, finding);
    }
    int bad_ = 0;
};

void check_gpu(Report& report) {
    Driver driver = examine_driver();
    const std::string fake(settings::text_of(settings::Id::kDriver));
    if (!fake.empty())
        report.note("driver", "smtd will load " + fake, "unset SMT_DRIVER to use the real driver");
    if (!driver.problem.empty()) {
        bool node = gpu_node_exists();
        std::string advice =
            node ? "there is a GPU here: install its driver, or let LD_LIBRARY_PATH or SMT_REAL_DRIVER name "
                   "libcuda.so.1"
                 : "there is no GPU in this machine (in a container: start it with --gpus all); programs run "
                   "on "
                   "the simulated device";
        if (fake.empty() && node)
            report.bad("GPU", driver.problem, advice);
        else
            report.note("GPU", driver.problem, advice);
        return;
    }
    report.good("driver", fmt::format("{}, CUDA {}.{}", driver.path, driver.version / 1000,
                                      driver.version % 1000 / 10));
    if (driver.version / 1000 < CUDA_VERSION / 1000)
        report.note("driver", "older than the CUDA headers smt was built with",
                    "functions it lacks return NOT_SUPPORTED");
    for (size_t i = 0; i < driver.gpus.size(); ++i)  // with the numbers that --gpu takes
        report.good(fmt::format("GPU {}", i), driver.gpus[i].name + ", " + driver.gpus[i].visible);
    if (driver.gpus.empty())
        report.bad("GPU", "the driver lists none",
                   "look at CUDA_VISIBLE_DEVICES, now '" + variable(environment::kVisibleDevices) + "'");
}

constexpr const char* kInstall = "install smt anew, or run ./bootstrap.sh build";

void check_files(Report& report) {
    std::string interposer = find_interposer(), server = find_server();
    if (interposer.empty())
        report.bad("libsmt.so", "not in ../lib/smt or ../lib of " + own_directory(), kInstall);
    else if (interposer.find_first_of(": ") != std::string::npos)
        report.bad("libsmt.so", interposer,
                   "the loader cannot preload a name with a space or colon in it: move smt elsewhere");
    else
        report.good("libsmt.so", interposer);
    if (server.empty())
        report.bad("smtd", "not in " + own_directory(),
                   std::string(kInstall) + ", or let SMT_SERVER name it");
    else if (::access(server.c_str(), X_OK) != 0)
        report.bad("smtd", server + " cannot be executed", "chmod +x " + server);
    else
        report.good("smtd", server);
    if (const std::string worker = runtime::jit::read_settings(own_directory()).compiler; worker.empty())
        report.note("worker", "there is no smt-compile in " + own_directory() + " or its ../libexec/smt",
                    std::string("no kernel is managed, and the driver compiles PTX: ") + kInstall);
    else
        report.good("worker", worker);
}

void check_simulated_device(Report& report) {
    const std::string runtime = find_runtime(), chosen(settings::text_of(settings::Id::kDevice));
    if (runtime.empty())
        report.note(
            "simulated", std::string(kRuntimeFile) + " is not in a folder cudart beside libsmt.so",
            std::string("programs built with nvcc -cudart shared need it with smt run --device sim: ") +
                kInstall);
    else
        report.good("simulated",
                    "smt run --device sim; programs built with nvcc -cudart shared get " + runtime);
    if (!chosen.empty())
        report.note("SMT_DEVICE", "is " + chosen, "every server started here offers that device");
}

void check_runtime_directory(Report& report) {
    std::string directory = runtime_directory();
    std::string problem = runtime_directory_problem(directory);
    std::string parent = std::filesystem::path(directory).parent_path().string();
    bool exists = ::access(directory.c_str(), F_OK) == 0;
    if (!problem.empty())
        report.bad("runtime dir", directory + ": " + problem,
                   "put it right, or let SMT_RUNTIME_DIR name another folder");
    else if (::access((exists ? directory : parent).c_str(), W_OK) != 0)
        report.bad("runtime dir", directory + " cannot be written",
                   "let SMT_RUNTIME_DIR name another folder");
    else if (path_of(protocol::kSimulatedKey, ".sock").size() >= sizeof(sockaddr_un::sun_path))
        report.bad("runtime dir", directory + " is too long for the name of a socket in it",
                   "let SMT_RUNTIME_DIR name another folder");
    else
        report.good("runtime dir", directory + (exists ? "" : " (made when needed)"));
}

// What does not keep smt from working, but slows it down.
void check_cache(Report& report) {
    const std::string folder = runtime::jit::cache_folder();
    std::filesystem::path existing = folder;
    std::error_code error;
    while (!existing.empty() && existing != existing.root_path() && !std::filesystem::exists(existing, error))
        existing = existing.parent_path();
    if (folder.empty() || ::access(existing.c_str(), W_OK) != 0)
        report.note("cache",
                    folder.empty() ? "no folder: neither HOME nor SMT_CACHE_DIR is set"
                                   : folder + " cannot be written",
                    "compiled kernels and profiles are not kept: let SMT_CACHE_DIR name another folder");
    else
        report.good("cache", folder + (existing == folder ? "" : " (made when needed)"));
}

void check_ptx_compiler(Report& report) {
    if (runtime::jit::read_settings(own_directory()).compiler.empty()) return;  // it was said
    const bool drivers = settings::is(settings::Id::kPtxCompiler, "driver");
    if (runtime::jit::Service::has_ptx_compiler() && !drivers)
        report.good("PTX", "compiled and linked by the compile worker");
    else
        report.note(
            "PTX",
            drivers ? "compiled and linked by the driver, in the server: SMT_COMPILE says so"
                    : "compiled and linked by the driver, in the server: smt was built without nvPTXCompiler",
            drivers ? "unset it to have the compile worker do it"
                    : "install it, or run ./bootstrap.sh build, which fetches it, and build again");
}

// NVIDIA's libraries that the worker opens: as it looks for them.
void check_library(Report& report, const char* what, const std::string& file, settings::Id chosen,
                   const std::string& lost) {
    for (const std::string& path : runtime::jit::library_paths(file, chosen)) {
        void* library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
        if (!library) continue;
        report.good(what, path);
        ::dlclose(library);
        return;
    }
    report.note(
        what, file + " is neither in $CUDA_HOME nor /usr/local/cuda, and the loader does not know it",
        lost + fmt::format("; install NVIDIA's CUDA 13 libraries, or let {} in SMT_COMPILE name the file",
                           settings::setting(chosen).item));
}

void check_compilers(Report& report) {
    check_library(report, "NVRTC", "libnvrtc.so.13", settings::Id::kNvrtc,
                  "kernels are managed by the PTX in programs, not by their sources");
    check_library(report, "nvJitLink", "libnvJitLink.so.13", settings::Id::kNvJitLink,
                  "the driver links what programs link, and managed kernels are not held to registers");
}

void check_variables(Report& report) {
    const settings::Config config = settings::Config::read();
    for (const std::string& problem : config.problems())
        report.bad("setting", problem, "correct or remove it; smt config shows all");
    for (const std::string& line : config.unknown_variables())
        report.note("setting", line, "smt config --all lists all of them");
}

void check_servers(Report& report) {
    if (!runtime_directory_problem(runtime_directory()).empty()) return;  // it was said
    bool running = false;
    for (const std::string& key : keys_with(".sock")) {
        try {
            auto reply = ask_server(key, protocol::ControlKind::kStatus);
            if (!reply) continue;
            running = true;
            std::string text = fmt::format("{}: process {}, protocol {}, {} sessions", key, reply->server_pid,
                                           reply->version, reply->sessions);
            if (reply->version == protocol::kProtocolVersion)
                report.good("server", text);
            else
                report.bad("server", text,
                           fmt::format("this smt speaks protocol {}: run smt server stop",
                                       protocol::kProtocolVersion));
        } catch (const Failure& failure) {
            running = true;
            report.bad("server", failure.what(), "look at " + path_of(key, ".log") + "; if it hangs, end it");
        }
    }
    if (!running) report.good("server", "none is running; the first program starts it");
}

void check_preload(Report& report) {
    std::istringstream names(variable(environment::kPreload));
    bool any = false;
    for (std::string part; std::getline(names, part, ':');) {
        if (part.empty()) continue;
        any = true;
        if (part.find('/') != std::string::npos && ::access(part.c_str(), R_OK) != 0)
            report.bad("LD_PRELOAD", part + " cannot be read", "correct LD_PRELOAD");
        else if (part.find("libsmt.so") != std::string::npos)
            report.note("LD_PRELOAD", part + " is set in this shell",
                        "every program started here is remoted; smt run does it for one");
        else
            report.note("LD_PRELOAD", part + " is preloaded too",
                        "if it also stands in for CUDA, only the first of them is in front");
    }
    if (!any) report.good("LD_PRELOAD", "not set");
}

void check_limits(Report& report) {
    rlimit space{};
    ::getrlimit(RLIMIT_AS, &space);
    if (space.rlim_cur == RLIM_INFINITY)
        report.good("addresses", "not limited");
    else
        report.bad("addresses", fmt::format("limited to {} bytes", space.rlim_cur),
                   fmt::format("smt reserves {} GiB of addresses in each program: ulimit -v unlimited",
                               (protocol::kArenaBytes + protocol::kDeviceRangeBytes) >> 30));
    int scope = 0;
    std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
    if (scope == 0)
        report.good("ptrace", "debuggers may attach");
    else
        report.note("ptrace", fmt::format("kernel.yama.ptrace_scope is {}", scope),
                    "smt does not mind; to attach a debugger to smtd, be root");
}

void check_toolkit(Report& report) {
    for (const std::string& root : {variable(environment::kCudaHome), std::string("/usr/local/cuda")}) {
        if (root.empty() || ::access((root + "/bin/nvcc").c_str(), X_OK) != 0) continue;
        report.good("toolkit", root);
        return;
    }
    report.note("toolkit", "no nvcc in $CUDA_HOME or /usr/local/cuda",
                "only building CUDA programs needs it; bootstrap.sh fetches one into build/cuda");
}

int run_doctor(const Arguments& arguments) {
    parse_options(arguments, {}, {});
    Report report;
    check_gpu(report);
    check_files(report);
    check_simulated_device(report);
    check_variables(report);
    check_runtime_directory(report);
    check_cache(report);
    check_ptx_compiler(report);
    check_compilers(report);
    check_servers(report);
    check_preload(report);
    check_limits(report);
    check_toolkit(report);
    const int bad = report.bad_findings();
    fmt::print("\n{}\n", bad == 0   ? "all is well"
                         : bad == 1 ? "one finding keeps smt from working"
                                    : fmt::format("{} findings keep smt from working", bad));
    return report.bad_findings() ? 1 : 0;
}

}  // namespace

const Command doctor_command = {"doctor", "smt doctor", "examines this machine and says what to do",
                                run_doctor};

}  // namespace smt::tools
