// bench_remoting: what does it cost a program that its driver calls are carried out in smtd?
//
// This process touches no GPU. In each round it starts itself as a child for every group of
// metrics, natively and preloaded in turn (which one is first changes from round to round), and
// collects `NAME VALUE` lines. Every sample goes out as a JSON line, the table comes last. The
// server is started before the rounds and is warm, as it is for a user's second program.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "runtime/protocol/handshake.h"
#include "tools/bench/remoting/remoting.h"

namespace smt::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Samples = std::map<std::string, std::vector<double>>;

// What is good enough, of the medians: '<' at most, '>' at least that ratio smt / native; '=' at most
// that figure, whatever native does; '+' at most that much more than native; ' ' for information.
struct Target {
    const char* metric;
    char sense;
    double limit;

    bool met(double native, double smt) const {
        switch (sense) {
            case '<':
                return smt <= limit * native;
            case '>':
                return smt >= limit * native;
            case '=':
                return smt <= limit;
            case '+':
                return smt <= native + limit;
            default:
                return true;
        }
    }
};
constexpr Target kTargets[] = {
    {"launch_cpu_us", '=', 0.5},
    {"launch_sync_us", '+', 3},
    {"million_launches_per_s", '>', 0.95},
    {"one_thread_launches_per_s", ' ', 0},
    {"four_threads_launches_per_s", '>', 0.95},
    {"four_threads_scaling", '>', 0.95},
    {"pageable_to_1MiB_GBps", '>', 1.0},
    {"pageable_from_1MiB_GBps", '>', 1.0},
    {"pageable_to_64MiB_GBps", '>', 1.0},
    {"pageable_from_64MiB_GBps", '>', 1.0},
    {"pageable_to_1GiB_GBps", '>', 1.0},
    {"pageable_from_1GiB_GBps", '>', 1.0},
    {"pinned_to_1MiB_GBps", '>', 0.95},
    {"pinned_from_1MiB_GBps", '>', 0.95},
    {"pinned_to_64MiB_GBps", '>', 0.95},
    {"pinned_from_64MiB_GBps", '>', 0.95},
    {"pinned_to_1GiB_GBps", '>', 0.95},
    {"pinned_from_1GiB_GBps", '>', 0.95},
    {"malloc_free_256B_us", '=', 15},
    {"malloc_free_1MiB_us", '=', 15},
    {"malloc_free_64MiB_us", '=', 15},
    {"startup_s", '<', 0.6},
    {"gpu_memory_per_client_MiB", '=', 16},
};
constexpr const char* kGroups[] = {"launch", "million", "threads", "pageable", "pinned", "malloc"};
constexpr int kStartups = 5;
constexpr int kHolders = 8;

struct Options {
    std::string self, preload, runtime, only;
    int rounds = 7;
    double budget = 540;
    int child_timeout = 60;
    FILE* json = stdout;
};

struct Process {
    pid_t pid = -1;
    int in = -1, out = -1;
    std::string text;
};

Process start(const Options& options, const char* group, bool preloaded) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return {};
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        unsetenv("LD_PRELOAD");
        if (preloaded) {
            setenv("LD_PRELOAD", options.preload.c_str(), 1);
            setenv("SMT_RUNTIME_DIR", options.runtime.c_str(), 1);
            setenv("SMT_IDLE_SECONDS", "600", 1);
        }
        execl(options.self.c_str(), options.self.c_str(), "--child", group, nullptr);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    return {pid, in[1], out[0], {}};
}

bool has_ended(const Process& process) {
    siginfo_t information = {};
    return waitid(P_PID, static_cast<id_t>(process.pid), &information, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           information.si_pid != 0;
}

// Reads until the child's output ends, holds "READY" (if asked), or time is up. A grandchild that
// kept the pipe does not hold it up.
bool read_output(Process& process, int timeout, bool until_ready) {
    const auto end = Clock::now() + std::chrono::seconds(timeout);
    char buffer[4096];
    while (Clock::now() < end) {
        if (until_ready && process.text.find("READY") != std::string::npos) return true;
        pollfd waiting = {process.out, POLLIN, 0};
        if (poll(&waiting, 1, 100) <= 0) {
            if (has_ended(process)) return !until_ready;
            continue;
        }
        const ssize_t got = read(process.out, buffer, sizeof buffer);
        if (got <= 0) return !until_ready;
        process.text.append(buffer, static_cast<size_t>(got));
    }
    return false;
}

// Ends the child (its standard input closes first); true if it left with 0.
bool finish(Process& process, bool in_time) {
    close(process.in);
    if (!in_time && process.pid > 0) kill(process.pid, SIGKILL);
    int status = -1;
    if (process.pid > 0) waitpid(process.pid, &status, 0);
    close(process.out);
    return in_time && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void record(const Options& options, Samples& samples, const char* side, int round, const std::string& metric,
            double value) {
    samples[metric].push_back(value);
    std::fprintf(options.json, "{\"round\":%d,\"side\":\"%s\",\"metric\":\"%s\",\"value\":%.9g}\n", round,
                 side, metric.c_str(), value);
    std::fflush(options.json);
}

void failure(const Options& options, const char* side, int round, const char* group) {
    std::fprintf(options.json, "{\"round\":%d,\"side\":\"%s\",\"group\":\"%s\",\"failed\":true}\n", round,
                 side, group);
    std::fflush(options.json);
}

void run_group(const Options& options, Samples& samples, const char* group, bool preloaded, int round) {
    const char* side = preloaded ? "smt" : "native";
    Process process = start(options, group, preloaded);
    const bool in_time = read_output(process, options.child_timeout, false);
    if (!finish(process, in_time)) failure(options, side, round, group);
    char name[64];
    double value;
    for (size_t at = 0, end; (end = process.text.find('\n', at)) != std::string::npos; at = end + 1)
        if (std::sscanf(process.text.substr(at, end - at).c_str(), "%63s %lf", name, &value) == 2)
            record(options, samples, side, round, name, value);
}

void run_startup(const Options& options, Samples& samples, bool preloaded, int round) {
    for (int i = 0; i < kStartups; ++i) {
        const auto begin = Clock::now();
        Process process = start(options, "startup", preloaded);
        const bool in_time = read_output(process, options.child_timeout, false);
        const bool right = finish(process, in_time);
        const double took = std::chrono::duration<double>(Clock::now() - begin).count();
        if (right)
            record(options, samples, preloaded ? "smt" : "native", round, "startup_s", took);
        else
            failure(options, preloaded ? "smt" : "native", round, "startup");
    }
}

double gpu_memory_used() {
    double used = -1;
    FILE* answer =
        popen("timeout -k 2 20 nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits", "r");
    if (answer == nullptr) return used;
    if (std::fscanf(answer, "%lf", &used) != 1) used = -1;
    pclose(answer);
    return used;
}

// The difference that eight idle clients make, each with a context and nothing else.
void run_memory(const Options& options, Samples& samples, bool preloaded, int round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    const double before = gpu_memory_used();
    std::vector<Process> holders;
    bool ready = before >= 0;
    for (int i = 0; i < kHolders; ++i) holders.push_back(start(options, "hold", preloaded));
    for (Process& holder : holders) ready &= read_output(holder, options.child_timeout, true);
    const double during = gpu_memory_used();
    for (Process& holder : holders) ready &= finish(holder, true);
    const char* side = preloaded ? "smt" : "native";
    if (ready && during >= 0)
        record(options, samples, side, round, "gpu_memory_per_client_MiB", (during - before) / kHolders);
    else
        failure(options, side, round, "hold");
}

// Returns how many sessions it has served: none means that the preloaded runs were native ones.
uint64_t stop_server(const Options& options) {
    uint64_t served = 0;
    DIR* folder = opendir(options.runtime.c_str());
    if (folder == nullptr) return served;
    while (dirent* entry = readdir(folder)) {
        const std::string path = options.runtime + "/" + entry->d_name;
        sockaddr_un address = {};
        address.sun_family = AF_UNIX;
        if (path.size() < 5 || path.substr(path.size() - 5) != ".sock" ||
            path.size() >= sizeof address.sun_path)
            continue;
        std::memcpy(address.sun_path, path.c_str(), path.size());
        const int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        protocol::StatusRequest request;
        request.kind = protocol::ControlKind::kStop;
        protocol::StatusReply reply;
        if (connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
            send(connection, &request, sizeof request, MSG_NOSIGNAL) > 0) {
            pollfd waiting = {connection, POLLIN, 0};
            if (poll(&waiting, 1, 3000) > 0 && recv(connection, &reply, sizeof reply, 0) == sizeof reply)
                served += reply.sessions_served;
        }
        close(connection);
    }
    closedir(folder);
    return served;
}

struct Spread {
    double low, median, high;
};

Spread spread(std::vector<double> samples) {
    std::sort(samples.begin(), samples.end());
    return {samples.front(), samples[samples.size() / 2], samples.back()};
}

bool print_table(Samples& native, Samples& smt) {
    bool all = true;
    std::printf("\n%-30s %-34s %-34s %7s %8s\n", "metric", "native median [min..max]",
                "smt median [min..max]", "ratio", "target");  // senses: see Target
    for (const Target& target : kTargets) {
        if (native[target.metric].empty() && smt[target.metric].empty()) continue;
        if (native[target.metric].empty() || smt[target.metric].empty()) {
            std::printf("%-30s only one side gave a result: FAIL\n", target.metric);
            all = false;
            continue;
        }
        const Spread a = spread(native[target.metric]), b = spread(smt[target.metric]);
        const double ratio = a.median != 0 ? b.median / a.median : 0;
        const bool pass = target.met(a.median, b.median);
        char left[64], right[64], limit[16] = "";
        std::snprintf(left, sizeof left, "%.5g [%.4g..%.4g]", a.median, a.low, a.high);
        std::snprintf(right, sizeof right, "%.5g [%.4g..%.4g]", b.median, b.low, b.high);
        if (target.sense != ' ') std::snprintf(limit, sizeof limit, "%c %.3g", target.sense, target.limit);
        std::printf("%-30s %-34s %-34s %7.3f %8s %s\n", target.metric, left, right, ratio, limit,
                    target.sense == ' ' ? ""
                    : pass              ? "PASS"
                                        : "FAIL");
        all &= pass;
    }
    return all;
}

int run(Options& options) {
    char runtime[] = "/tmp/smt-bench-XXXXXX";
    if (mkdtemp(runtime) == nullptr) return std::perror("bench_remoting: mkdtemp"), 1;
    options.runtime = runtime;
    signal(SIGPIPE, SIG_IGN);
    Samples native, smt, ignored;
    run_group(options, ignored, "startup", true, -1);  // starts the server
    run_group(options, ignored, "startup", false, -1);
    const auto begin = Clock::now();
    int rounds = 0;
    auto wanted = [&](const char* group) {
        return options.only.empty() || options.only.find(group) != std::string::npos;
    };
    auto out_of_time = [&] {
        return std::chrono::duration<double>(Clock::now() - begin).count() > options.budget;
    };
    for (int round = 0; round < options.rounds && !out_of_time(); ++round, ++rounds) {
        for (bool second : {false, true}) {
            const bool preloaded = second != (round % 2 == 1);
            Samples& samples = preloaded ? smt : native;
            if (wanted("startup")) run_startup(options, samples, preloaded, round);
            if (wanted("hold")) run_memory(options, samples, preloaded, round);
        }
        for (const char* group : kGroups) {
            for (bool second : {false, true}) {
                const bool preloaded = second != (round % 2 == 1);
                if (wanted(group) && !out_of_time())
                    run_group(options, preloaded ? smt : native, group, preloaded, round);
            }
        }
    }
    const uint64_t served = stop_server(options);
    const bool right = print_table(native, smt) && served > 0;
    std::printf("%d rounds in %.0f s, %llu sessions served by smtd%s\n", rounds,
                std::chrono::duration<double>(Clock::now() - begin).count(),
                static_cast<unsigned long long>(served),
                served > 0 ? "" : ": FAIL, the preloaded runs were native");
    std::string remove = "rm -rf " + options.runtime;
    (void)!system(remove.c_str());
    return right ? 0 : 1;
}

int usage() {
    std::printf(
        "bench_remoting [--rounds N] [--budget SECONDS] [--preload libsmt.so] [--json FILE]\n"
        "               [--only GROUP,GROUP...]   groups: launch million threads pageable pinned malloc "
        "startup hold\n");
    return 2;
}

}  // namespace
}  // namespace smt::bench

int main(int count, char** arguments) {
    using namespace smt::bench;
    if ((count == 3 || count == 4) && std::strcmp(arguments[1], "--child") == 0)
        return measure(arguments[2], count == 4 ? std::atoi(arguments[3]) : 1);
    Options options;
    char self[4096] = {};
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return 1;
    options.self = self;
    options.preload = options.self.substr(0, options.self.rfind('/')) + "/../lib/libsmt.so";
    for (int i = 1; i < count; ++i) {
        const std::string name = arguments[i];
        if (i + 1 >= count) return usage();
        const char* value = arguments[++i];
        if (name == "--rounds")
            options.rounds = std::atoi(value);
        else if (name == "--budget")
            options.budget = std::atof(value);
        else if (name == "--preload")
            options.preload = value;
        else if (name == "--only")
            options.only = value;
        else if (name == "--json")
            options.json = std::fopen(value, "w");
        else
            return usage();
    }
    if (options.json == nullptr) return std::perror("bench_remoting: --json"), 1;
    if (access(options.preload.c_str(), R_OK) != 0)
        return std::fprintf(stderr, "bench_remoting: no %s\n", options.preload.c_str()), 1;
    return run(options);
}
