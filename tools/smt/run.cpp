// smt run: a program with libsmt.so in front of its CUDA driver. This process becomes the program.
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>

#include "runtime/protocol/environment.h"
#include "runtime/protocol/handshake.h"
#include "runtime/protocol/runtime_folder.h"
#include "runtime/protocol/server_key.h"
#include "runtime/protocol/simulated_gpus.h"
#include "runtime/settings/config.h"
#include "runtime/settings/read.h"
#include "tools/smt/command.h"
#include "tools/smt/control.h"
#include "tools/smt/device_choice.h"
#include "tools/smt/environment_check.h"
#include "tools/smt/gpus.h"
#include "tools/smt/placement.h"
#include "tools/smt/places.h"
#include "tools/smt/program_file.h"
#include "tools/smt/settings.h"

namespace smt::tools {
namespace {

// As a shell would find it; empty: nowhere.
std::string find_on_path(const std::string& name) {
    if (name.find('/') != std::string::npos) return ::access(name.c_str(), F_OK) == 0 ? name : "";
    const char* path = std::getenv(environment::kPath);
    std::string folders = path ? path : "/usr/local/bin:/usr/bin:/bin";
    for (size_t at = 0; at <= folders.size();) {
        size_t end = std::min(folders.find(':', at), folders.size());
        std::string folder = end == at ? "." : folders.substr(at, end - at);
        if (std::string file = folder + "/" + name; ::access(file.c_str(), X_OK) == 0) return file;
        at = end + 1;
    }
    return "";
}

void put_in_front(const char* list, const std::string& item) {
    std::string others = variable(list);
    ::setenv(list, (others.empty() ? item : item + ":" + others).c_str(), 1);
}

// A static program may start others, which have smt.
void check_loader(const std::string& file) {
    const std::optional<std::string> loader = loader_of(file);
    if (!loader) return;  // a script
    if (loader->find("/ld-musl") != std::string::npos)
        throw Failure(file + " is linked with musl (its loader is " + *loader +
                      "), and libsmt.so works with glibc alone: build the program with glibc, 2.31 or newer");
    if (loader->empty())
        fmt::print(stderr,
                   "smt run: {} is statically linked, so libsmt.so cannot be preloaded into it: what it does "
                   "on a GPU it does without smt. Programs that it starts run with smt.\n",
                   file);
}

bool offered(std::string_view runtime) {
    return std::ranges::find(kRuntimeFiles, runtime) != kRuntimeFiles.end();
}

// NVIDIA's runtime wants an answer that only NVIDIA's driver has, so programs must take ours. Programs of
// the driver API alone may hold it without calling it (nvcc links it into all), so no program is refused.
void warn_of_other_runtime(const std::string& file, const ProgramFile& program) {
    if (program.static_runtime)
        fmt::print(stderr,
                   "smt run: {} holds NVIDIA's CUDA runtime, whose calls fail on the simulated device. "
                   "Unless it uses the driver API alone, rebuild it with nvcc -cudart shared.\n",
                   file);
    if (!program.shared_runtime.empty() && !offered(program.shared_runtime))
        fmt::print(stderr,
                   "smt run: {} needs {}, whose calls fail on the simulated device, which offers {}. "
                   "Rebuild it with CUDA 11.8 or later.\n",
                   file, program.shared_runtime, fmt::join(kRuntimeFiles, ", "));
}

void export_simulated_device(const std::string& file) {
    std::string runtime = find_runtime();
    if (runtime.empty())
        throw Failure(std::string(kRuntimeFile) + " for the simulated device is not in " + own_directory() +
                      "/../lib/cudart: build it, ./bootstrap.sh build");
    settings::set(settings::Id::kRealDriver, "none");  // it would answer for another device
    const std::string folder = runtime.substr(0, runtime.rfind('/'));
    put_in_front(environment::kLibraryPath, folder);
    if (file.empty()) return;
    const ProgramFile program = examine_program(file);
    warn_of_other_runtime(file, program);
    if (program.has_rpath)
        put_in_front(environment::kPreload,
                     offered(program.shared_runtime) ? folder + "/" + program.shared_runtime : runtime);
}

// The program sees that GPU only, so that it is the program's device 0. Returns the GPU's key; empty: the
// program chooses.
std::string export_gpu(const Options& options, const std::string& device) {
    const std::string* text = options.value("--gpu");
    if (!text) return "";
    const std::vector<Gpu> gpus = visible_gpus(device);
    const uint64_t needed = settings::number_of(settings::Id::kMemoryLimit);
    const bool any = *text == "any";
    const Begins where = options.has("--env") ? Begins::kElsewhere : Begins::kHere;
    const Gpu gpu =
        any ? place_program(gpus, needed, where) : pick_gpu(gpus, *text, "a GPU's number, or any");
    if (!any) note_program(gpu, needed, where);
    if (!gpu.visible.empty()) ::setenv(environment::kVisibleDevices, gpu.visible.c_str(), 1);
    return gpu.key;
}

void export_settings(const Options& options, const std::string& interposer) {
    put_in_front(environment::kPreload, interposer);
    if (const std::string* tenant = options.value("--tenant")) {
        if (tenant->empty() || tenant->size() >= protocol::kTenantNameBytes)
            throw Misuse("--tenant wants a name of 1 to 63 bytes");
        settings::set(settings::Id::kTenant, *tenant);
    }
    if (const std::string* isolation = options.value("--isolation"))
        settings::set(settings::Id::kIsolation, parse_isolation(*isolation));
    if (const std::string* limit = options.value("--memory"))
        settings::set(settings::Id::kMemoryLimit, std::to_string(parse_bytes(*limit)));
    if (const std::string* wait = options.value("--memory-wait"))
        settings::set(settings::Id::kMemoryWait,
                      std::to_string(parse_seconds("--memory-wait", settings::Id::kMemoryWait, 0, *wait)));
    if (const std::string* limit = options.value("--kernel-limit"))
        settings::set(settings::Id::kKernelLimit,
                      std::to_string(parse_seconds("--kernel-limit", settings::Id::kKernelLimit, 1, *limit)));
    if (const std::string* count = options.value("--sms"))
        settings::set(settings::Id::kMultiprocessors, std::to_string(parse_multiprocessors(*count)));
    if (const std::string* seed = options.value("--stress"))
        settings::set(settings::Id::kStress, std::to_string(parse_seed(*seed)));
    if (const std::string* weight = options.value("--weight"))
        settings::set(settings::Id::kWeight, parse_weight(*weight));
    if (const std::string* p99 = options.value("--p99")) settings::set(settings::Id::kP99, parse_time(*p99));
    if (const std::string* slowdown = options.value("--slowdown"))
        settings::set(settings::Id::kSlowdown, parse_slowdown(*slowdown));
    if (const std::string* priority = options.value("--priority"))
        settings::set(settings::Id::kPriority, std::to_string(parse_priority(*priority)));
}

void export_forced_isolation(const std::string& file) {
    const char* const tenant = settings::c_text_of(settings::Id::kTenant);
    if (protocol::has_to_be_strict(tenant ? tenant : file.substr(file.rfind('/') + 1)))
        settings::set(settings::Id::kIsolation, "strict");
}

// The program and its children may share device memory from then on, also those that begin other sessions.
void found_family() {
    if (settings::c_text_of(settings::Id::kFamily)) return;
    unsigned char bytes[16];
    std::string text;
    if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return;  // its process group stands for it
    for (unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
    settings::set(settings::Id::kFamily, text);
}

// The end of the key of its server, behind the GPU's; empty: the shared server.
std::string strict_part() {
    if (!protocol::is_strict()) return "";
    char key[protocol::kKeyBytes] = "";
    const char* problem =
        protocol::add_tenant(key, settings::c_text_of(settings::Id::kTenant),
                             variable(settings::variable_of(settings::Id::kFamily)).c_str());
    if (problem) throw Misuse(problem);
    for (const settings::Id each : protocol::kOfSharedServers) settings::unset(each);
    return key;
}

// What a program's environment says to a server counts when it starts that server, and no later.
// `chosen`: the key of the program's GPU; empty: any may become it.
void warn_of_other_settings(const std::string& chosen, const std::string& strict_part) {
    const bool simulated = settings::text_of(settings::Id::kDevice) == "sim";
    std::vector<std::string> keys;
    try {
        keys = keys_with(".sock");
    } catch (const Failure&) {  // the program will say it
    }
    for (const std::string& key : keys) {
        const std::string gpu(protocol::gpu_of_key(key));
        if ((protocol::simulated_gpu_of(gpu) >= 0) != simulated || key != gpu + strict_part) continue;
        if (!chosen.empty() && gpu != chosen) continue;
        try {
            for (const std::string& line :
                 ask_differences(key, variable(settings::variable_of(settings::Id::kTenant))))
                fmt::print(
                    stderr,
                    "smt run: {} {}, which runs already: the server's counts. `smt server stop` ends it{}\n",
                    line, key,
                    line.starts_with(settings::variable_of(settings::Id::kPolicy))
                        ? "; `smt policy set` changes its policy"
                        : "");
        } catch (const Failure& failure) {
            fmt::print(stderr, "smt run: {}\n", failure.what());
        }
    }
}

// Returns what export_gpu() does. `file`: of the program; empty: any.
std::string export_all(const Options& options, const std::string& interposer, const std::string& file) {
    const std::string device = choose_device(options, "smt run", "this program gets");
    if (device == "sim") export_simulated_device(file);
    export_settings(options, interposer);
    export_forced_isolation(file);
    return export_gpu(options, device);
}

std::set<std::string> environment_now() {
    std::set<std::string> all;
    for (char** each = environ; *each; ++each) all.insert(*each);
    return all;
}

// Settings also if they are here already: where the program begins they may not be.
int show_environment(const Options& options, const std::string& interposer) {
    const std::set<std::string> before = environment_now();
    export_all(options, interposer, "");
    strict_part();
    for (const std::string& line : environment_now())
        if (line.starts_with("SMT_") || !before.contains(line)) fmt::print("{}\n", line);
    return 0;
}

int run_program(const Arguments& arguments) {
    Options options =
        parse_options(arguments, {"--env"},
                      {"--device", "--gpu", "--tenant", "--priority", "--weight", "--p99", "--slowdown",
                       "--sms", "--isolation", "--memory", "--memory-wait", "--kernel-limit", "--stress"},
                      Operands::kCommandLine);
    const bool shows = options.has("--env");
    if (shows && !options.operands.empty()) throw Misuse("--env runs no program");
    if (!shows && options.operands.empty()) throw Misuse("which program?");
    check_environment("smt run");
    std::string interposer = find_interposer();
    if (interposer.empty())
        throw Failure("libsmt.so is not beside this program (" + own_directory() +
                      "/../lib): build it, ./bootstrap.sh build");
    if (interposer.find_first_of(": ") != std::string::npos)
        throw Failure("the loader cannot preload " + interposer +
                      ": its name holds a space or a colon. Move smt elsewhere");

    if (shows) return show_environment(options, interposer);
    const std::string& program = options.operands.front();
    std::string file = find_on_path(program);
    if (file.empty()) throw Failure("there is no program '" + program + "'");
    check_loader(file);
    const std::string gpu = export_all(options, interposer, file);
    found_family();
    warn_of_other_settings(gpu, strict_part());
    std::vector<char*> argv;
    for (std::string& argument : options.operands) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execv(file.c_str(), argv.data());
    throw Failure("cannot run " + file + ": " + std::strerror(errno));
}

}  // namespace

const Command run_command = {
    "run",
    "smt run [OPTION]... -- PROGRAM [ARGUMENT]...\n"
    "       smt run --env [OPTION]...\n"
    "\n"
    "  --env             prints the variables that a program would get, a line NAME=VALUE each, for what "
    "starts programs\n"
    "                    itself; in front of an LD_PRELOAD and an LD_LIBRARY_PATH of theirs\n"
    "  --device gpu|sim  the GPU, or the simulated device (default: the GPU where there is one)\n"
    "  --gpu N|any       the GPU of that number, of those that CUDA_VISIBLE_DEVICES shows, or the one with "
    "the "
    "least to do that\n"
    "                    has room for --memory; the program sees no other\n"
    "  --tenant NAME     whose work it is, for smt log and smt status (default: the program's name)\n"
    "  --priority P      high, normal, low or a whole number: others stop between two blocks while more "
    "urgent ones have work\n"
    "  --weight W        its share beside others, where the policy goes by shares: 2 is twice the share of "
    "1\n"
    "  --p99 TIME        it is a service, of which 99 of 100 requests are to take no longer than TIME, such "
    "as 8ms: policy slo gives\n"
    "                    others what leaves that true\n"
    "  --slowdown X      likewise: no longer than X times what they take by themselves, such as 1.1\n"
    "  --sms N           on N of the GPU's multiprocessors\n"
    "  --isolation M     strict: the tenant's programs get a server and a context of their own, so that a "
    "fault ends "
    "either them or\n"
    "                    others; they take turns with others by time-slicing. fence: they share the "
    "context, and their\n"
    "                    kernels check their addresses; those without PTX are refused. quarantine: they "
    "share the context, but\n"
    "                    nothing of theirs is under way with another tenant's work, so that a fault of "
    "either is a pause for the\n"
    "                    other. shared: the default\n"
    "  --memory LIMIT    most device memory that the tenant gets, such as 800M or 4G (smt set changes it)\n"
    "  --memory-wait S   an allocation waits S seconds for room before it fails\n"
    "  --kernel-limit N  end it when a kernel of it runs for N seconds without progress: "
    "CUDA_ERROR_LAUNCH_TIMEOUT, "
    "for it alone\n"
    "  --stress SEED     stop, move, resize and slice its kernels at random: is the result the same?",
    "runs a CUDA program so that it shares the GPU", run_program};

}  // namespace smt::tools
