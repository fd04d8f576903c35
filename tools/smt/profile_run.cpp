// See profile_run.h.
#include "tools/smt/profile_run.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "runtime/journal/journal.h"
#include "runtime/profiles/plan.h"
#include "runtime/protocol/environment.h"
#include "tools/smt/command.h"
#include "tools/smt/control.h"
#include "tools/smt/places.h"
#include "tools/smt/profile_rows.h"

namespace smt::tools {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using profiler::Key;
using profiler::Profile;

namespace {

constexpr auto kLook = 100ms;        // at a child, a server, the store
constexpr auto kPatience = 30s;      // for a server to leave
constexpr uint32_t kStopsOnly = 2147483648u;   // SMT_STRESS: stops, and nothing else
constexpr int kFruitlessRuns = 2;    // in a row, and no more are made

// A runtime folder that goes when this does, and the settings that make a server there serve one measurement.
class Folder {
public:
    Folder() {
        std::string name = (fs::temp_directory_path() / "smt-profile-XXXXXX").string();
        if (!::mkdtemp(name.data())) throw Failure("cannot make a folder in " + fs::temp_directory_path().string() + ": " + std::strerror(errno));
        path_ = name;
        ::setenv(environment::kRuntimeDir, path_.c_str(), 1);
        ::setenv(environment::kPolicy, "fifo", 1);
        ::unsetenv(environment::kRecord);
    }
    ~Folder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    std::string output() const { return path_ + "/output"; }

private:
    std::string path_;
};

template <class Value>
Value take(profiler::Result<Value> result) {
    if (auto* problem = std::get_if<profiler::Problem>(&result)) throw Failure(problem->text);
    return std::move(std::get<Value>(result));
}

std::string last_lines(const std::string& path) {
    constexpr size_t kMost = 2000;
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    const std::string all = text.str();
    return all.size() > kMost ? all.substr(all.size() - kMost) : all;
}

// What is said while something runs: a bar, and how long it will take.
class Progress {
public:
    explicit Progress(std::string what) : what_(std::move(what)), begun_(Clock::now()), terminal_(::isatty(STDERR_FILENO)) {}
    // done: 0 to 1; below 0: nobody knows.
    void show(double done) {
        if (!terminal_) return;
        constexpr int kBar = 30;
        const double seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
        std::string line = fmt::format("{:<28}", what_);
        if (done >= 0) {
            const int full = static_cast<int>(done * kBar);
            line += fmt::format("[{:<{}}] {:3.0f} %", std::string(static_cast<size_t>(full), '#'), kBar, done * 100);
        }
        line += fmt::format("  {:.0f} s", seconds);
        if (done > 0.02 && done < 1) line += fmt::format(", {:.0f} s left", seconds * (1 - done) / done);
        fmt::print(stderr, "\r{}\033[K", line);
    }
    void end(const std::string& result) {
        const double seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
        fmt::print(stderr, "{}{:<28}{} ({:.1f} s)\n", terminal_ ? "\r\033[K" : "", what_, result, seconds);
    }

private:
    const std::string what_;
    const Clock::time_point begun_;
    const bool terminal_;
};

using Tick = std::function<void()>;

int run_once(const ProfileRequest& request, const Folder& folder, const std::string& profile, const std::string& stress, const Tick& tick) {
    std::vector<std::string> words = {own_directory() + "/smt", "run"};
    if (!request.device.empty()) words.insert(words.end(), {"--device", request.device});
    if (!stress.empty()) words.insert(words.end(), {"--stress", stress});
    words.push_back("--");
    words.insert(words.end(), request.command.begin(), request.command.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t child = ::fork();
    if (child < 0) throw Failure(std::string("cannot start a process: ") + std::strerror(errno));
    if (child == 0) {
        if (profile.empty()) ::unsetenv(environment::kProfile);
        else ::setenv(environment::kProfile, profile.c_str(), 1);
        const int output = ::open(folder.output().c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (output >= 0) ::dup2(output, STDOUT_FILENO), ::dup2(output, STDERR_FILENO);
        ::execv(argv[0], argv.data());
        ::_exit(127);
    }
    int status = 0;
    for (auto next = Clock::now(); ::waitpid(child, &status, WNOHANG) == 0; std::this_thread::sleep_for(kLook / 10)) {
        if (Clock::now() < next) continue;
        next = Clock::now() + kLook;
        tick();
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// All that it learnt is in the store then. Its notes about measurements, each once.
void end_servers(std::set<std::string>& said) {
    for (const std::string& key : keys_with(".sock")) {
        const auto answer = ask_server(key, protocol::ControlKind::kStop);
        if (!answer) continue;
        wait_for_end(answer->server_pid, kPatience);
        runtime::journal::Reader journal(path_of(key, ".journal"));
        journal.read(0, [&](const runtime::journal::Entry& entry) {
            const std::string text(journal.name(entry.text));
            const bool ours = text.starts_with("counters") || text.starts_with("kernel times") || text.starts_with("profiles of kernels");
            if (entry.kind == runtime::journal::Kind::kNote && ours && said.insert(text).second) fmt::print(stderr, "  {}\n", text);
        });
    }
}

class Measurement {
public:
    Measurement(const ProfileRequest& request, profiler::Store& store) : request_(request), store_(store) {
        for (Profile& each : take(store_.list())) before_.emplace(each.key, std::move(each));
    }

    std::vector<Profile> run() {
        once("times", "times");
        if (ours().empty()) throw Failure("the program launched no kernel by way of smt: " + last_lines(folder_.output()));
        if (request_.counters) once("counters", "counters");
        if (request_.sweep) {
            repeat("sweep", "sweep", "", [this] { return swept(); });
            int seed = 0;
            if (request_.stops) repeat("stops", "", "stops", [this] { return stopped(); }, &seed);
        }
        for (const Profile& fitted : fitted_durations(take(store_.list()))) {
            if (auto problem = store_.record(fitted)) throw Failure(problem->text);
        }
        return ours();
    }

private:
    // Those that are not as they were.
    std::vector<Profile> ours() {
        std::vector<Profile> all = take(store_.list());
        std::erase_if(all, [&](const Profile& each) {
            if (touched_.contains(each.key)) return false;
            const auto found = before_.find(each.key);
            const bool same = found != before_.end() && found->second == each;
            if (!same) touched_.insert(each.key);
            return same;
        });
        return all;
    }

    void go(const std::string& profile, const std::string& stress, const Tick& tick) {
        const int code = run_once(request_, folder_, profile, stress, tick);
        end_servers(said_);
        if (code != 0) throw Failure(fmt::format("the program ended with {} while it was measured:\n{}", code, last_lines(folder_.output())));
    }

    void once(const std::string& name, const std::string& profile) {
        Progress progress(name);
        go(profile, "", [&] { progress.show(-1); });
        progress.end(fmt::format("{} kernels", ours().size()));
    }

    void repeat(const std::string& name, const std::string& profile, const std::string& stress, const std::function<double()>& done, int* seed = nullptr) {
        Progress progress(name);
        double reached = done();
        int runs = 0;
        for (int fruitless = 0; reached < 1 && runs < request_.most_runs && fruitless < kFruitlessRuns; ++runs) {
            go(profile, stress.empty() ? "" : std::to_string(kStopsOnly + static_cast<uint32_t>(++*seed)), [&] { progress.show(done()); });
            const double now = done();
            fruitless = now > reached ? 0 : fruitless + 1;
            reached = now;
        }
        progress.end(fmt::format("{:.0f} % in {} runs", reached * 100, runs));
    }

    // 0 to 1, over the managed kernels; 1 if there are none.
    double part(const std::function<std::pair<int64_t, int64_t>(const Profile&)>& of) {
        int64_t have = 0, want = 0;
        for (const Profile& each : ours()) {
            const auto managed = each.coefficients.find("managed");
            if (managed == each.coefficients.end() || managed->second == 0 || !each.resources) continue;
            const auto [has, wants] = of(each);
            have += std::min(has, wants);
            want += wants;
        }
        return want ? static_cast<double>(have) / static_cast<double>(want) : 1;
    }

    double swept() {
        return part([](const Profile& profile) {
            int64_t have = 0, want = 0;
            const int sms = static_cast<int>(profile.coefficients.at("device.multiprocessors"));
            const int most = static_cast<int>(profile.resources->most_ctas_per_sm);
            for (const profiler::Placement& place : runtime::profiles::placements(sms, most)) {
                const auto found = profile.times.find(place);
                const int64_t wanted = runtime::profiles::samples_wanted(place, sms, most);
                have += found == profile.times.end() ? 0 : std::min(found->second.launches, wanted);
                want += wanted;
            }
            return std::pair{have, want};
        });
    }
    double stopped() {
        return part([this](const Profile& profile) { return std::pair{profile.preemption.stops, request_.stops}; });
    }

    const ProfileRequest& request_;
    profiler::Store& store_;
    Folder folder_;
    std::map<Key, Profile> before_;
    std::set<Key> touched_;
    std::set<std::string> said_;
};

}  // namespace

std::vector<Profile> measure_program(const ProfileRequest& request, profiler::Store& store) { return Measurement(request, store).run(); }

}  // namespace smt::tools
