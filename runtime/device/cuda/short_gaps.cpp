#include "runtime/device/cuda/short_gaps.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <string>
#include <utility>

extern char** environ;

namespace smt::runtime::device {

namespace {

using Clock = std::chrono::steady_clock;

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

ShortGaps::~ShortGaps() {
    {
        const std::lock_guard lock(mutex_);
        over_ = true;
    }
    changed_.notify_all();
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
    if (graphs_ == 1 && !thread_.start({"short gaps", {}}, [this] { run(); }).empty()) return;
    changed_.notify_all();
}

void ShortGaps::run() {
    uint64_t seen = 0;
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
        const bool made = make_();
        lock.lock();
        if (!made) return;
        changed_.wait_for(lock, times_.between, [&] { return over_; });
    }
}

bool make_context_in_another_process(const std::string& key) {
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
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return false;
    return status == 0;
}

}  // namespace smt::runtime::device
