// smtd: owns one GPU for the programs of one user. Usage: smtd [--key KEY] [--daemonize | --foreground]
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

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
#include "runtime/server/files.h"
#include "runtime/server/generations.h"
#include "runtime/server/keeping.h"
#include "runtime/server/listener.h"
#include "runtime/server/log.h"
#include "runtime/server/printf.h"
#include "runtime/server/process.h"
#include "runtime/server/server.h"
#include "runtime/settings/config.h"
#include "runtime/settings/read.h"
#include "runtime/thread/thread.h"

namespace smt::runtime::server {

namespace {

constexpr unsigned long kRecordMost = 256ul << 20;  // bytes of a recording

constexpr const char* kUsage =
    "usage: smtd [--key KEY] [--daemonize | --foreground]\n"
    "  --key KEY      names the GPU's files in the runtime directory (default: device)\n"
    "  --daemonize    return at once and serve in the background; stderr goes to the log file\n"
    "  --foreground   serve in this process (default)\n";

struct Options {
    std::string key = "device";
    bool daemonize = false;
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
bool wants_core_dumps(const Files& files) {
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

// Without a device the server runs for a short time to report the reason to programs that wait for it.
int serve(const Options& options, const Files& files, const std::vector<std::string>& kept) {
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
    std::unique_ptr<Server> server;
    if (device) {
        if (!settings::text_of(settings::Id::kCalls).empty()) device->time_driver();
        if (const std::string line = start_keeper(*device); !line.empty()) log_line(line);
        std::unique_ptr<schedule::Policy> policy = chosen_policy();
        const dispatch::Settings settings =
            dispatch::read_settings(device->properties().keeps_sessions_apart);
        server = std::make_unique<Server>(*device, journal, device_printf, std::move(policy), settings);
        server->keep_faults_in(files.fault);
        start_recording(*server);
        log_line(fmt::format("serving {} as {}", device->properties().name, options.key));
        if (device->dumps_faults())
            log_line(fmt::format("a fault of the GPU is dumped into {}", files.core_dump));
    } else {
        log_line("no device: " + error);
    }

    Listener listener(files, server.get(), "the server has no device: " + error);
    if (!listener.open(error)) return fail(error);
    bool clean = listener.run();
    // A lost context, or a driver call that never returns, would block the destructors below.
    if (!clean) _exit(0);
    return device ? 0 : 1;
}

}  // namespace

}  // namespace smt::runtime::server

int main(int count, char** arguments) {
    using namespace smt::runtime::server;
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
    if (!find_files(options.key, files, error)) return fail(error);
    if (options.daemonize && !go_to_background()) return fail(std::strerror(errno));
    // Reset results for attributes inherited from the starter. A server started by hand in the foreground
    // keeps them.
    std::vector<std::string> kept;
    if (options.daemonize) kept = reset_process();
    const smt::settings::Config config = smt::settings::Config::read();
    config.apply();
    for (const std::string& problem : config.problems()) kept.push_back(problem + "; the default is used");
    block_signals();

    Lock lock = take_lock(files, error);
    if (lock == Lock::kOtherServer) return 0;
    if (lock == Lock::kFailed) return fail(error);
    // From here on this process is the server of this key and owns these files.
    if (const std::string crash = keep_generation(files); !crash.empty()) kept.push_back(crash);
    if (options.daemonize && !log_to(files.log)) return fail("cannot write " + files.log);
    try {
        return serve(options, files, kept);
    } catch (const std::exception& why) {
        return fail(fmt::format("the server cannot start: {}", why.what()));
    }
}
