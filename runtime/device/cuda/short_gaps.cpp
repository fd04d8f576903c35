#include "runtime/device/cuda/short_gaps.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <string>
#include <thread>

extern char** environ;

namespace smt::runtime::device {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostFailures = 3;
constexpr auto kHelperPatience =
    std::chrono::seconds(20);  // a context takes 0.2 s, and longer beside many others
constexpr auto kHelperPoll = std::chrono::milliseconds(10);

// Written before any other thread is there.
ShortGaps* watcher = nullptr;
DriverApi unwatched;

CUresult told(CUresult status) {
    if (status == CUDA_SUCCESS) watcher->instantiated();
    return status;
}

template <auto member>
struct Watched;

template <typename... Arguments, CUresult (*DriverApi::*member)(Arguments...)>
struct Watched<member> {
    static CUresult call(Arguments... arguments) { return told((unwatched.*member)(arguments...)); }
    static void put_in(DriverApi& driver) {
        if (driver.*member) driver.*member = call;
    }
};

}  // namespace

void ShortGaps::end() {
    {
        const std::lock_guard lock(mutex_);
        over_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void ShortGaps::watch(DriverApi& driver) {
    watcher = this;
    unwatched = driver;
    Watched<&DriverApi::cuGraphInstantiate_v2>::put_in(driver);
    Watched<&DriverApi::cuGraphInstantiateWithFlags>::put_in(driver);
    Watched<&DriverApi::cuGraphInstantiateWithParams>::put_in(driver);
}

// Without a thread gaps stay as they are.
void ShortGaps::instantiated() {
    const std::lock_guard lock(mutex_);
    ++graphs_;
    if (graphs_ == 1 && !over_ && !thread_.start({"short gaps", {}}, [this] { run(); }).empty()) return;
    changed_.notify_all();
}

void ShortGaps::run() {
    uint64_t seen = 0;
    int failures = 0;
    const auto news = [&] { return over_ || graphs_ != seen; };
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, news);
        const Clock::time_point longest = Clock::now() + times_.longest;
        do {
            seen = graphs_;
        } while (changed_.wait_for(lock, times_.quiet, news) && !over_ && Clock::now() < longest);
        if (over_) return;
        lock.unlock();
        const bool made = make_([this] {
            const std::lock_guard over(mutex_);
            return over_;
        });
        lock.lock();
        failures = made ? 0 : failures + 1;
        if (failures == kMostFailures) return;
        changed_.wait_for(lock, times_.between, [&] { return over_; });
    }
}

bool make_context_in_another_process(const std::string& key, const ShortGaps::Over& over) {
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    for (const int each : {0, 1, 2}) posix_spawn_file_actions_addopen(&files, each, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_addclosefrom_np(&files, 3);
    std::string program = "smtd", flag_key = "--key", name = key, flag = "--make-context";
    char* const arguments[] = {program.data(), flag_key.data(), name.data(), flag.data(), nullptr};
    pid_t pid = -1;
    const int failed = posix_spawn(&pid, "/proc/self/exe", &files, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed) return false;
    const Clock::time_point end = Clock::now() + kHelperPatience;
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        std::this_thread::sleep_for(kHelperPoll);
        if (Clock::now() < end && !over()) continue;
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        return false;
    }
    return status == 0;
}

}  // namespace smt::runtime::device
