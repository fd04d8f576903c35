// smt server: start, stop and look at servers by hand. Usually none of it is needed: the first
// program that runs under smt starts the server, which leaves when it has been idle.
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "runtime/protocol/runtime_folder.h"
#include "runtime/protocol/server_key.h"
#include "runtime/protocol/server_process.h"
#include "runtime/protocol/system_server.h"
#include "runtime/settings/read.h"
#include "tools/smt/command.h"
#include "tools/smt/control.h"
#include "tools/smt/device_choice.h"
#include "tools/smt/environment_check.h"
#include "tools/smt/gpus.h"
#include "tools/smt/places.h"

namespace smt::tools {
namespace {

using protocol::ControlKind;
using protocol::StatusReply;

constexpr std::chrono::seconds kStopTimeout{20};
constexpr std::chrono::milliseconds kStopPoll{20};

std::optional<StatusReply> status_of(const std::string& key) { return ask_server(key, ControlKind::kStatus); }

template <typename Condition>
bool wait_for(Condition condition) {
    auto deadline = std::chrono::steady_clock::now() + kStopTimeout;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::sleep_for(kStopPoll);
    }
    return true;
}

Gpu choose_gpu(const Options& options) {
    const std::string* number = options.value("--gpu");
    return pick_gpu(visible_gpus(choose_device(options, "smt server", "this server has")),
                    number ? *number : "0", "a GPU's number");
}

int start(const Options& options) {
    check_environment("smt server start");
    if (protocol::wanted_server(false) == protocol::Wanted::kSystem)
        throw Failure(
            "SMT_SYSTEM=1 asks for the system's server, which systemd starts: systemctl start smtd@KEY");
    std::string directory = runtime_directory();
    if (std::string problem = runtime_directory_problem(directory); !problem.empty())
        throw Failure("cannot use " + directory + ": " + problem);
    if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
        throw Failure("cannot make " + directory + ": " + std::strerror(errno));
    Gpu gpu = choose_gpu(options);
    if (auto running = status_of(gpu.key)) {
        fmt::print("server {} is running already, process {}\n", gpu.key, running->server_pid);
        return 0;
    }
    std::string program = find_server();
    if (program.empty())
        throw Failure("smtd is not in " + own_directory() + " (and SMT_SERVER names none): build it");
    std::optional<StatusReply> answer;
    int error = 0;
    const auto started = protocol::start_server_process(program.c_str(), gpu.key.c_str(),
                                                        gpu.visible.empty() ? nullptr : gpu.visible.c_str(),
                                                        path_of(gpu.key, ".log").c_str(), &error);
    if (started == protocol::ServerStart::kCannotRun)
        throw Failure("cannot run " + program + ": " + std::strerror(error));
    if (started == protocol::ServerStart::kRefused ||
        !wait_for([&] { return (answer = status_of(gpu.key)).has_value(); }))
        throw Failure("the server did not start; " + path_of(gpu.key, ".log") + " says why");
    fmt::print("server {} started, process {}, {}\n", gpu.key, answer->server_pid, answer->device);
    for (const std::string& key : keys_with(".sock"))
        if (is_of_system(key) && key.ends_with(":" + gpu.key))
            fmt::print("this user's programs use it from now on, and not the system's server of this GPU\n");
    return 0;
}

int stop(const Options&) {
    int stopped = 0;
    const std::vector<std::string> keys = keys_with(".sock");
    for (const std::string& key : keys) {
        // systemd has started it, and stops it; SMT_SYSTEM=1 asks it all the same.
        if (is_of_system(key) && protocol::wanted_server(false) != protocol::Wanted::kSystem) continue;
        auto answer = ask_server(key, ControlKind::kStop);
        if (!answer) continue;
        if (!wait_for_end(answer->server_pid, kStopTimeout))
            throw Failure(fmt::format("server {} (process {}) was asked to leave and did not", key,
                                      answer->server_pid));
        fmt::print("server {} stopped; {} sessions were open\n", key, answer->sessions);
        ++stopped;
    }
    if (!stopped)
        fmt::print("{}\n",
                   std::any_of(keys.begin(), keys.end(), is_of_system)
                       ? "no server of this user is running; systemctl stop smtd@KEY stops the system's"
                       : "no server is running");
    return 0;
}

void print_status(const std::string& key, const StatusReply& reply) {
    constexpr double kMiB = 1 << 20;
    fmt::print("server {}\n", key);
    fmt::print("  device    {}\n", reply.device);
    fmt::print("  process   {}, up {:.1f} s, protocol version {}{}\n", reply.server_pid,
               static_cast<double>(reply.uptime_ms) / 1000, reply.version,
               reply.version == protocol::kProtocolVersion ? "" : " (not this smt's!)");
    if (protocol::is_strict_key(key)) fmt::print("  isolation strict: a context of one tenant\n");
    fmt::print("  policy    {}\n", reply.policy[0] ? reply.policy : "-");
    fmt::print("  sessions  {} open with {} lanes, {} served\n", reply.sessions, reply.lanes,
               reply.sessions_served);
    if (reply.takes_over)
        fmt::print("  crash     {} of {} sessions would go on in another process\n", reply.carried,
                   reply.sessions);
    fmt::print("  launches  {}\n", reply.launches);
    fmt::print("  memory    {:.1f} MiB device, {:.1f} MiB host\n",
               static_cast<double>(reply.device_bytes) / kMiB, static_cast<double>(reply.host_bytes) / kMiB);
}

int status(const Options&) {
    int running = 0;
    for (const std::string& key : keys_with(".sock")) {
        auto reply = status_of(key);
        if (!reply) continue;  // a socket that a killed server left behind
        print_status(key, *reply);
        ++running;
    }
    if (!running) fmt::print("no server is running (looked in {})\n", runtime_directory());
    return 0;
}

int run_server(const Arguments& arguments) {
    if (arguments.empty()) throw Misuse("start, stop or status?");
    Arguments rest(arguments.begin() + 1, arguments.end());
    const std::string& what = arguments[0];
    if (what == "start") return start(parse_options(rest, {}, {"--device", "--gpu"}));
    if (what == "stop") return stop(parse_options(rest, {}, {}));
    if (what == "status") return status(parse_options(rest, {}, {}));
    throw Misuse("unknown '" + what + "': it is start, stop or status");
}

}  // namespace

const Command server_command = {"server", "smt server start [--device gpu|sim] [--gpu N] | stop | status",
                                "starts, stops and shows the server", run_server};

}  // namespace smt::tools
