// smtd: owns one GPU for the programs of one user, or, with --system, of several. Usage: smtd --help
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/cores.h"
#include "runtime/device/device.h"
#include "runtime/journal/fault_record.h"
#include "runtime/journal/journal.h"
#include "runtime/protocol/environment.h"
#include "runtime/protocol/server_key.h"
#include "runtime/protocol/system_server.h"
#include "runtime/server/files.h"
#include "runtime/server/generations.h"
#include "runtime/server/image_opener.h"
#include "runtime/server/keeping.h"
#include "runtime/server/listener.h"
#include "runtime/server/log.h"
#include "runtime/server/printf.h"
#include "runtime/server/process.h"
#include "runtime/server/server.h"
#include "runtime/server/strict_files.h"
#include "runtime/server/takeover/standby.h"
#include "runtime/server/takeover/successor.h"
#include "runtime/server/users.h"
#include "runtime/settings/config.h"
#include "runtime/settings/grants.h"
#include "runtime/settings/read.h"
#include "runtime/thread/thread.h"

namespace smt::runtime::server {

namespace {

constexpr unsigned long kRecordMost = 256ul << 20;  // bytes of a recording

constexpr const char* kUsage =
    "usage: smtd [--key KEY] [--daemonize | --foreground | --system | --standby FD | --make-context]\n"
    "  --key KEY      names the GPU's files in the runtime directory (default: device); GPU@TENANT: of a "
    "strict\n"
    "                 tenant's server\n"
    "  --daemonize    return at once and serve in the background; stderr goes to the log file\n"
    "  --foreground   serve in this process (default)\n"
    "  --system       serve all users that reach /run/smt, in this process (systemd starts it: "
    "smtd@.service)\n"
    "  --standby FD   wait, to take over from the server at the other end of FD (smtd starts it)\n"
    "  --make-context make a context on the GPU, and end (smtd starts it)\n";

struct Options {
    std::string key = "device";
    bool daemonize = false;
    bool make_context = false;
    bool system = false;
    int standby = -1;        // the socket of the server that this process may take over from; -1: none
    Users* users = nullptr;  // if `system`
};

bool parse(int count, char** arguments, Options& options) {
    for (int i = 1; i < count; ++i) {
        std::string_view argument = arguments[i];
        if (argument == "--key" && i + 1 < count) {
            options.key = arguments[++i];
        } else if (argument == "--daemonize") {
            options.daemonize = true;
        } else if (argument == "--foreground") {
            options.daemonize = false;
        } else if (argument == "--system") {
            options.system = true;
        } else if (argument == "--make-context") {
            options.make_context = true;
        } else if (argument == "--standby" && i + 1 < count) {
            options.standby = std::atoi(arguments[++i]);
        } else {
            return false;
        }
    }
    return true;
}

int fail(const std::string& why) {
    log_line(why);
    return 1;
}

// The parent exits at once: a client polls the socket and does not wait for the server process.
bool go_to_background() {
    pid_t child = fork();
    if (child < 0) return false;
    if (child > 0) _exit(0);
    setsid();
    if (chdir("/") != 0) return false;
    int null = open("/dev/null", O_RDWR);
    if (null < 0) return false;
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);  // until the log is opened
    return close_range(3, ~0u, 0) == 0;
}

bool log_to(const std::string& path) {
    int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    return file >= 0 && dup2(file, STDERR_FILENO) >= 0;
}

// To be called before the first thread starts, so that all threads of the server and the driver inherit the
// mask.
void block_signals() {
    sigset_t watched;
    sigemptyset(&watched);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGINT);
    sigprocmask(SIG_BLOCK, &watched, nullptr);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of the write
}

// A recording serves the study of policies. If it cannot be made the server runs without it.
void start_recording(Server& server) {
    const std::string path(settings::text_of(settings::Id::kRecord));
    if (path.empty() || path == "none") return;
    const auto note = [&server](const std::string& line) { server.note(line); };
    auto recorder = std::make_unique<schedule::Recorder>(path, kRecordMost, note);
    if (!recorder->error().empty())
        return note(fmt::format("{}: decisions are not recorded: {}", path, recorder->error()));
    server.dispatcher().record(std::move(recorder));
    note(fmt::format("decisions are recorded in {}", path));
}

// SMT_JOURNAL=core_dump decides if it is set. Else dumps are on after a recent fault, so that a repeated
// fault is reported with its kernel.
//
// Under a takeover they are off: with them a wait may return success before the error of a fault comes, and
// what was under way would count as over.
bool wants_core_dumps(const Files& files) {
    if (takeover_wanted()) return false;
    const std::optional<journal::LastFault> last = journal::read_fault(files.fault);
    return settings::flag_of(settings::Id::kCoreDump, last && last->ago < std::chrono::hours(1));
}

// A policy that does not exist is among the problems that main() logs.
std::unique_ptr<schedule::Policy> chosen_policy() {
    std::unique_ptr<schedule::Policy> policy =
        schedule::make_policy(settings::text_of(settings::Id::kPolicy));
    return policy ? std::move(policy)
                  : schedule::make_policy(settings::setting(settings::Id::kPolicy).initial.text);
}

// Why no process can take over from this one, for the log; empty: one can, or none is wanted.
std::string why_no_standby(const Options& options, device::Device& device) {
    if (device.properties().keeps_faults_apart) return "a fault on this device ends its own program only";
    if (!options.daemonize && options.standby < 0) return "a server in the foreground ends with its process";
    return device.physical_memory().kept() ? "" : "there is no smt-keeper";
}

std::unique_ptr<Standby> expect_takeover(const Options& options, Server& server, Listener& listener,
                                         int lock) {
    if (!takeover_wanted()) return nullptr;
    if (const std::string why = why_no_standby(options, server.device()); !why.empty())
        return server.note("no standby: " + why), nullptr;
    auto standby = std::make_unique<Standby>(server.device(), options.key,
                                             [&server](const std::string& line) { server.note(line); });
    server.expect_takeover([each = standby.get()] { return each->ready(); },
                           [each = standby.get()] { return each->comes(); },
                           [&listener] { listener.wake(); });
    server.standstill().ends_by([each = standby.get()](const std::string& why, const std::string& tenant) {
        each->ends(why, tenant);
    });
    listener.stand_in(standby.get(), lock);
    return standby;
}

// `successor`: the sessions of the process that it takes over from; null: it begins with none.
int serve_device(const Options& options, const Files& files, device::Device& device, DevicePrintf& printf,
                 journal::Writer& journal, int lock, Successor* successor,
                 std::unique_ptr<jit::Opener> opener = nullptr) {
    std::string error;
    if (!settings::text_of(settings::Id::kCalls).empty()) device.time_driver();
    const dispatch::Settings settings = dispatch::read_settings(device.properties().keeps_sessions_apart);
    Server server(device, journal, printf, chosen_policy(), settings, std::move(opener));
    server.keep_faults_in(files.fault);
    if (takeover_wanted()) server.keep_record_in(files.record);
    server.neighbours().are_in(files.directory);
    server.addresses().share(files.directory + "/addresses");
    if (protocol::is_strict_key(options.key)) server.serve_one_tenant();
    if (options.users) server.serve_users(*options.users);
    start_recording(server);
    log_line(fmt::format("serving {} as {}", device.properties().name, options.key));
    if (device.dumps_faults()) log_line(fmt::format("a fault of the GPU is dumped into {}", files.core_dump));
    Listener listener(files, &server, "");
    if (options.users) listener.serve_users(*options.users);
    const bool opened = successor ? listener.go_on(successor->listening(), error) : listener.open(error);
    if (!opened) return fail(error);
    const std::unique_ptr<Standby> standby = expect_takeover(options, server, listener, lock);
    if (successor) {
        successor->apply(server);
        successor->take_sessions(server, listener);
    }
    const bool clean = listener.run();
    // A lost context, or a driver call that never returns, would block the destructors below.
    if (!clean) _exit(0);
    return 0;
}

// Without a device the server runs for a short time to report the reason to programs that wait for it.
int serve(const Options& options, const Files& files, const std::vector<std::string>& kept, int lock) {
    device::ask_for_short_turns();  // before the first thread starts
    Thread::log_with([](const std::string& line) { log_line(line); });
    DevicePrintf device_printf;
    if (!device_printf.redirect_stdout()) return fail("stdout cannot be redirected");
    journal::Writer journal(files.journal);
    if (!journal.error().empty()) log_line("no journal: " + journal.error());
    for (const std::string& line : kept) log_line(line);

    std::string error;
    std::string notice;
    std::unique_ptr<device::Device> device =
        device::open_device(options.key, wants_core_dumps(files) ? files.core_dump : "", notice, error);
    if (!notice.empty()) log_line(notice);
    if (device) {
        if (const std::string line = start_keeper(*device); !line.empty()) log_line(line);
        return serve_device(options, files, *device, device_printf, journal, lock, nullptr);
    }
    log_line("no device: " + error);
    Listener listener(files, nullptr, "the server has no device: " + error);
    if (options.users) listener.serve_users(*options.users);
    if (!listener.open(error)) return fail(error);
    if (!listener.run()) _exit(0);
    return 1;
}

// The administrator's file alone: no user's counts for the others.
settings::Config system_config() { return settings::Config({settings::read_file(settings::system_file())}); }

// The GPU's UUID as CUDA_VISIBLE_DEVICES wants it; empty: the key is none.
std::string gpu_of_key(const std::string& key) {
    const auto is_digit = [](char each) { return std::isxdigit(static_cast<unsigned char>(each)) != 0; };
    if (key.size() != 32 || !std::all_of(key.begin(), key.end(), is_digit)) return "";
    return fmt::format("GPU-{}-{}-{}-{}-{}", key.substr(0, 8), key.substr(8, 4), key.substr(12, 4),
                       key.substr(16, 4), key.substr(20));
}

// False: the server must not start, and the log says why. A mistake in the administrator's file could grant
// what was not meant.
bool begin_system(Options& options, const settings::Config& config, std::optional<Users>& users) {
    for (const std::string& problem : config.problems()) log_line(problem);
    if (!config.problems().empty())
        return fail("a system's server does not start with mistakes in its settings"), false;
    umask(077);
    users.emplace(settings::read_grants(settings::system_file()));
    options.users = &*users;
    options.daemonize = false;
    // Users' programs come and go; systemd ends it.
    if (settings::text_of(settings::Id::kIdleSeconds).empty()) settings::set(settings::Id::kIdleSeconds, "0");
    const char* visible = environment::kVisibleDevices;
    if (const std::string gpu = gpu_of_key(options.key); !gpu.empty() && !std::getenv(visible))
        setenv(visible, gpu.c_str(), 1);
    log_line("serving all users of the group of " + std::string(protocol::system_folder()) +
             "; sources that programs give to NVRTC are not compiled here");
    return true;
}

// For device/cuda/short_gaps.h.
int make_context(const Options& options) {
    std::string error, notice;
    const std::unique_ptr<device::Device> device = device::open_device(options.key, "", notice, error);
    return device ? 0 : fail("no context: " + error);
}

// Waits for a fault of the server that started this process, and goes on in its place.
int stand_by(const Options& options, const Files& files) {
    Successor successor(options.standby);
    device::ask_for_short_turns();
    Thread::log_with([](const std::string& line) { log_line(line); });
    DevicePrintf device_printf;
    if (!device_printf.redirect_stdout()) return fail("stdout cannot be redirected");
    std::string error, notice;
    const std::unique_ptr<device::Device> device = device::open_device(options.key, "", notice, error);
    if (!device) return fail("the standby has no device: " + error);
    std::unique_ptr<jit::Opener> opener = make_opener(*device, log_line);
    if (!successor.begin(*device) || !successor.await()) return 0;
    // The log and the journal of the first process stay as those of the server before this one.
    keep_generation(files);
    if (!log_to(files.log)) return fail("cannot write " + files.log);
    journal::Writer journal(files.journal);
    if (!journal.error().empty()) log_line("no journal: " + journal.error());
    log_line(successor.crashed() ? "this process takes over from one that " + successor.how_it_ended()
                                 : "this process takes over from one whose context a fault has lost");
    log_line(line_about_keeper(device->physical_memory().keeper_pid()));
    return serve_device(options, files, *device, device_printf, journal, successor.lock(), &successor,
                        std::move(opener));
}

}  // namespace

}  // namespace smt::runtime::server

int main(int count, char** arguments) {
    using namespace smt::runtime::server;
    prctl(PR_SET_NAME, "smtd");  // of a process of /proc/self/exe it would be "exe"
    Options options;
    if (count == 2 &&
        (arguments[1] == std::string_view("--help") || arguments[1] == std::string_view("-h"))) {
        fmt::print("{}", kUsage);
        return 0;
    }
    if (!parse(count, arguments, options)) {
        fmt::print(stderr, "{}", kUsage);
        return 2;
    }
    Files files;
    std::string error;
    const bool found =
        options.system ? find_system_files(options.key, files, error) : find_files(options.key, files, error);
    if (!found) return fail(error);
    if (options.daemonize && !go_to_background()) return fail(std::strerror(errno));
    // Reset results for attributes inherited from the starter. A server started by hand in the foreground
    // keeps them.
    std::vector<std::string> kept;
    if (options.daemonize) kept = reset_process();
    const smt::settings::Config config = options.system ? system_config() : smt::settings::Config::read();
    config.apply();
    std::optional<Users> users;
    if (options.system && !begin_system(options, config, users)) return 1;
    const bool strict = smt::protocol::is_strict_key(options.key);
    for (const smt::settings::Id each : smt::protocol::kOfSharedServers)
        if (strict) smt::settings::unset(each);
    for (const std::string& problem : config.problems()) kept.push_back(problem + "; the default is used");
    block_signals();
    try {
        if (options.make_context) return make_context(options);
        if (options.standby >= 0) return stand_by(options, files);
    } catch (const std::exception& why) {
        return fail(fmt::format("this process cannot go on: {}", why.what()));
    }

    int lock_file = -1;
    const Lock lock = take_lock(files, error, &lock_file);
    if (lock == Lock::kOtherServer) return 0;
    if (lock == Lock::kFailed) return fail(error);
    // From here on this process is the server of this key and owns these files.
    if (strict) forget_strict_servers(files.directory);
    if (const std::string crash = keep_generation(files); !crash.empty()) kept.push_back(crash);
    if (options.daemonize && !log_to(files.log)) return fail("cannot write " + files.log);
    try {
        return serve(options, files, kept, lock_file);
    } catch (const std::exception& why) {
        return fail(fmt::format("the server cannot start: {}", why.what()));
    }
}
