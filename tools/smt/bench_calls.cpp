// See bench_calls.h. The program runs once, on a server of its own that times its calls.
#include "tools/smt/bench_calls.h"

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>

#include "runtime/settings/config.h"
#include "runtime/settings/read.h"
#include "tools/smt/calls_view.h"
#include "tools/smt/measuring_server.h"

namespace smt::tools {

namespace {

constexpr size_t kRows = 20;  // of a table, unless --all

double seconds_of(const std::function<void()>& what) {
    const auto begun = std::chrono::steady_clock::now();
    what();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

// Without smt, on the GPU directly.
void run_native(const Arguments& command) {
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    const pid_t child = ::fork();
    if (child < 0) throw Failure(std::string("cannot start a process: ") + std::strerror(errno));
    if (child == 0) {
        ::execvp(argv[0], argv.data());
        fmt::print(stderr, "smt bench calls: cannot run {}: {}\n", argv[0], std::strerror(errno));
        ::_exit(127);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        throw Failure("the program failed without smt, as --native wants it first");
}

uint64_t parse_seconds(const std::string& text) {
    uint64_t seconds = 0;
    const settings::Takes& takes = settings::setting(settings::Id::kCallsAfter).takes;
    if (!settings::read_number(text, takes.least, takes.most, &seconds))
        throw Misuse("--after wants a number of seconds");
    return seconds;
}

std::string read_whole(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

void write_whole(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    if (!(file << text << std::flush)) throw Failure("cannot write " + path);
}

}  // namespace

int bench_calls(const Arguments& arguments) {
    const Options options = parse_options(arguments, {"--native", "--all"}, {"--device", "--json", "--after"},
                                          Operands::kCommandLine);
    if (options.operands.empty()) throw Misuse("which program?");
    const std::string* json = options.value("--json");
    if (json) write_whole(*json, "");  // rather now than after the program
    const uint64_t after = options.has("--after") ? parse_seconds(*options.value("--after")) : 0;
    const std::string policy(settings::text_of(settings::Id::kPolicy));
    CallsWall wall;
    if (options.has("--native")) wall.native = seconds_of([&] { run_native(options.operands); });

    MeasuringServer server;
    // The user's server has it, too, while MeasuringServer's standard lets every launch pass.
    settings::set(settings::Id::kPolicy,
                  policy.empty() ? settings::setting(settings::Id::kPolicy).initial.text : policy);
    const std::string file = server.file("calls");
    settings::set(settings::Id::kCalls, file);
    settings::set(settings::Id::kCallsAfter, std::to_string(after));
    MeasuringServer::Program program{options.operands};
    if (const std::string* device = options.value("--device")) program.device = *device;
    program.shows = true;
    wall.under_smt = seconds_of([&] { server.run({program}, "", [] {}); });
    const CallsReport report = read_calls(read_whole(file));
    if (report.lanes.empty())
        throw Failure("the program made no CUDA call by way of smt" +
                      (after ? fmt::format(" after the first {} s of a thread", after) : ""));
    if (json) write_whole(*json, calls_json(report, wall));
    fmt::print("\n{}", calls_text(report, wall, options.has("--all") ? 0 : kRows));
    return 0;
}

}  // namespace smt::tools
