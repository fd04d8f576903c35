// See measuring_server.h.
#include "tools/smt/measuring_server.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "runtime/journal/journal.h"
#include "runtime/profiles/plan.h"
#include "runtime/settings/config.h"
#include "tools/smt/command.h"
#include "tools/smt/control.h"
#include "tools/smt/places.h"

namespace smt::tools {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto kLook = 100ms;              // between two ticks
constexpr auto kServerLeaveTimeout = 30s;  // for a server to leave
constexpr auto kMercy = 5s;                // for a program that is told to end

std::optional<int> code_of(pid_t child) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == 0) return std::nullopt;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

MeasuringServer::MeasuringServer() {
    std::string name = (fs::temp_directory_path() / "smt-profile-XXXXXX").string();
    if (!::mkdtemp(name.data()))
        throw Failure("cannot make a folder in " + fs::temp_directory_path().string() + ": " +
                      std::strerror(errno));
    path_ = name;
    using settings::Id;
    settings::set(Id::kRuntimeDir, path_);
    settings::set(Id::kPolicy, "fifo");
    settings::set(Id::kRecord, "none");
    settings::set(Id::kIsolation, "shared");  // its programs meet at one server
    // It ends, even if the user's servers do not: there may be nothing left to stop it.
    settings::set(Id::kIdleSeconds, settings::setting(Id::kIdleSeconds).initial.text);
}

MeasuringServer::~MeasuringServer() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

std::string MeasuringServer::output(size_t program) const {
    return fmt::format("{}/output-{}", path_, program);
}

std::string MeasuringServer::printed(size_t program) const {
    constexpr size_t kMost = 2000;
    std::ifstream file(output(program));
    std::stringstream text;
    text << file.rdbuf();
    const std::string all = text.str();
    return all.size() > kMost ? all.substr(all.size() - kMost) : all;
}

int MeasuringServer::start(const Program& program, const std::string& profile,
                           const std::string& output) const {
    std::vector<std::string> words = {own_directory() + "/smt", "run"};
    if (!program.device.empty()) words.insert(words.end(), {"--device", program.device});
    if (!program.stress.empty()) words.insert(words.end(), {"--stress", program.stress});
    words.push_back("--");
    words.insert(words.end(), program.command.begin(), program.command.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t child = ::fork();
    if (child < 0) throw Failure(std::string("cannot start a process: ") + std::strerror(errno));
    if (child != 0) return child;
    if (profile.empty())
        ::unsetenv(settings::variable_of(settings::Id::kProfile));
    else
        settings::set(settings::Id::kProfile, profile);
    // What pairs get done is counted by the dispatcher's clock, and times alone are a simulated device's.
    if (profile == "pairs") settings::set(settings::Id::kSimDispatchClock, "1");
    const int file = program.shows ? -1 : ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file >= 0) ::dup2(file, STDOUT_FILENO), ::dup2(file, STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
}

void MeasuringServer::run(const std::vector<Program>& programs, const std::string& profile,
                          const std::function<void()>& tick) {
    std::vector<pid_t> running;  // 0: has ended
    const auto end_all = [&](int signal) {
        for (const pid_t each : running)
            if (each) ::kill(each, signal);
    };
    try {
        for (size_t i = 0; i < programs.size(); ++i)
            running.push_back(start(programs[i], profile, output(i)));
    } catch (const Failure&) {
        end_all(SIGKILL);
        throw;
    }
    std::optional<std::pair<size_t, int>> failed;  // the first program that has, and its code
    auto next = Clock::now(), killed = Clock::time_point::max();
    while (std::any_of(running.begin(), running.end(), [](pid_t each) { return each != 0; })) {
        std::this_thread::sleep_for(kLook / 10);
        for (size_t i = 0; i < running.size(); ++i) {
            const std::optional<int> code = running[i] ? code_of(running[i]) : std::nullopt;
            if (!code) continue;
            running[i] = 0;
            if (*code == 0 || failed) continue;
            failed = {i, *code};
            end_all(SIGTERM);
            killed = Clock::now() + kMercy;
        }
        if (Clock::now() >= killed) end_all(SIGKILL);
        if (Clock::now() < next) continue;
        next = Clock::now() + kLook;
        tick();
    }
    end_server();
    if (!failed) return;
    const std::string which = programs.size() == 1 ? "the program" : programs[failed->first].command.front();
    throw Failure(fmt::format("{} ended with {} while it was measured:\n{}", which, failed->second,
                              printed(failed->first)));
}

void MeasuringServer::end_server() {
    side_by_side_.clear();
    for (const std::string& key : keys_with(".sock")) {
        const auto answer = ask_server(key, protocol::ControlKind::kStop);
        if (!answer) continue;
        wait_for_end(answer->server_pid, kServerLeaveTimeout);
        runtime::journal::Reader journal(path_of(key, ".journal"));
        journal.read(0, [&](const runtime::journal::Entry& entry) {
            if (entry.kind != runtime::journal::Kind::kNote) return;
            const std::string text(journal.name(entry.text));
            if (text.starts_with(runtime::profiles::kSideBySide))
                side_by_side_ = text.substr(sizeof runtime::profiles::kSideBySide - 1);
            const bool ours = text.starts_with("counters") || text.starts_with("kernel times") ||
                              text.starts_with("profiles of kernels");
            if (ours && said_.insert(text).second) fmt::print(stderr, "  {}\n", text);
        });
    }
}

Progress::Progress(std::string what)
    : what_(std::move(what)), begun_(Clock::now()), terminal_(::isatty(STDERR_FILENO)) {}

void Progress::show(double done) {
    if (!terminal_) return;
    constexpr int kBar = 30;
    const double seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
    std::string line = fmt::format("{:<28}", what_);
    if (done >= 0) {
        const int full = static_cast<int>(done * kBar);
        line +=
            fmt::format("[{:<{}}] {:3.0f} %", std::string(static_cast<size_t>(full), '#'), kBar, done * 100);
    }
    line += fmt::format("  {:.0f} s", seconds);
    if (done > 0.02 && done < 1) line += fmt::format(", {:.0f} s left", seconds * (1 - done) / done);
    fmt::print(stderr, "\r{}\033[K", line);
}

void Progress::end(const std::string& result) {
    const double seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
    fmt::print(stderr, "{}{:<28}{} ({:.1f} s)\n", terminal_ ? "\r\033[K" : "", what_, result, seconds);
}

}  // namespace smt::tools
