#include "runtime/server/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace smt::runtime::server {

namespace {

constexpr rlim_t kFiles = 65'536;              // a session has some ten
constexpr size_t kStackBytes = 8u << 20;       // per thread; glibc would use the inherited RLIMIT_STACK
constexpr unsigned long kTimerSlack = 50'000;  // ns, the kernel's default
constexpr int kMostProcessors = 8192;

struct Limit {
    int resource;
    const char* name;
    rlim_t least;  // minimum for a server; a lower limit is reported
};
constexpr Limit kLimits[] = {
    {RLIMIT_NOFILE, "RLIMIT_NOFILE", 4096},        {RLIMIT_NPROC, "RLIMIT_NPROC", 1024},
    {RLIMIT_AS, "RLIMIT_AS", RLIM_INFINITY},       {RLIMIT_DATA, "RLIMIT_DATA", RLIM_INFINITY},
    {RLIMIT_FSIZE, "RLIMIT_FSIZE", RLIM_INFINITY}, {RLIMIT_CPU, "RLIMIT_CPU", RLIM_INFINITY},
    {RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK", 0},         {RLIMIT_RTTIME, "RLIMIT_RTTIME", 0},
};

void raise_limit(const Limit& limit, std::vector<std::string>& kept) {
    rlimit now{};
    if (getrlimit(limit.resource, &now) != 0) return;
    rlimit wanted = now;
    if (limit.resource == RLIMIT_NOFILE && wanted.rlim_max < kFiles) wanted.rlim_max = kFiles;
    if (limit.least == RLIM_INFINITY) wanted.rlim_max = RLIM_INFINITY;  // takes effect with privileges only
    wanted.rlim_cur = wanted.rlim_max;
    if (setrlimit(limit.resource, &wanted) != 0) {
        wanted = {now.rlim_max, now.rlim_max};
        setrlimit(limit.resource, &wanted);
    }
    if (wanted.rlim_cur < limit.least)
        kept.push_back(fmt::format(
            "{} is {}, inherited from what started the server; a server started by hand has another one",
            limit.name, wanted.rlim_cur));
}

void reset_scheduling(std::vector<std::string>& kept) {
    const sched_param none{};
    if (sched_getscheduler(0) != SCHED_OTHER && sched_setscheduler(0, SCHED_OTHER, &none) != 0)
        kept.push_back(fmt::format("the scheduling class stays that of what started the server: {}",
                                   std::strerror(errno)));
    errno = 0;
    const int nice = getpriority(PRIO_PROCESS, 0);
    if (errno == 0 && nice != 0 && setpriority(PRIO_PROCESS, 0, 0) != 0)
        kept.push_back(fmt::format("niceness stays {}, that of what started the server: {}", nice,
                                   std::strerror(errno)));
    cpu_set_t* all = CPU_ALLOC(kMostProcessors);
    if (all) {  // the kernel intersects the mask with the machine and the control group
        std::memset(all, 0xff, CPU_ALLOC_SIZE(kMostProcessors));
        if (sched_setaffinity(0, CPU_ALLOC_SIZE(kMostProcessors), all) != 0)
            kept.push_back(fmt::format("the processors stay those of what started the server: {}",
                                       std::strerror(errno)));
        CPU_FREE(all);
    }
    syscall(SYS_set_mempolicy, 0 /* MPOL_DEFAULT */, nullptr, 0);
    syscall(SYS_ioprio_set, 1 /* IOPRIO_WHO_PROCESS */, 0, 0);
    prctl(PR_SET_TIMERSLACK, kTimerSlack);
}

void reset_signals() {
    // Fails without effect for signals with a fixed action.
    for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
}

void reset_oom_score(std::vector<std::string>& kept) {
    const int file = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    char now[16] = {};
    const bool other = ::read(file, now, sizeof now - 1) > 0 && std::strcmp(now, "0\n") != 0;
    if (other && write(file, "0", 1) != 1)
        kept.push_back(fmt::format("oom_score_adj stays {}: {}", std::atoi(now), std::strerror(errno)));
    close(file);
}

}  // namespace

uint64_t file_limit() {
    rlimit files{};
    return getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : 0;
}

std::vector<std::string> reset_process() {
    std::vector<std::string> kept;
    reset_signals();
    umask(077);
    for (const Limit& limit : kLimits) raise_limit(limit, kept);
    pthread_attr_t threads;
    pthread_attr_init(&threads);
    pthread_attr_setstacksize(&threads, kStackBytes);
    pthread_setattr_default_np(&threads);
    pthread_attr_destroy(&threads);
    reset_scheduling(kept);
    reset_oom_score(kept);
    prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
    return kept;
}

}  // namespace smt::runtime::server
