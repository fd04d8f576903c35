#include "runtime/jit/worker/confinement.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

namespace smt::runtime::jit {

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized =
    true;  // their shadow is larger than any limit, and they make system calls of their own
#else
constexpr bool kSanitized = false;
#endif

void limit(__rlimit_resource_t resource, rlim_t most) {
    const rlimit value{most, most};
    setrlimit(resource, &value);
}

// landlock.h of the oldest system that this builds on ends with its first version.
struct Ruleset {
    uint64_t files, network, scoped;
};
constexpr uint64_t kFilesOfVersion[] = {0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff};  // all that each knows
constexpr uint64_t kTcp = 3, kScopes = 3;
constexpr long kKnowsTcp = 4, kKnowsScopes = 6, kKnowsAllFiles = 5;

std::string landlock() {
    const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1) return fmt::format("Landlock ({})", std::strerror(errno));
    Ruleset rules{kFilesOfVersion[std::min(version, kKnowsAllFiles) - 1], version >= kKnowsTcp ? kTcp : 0,
                  version >= kKnowsScopes ? kScopes : 0};
    const size_t bytes = version >= kKnowsScopes ? sizeof rules
                         : version >= kKnowsTcp  ? 2 * sizeof(uint64_t)
                                                 : sizeof(uint64_t);
    const int ruleset = static_cast<int>(syscall(SYS_landlock_create_ruleset, &rules, bytes, 0));
    landlock_path_beneath_attr everywhere{};
    everywhere.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
    everywhere.parent_fd = open("/", O_PATH | O_CLOEXEC);
    const bool good =
        ruleset >= 0 && everywhere.parent_fd >= 0 &&
        syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &everywhere, 0) == 0 &&
        syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
    const int error = errno;
    if (everywhere.parent_fd >= 0) close(everywhere.parent_fd);
    if (ruleset >= 0) close(ruleset);
    return good ? "" : fmt::format("Landlock ({})", std::strerror(error));
}

#if defined(__x86_64__)

constexpr int kAllowed[] = {
    // files, read
    SYS_read, SYS_readv, SYS_pread64, SYS_lseek, SYS_close, SYS_stat, SYS_fstat, SYS_lstat, SYS_newfstatat,
    SYS_statx, SYS_statfs, SYS_fstatfs, SYS_access, SYS_faccessat, SYS_faccessat2, SYS_readlink,
    SYS_readlinkat, SYS_getcwd, SYS_chdir, SYS_getdents, SYS_getdents64, SYS_fcntl, SYS_dup, SYS_fadvise64,
    // what is open already: the socket, and /dev/null
    SYS_write, SYS_writev, SYS_recvfrom, SYS_sendto, SYS_poll, SYS_ppoll,
    // memory
    SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_mincore, SYS_brk,
    // threads and signals of its own
    SYS_futex, SYS_sched_yield, SYS_sched_getaffinity, SYS_sched_get_priority_min, SYS_sched_get_priority_max,
    SYS_sched_getparam, SYS_sched_getscheduler, SYS_set_robust_list, SYS_rseq, SYS_membarrier,
    SYS_set_tid_address, SYS_arch_prctl, SYS_exit, SYS_exit_group, SYS_rt_sigaction, SYS_rt_sigprocmask,
    SYS_rt_sigreturn, SYS_sigaltstack, SYS_pause, SYS_restart_syscall,
    // facts
    SYS_getpid, SYS_gettid, SYS_getppid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getrusage,
    SYS_getrlimit, SYS_sysinfo, SYS_uname, SYS_times, SYS_time, SYS_gettimeofday, SYS_clock_gettime,
    SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_getrandom};

class Filter {
public:
    Filter() {
        load(offsetof(seccomp_data, arch));
        unless(BPF_JEQ, AUDIT_ARCH_X86_64, SECCOMP_RET_KILL_PROCESS);
        load(offsetof(seccomp_data, nr));
        when(BPF_JGE, kX32, SECCOMP_RET_KILL_PROCESS);  // the same calls by other numbers
    }
    void allow(int call) { when(BPF_JEQ, static_cast<uint32_t>(call), SECCOMP_RET_ALLOW); }
    // If an argument has the value, or, with BPF_JSET, any of its bits; otherwise it is `refused`.
    void allow_if(int call, int argument, int test, std::vector<uint32_t> values, int refused) {
        judge(call, argument, test, values, SECCOMP_RET_ALLOW, error(refused));
    }
    void refuse_if(int call, int argument, int test, uint32_t value, int refused) {
        judge(call, argument, test, {value}, error(refused), SECCOMP_RET_ALLOW);
    }
    bool install() {
        answer(error(ENOSYS));
        const sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
    }

private:
    static constexpr uint32_t kX32 = 0x40000000;
    static uint32_t error(int number) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(number); }

    void load(size_t at) { code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(at))); }
    void answer(uint32_t what) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, what)); }
    void test(int how, uint32_t value, uint8_t if_so, uint8_t if_not) {
        code_.push_back(BPF_JUMP(static_cast<uint16_t>(BPF_JMP | how | BPF_K), value, if_so, if_not));
    }
    void when(int how, uint32_t value, uint32_t what) { test(how, value, 0, 1), answer(what); }
    void unless(int how, uint32_t value, uint32_t what) { test(how, value, 1, 0), answer(what); }
    // The kernel's own ints and flags: the low half of the register.
    void judge(int call, int argument, int how, const std::vector<uint32_t>& values, uint32_t if_any,
               uint32_t otherwise) {
        test(BPF_JEQ, static_cast<uint32_t>(call), 0, static_cast<uint8_t>(2 * values.size() + 2));
        load(offsetof(seccomp_data, args) + static_cast<size_t>(argument) * sizeof(uint64_t));
        for (uint32_t value : values) when(how, value, if_any);
        answer(otherwise);
    }

    std::vector<sock_filter> code_;
};

std::string filter_calls() {
    constexpr uint32_t kWrites = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY),
                       kNameOfMapping = 0x53564d41;
    Filter filter;
    for (int call : kAllowed) filter.allow(call);
    filter.refuse_if(SYS_open, 1, BPF_JSET, kWrites, EACCES);
    filter.refuse_if(SYS_openat, 2, BPF_JSET, kWrites, EACCES);
    filter.allow_if(SYS_clone, 0, BPF_JSET, {CLONE_THREAD}, EPERM);
    filter.allow_if(SYS_tgkill, 0, BPF_JEQ, {static_cast<uint32_t>(getpid())}, EPERM);
    filter.allow_if(SYS_prlimit64, 0, BPF_JEQ, {0}, EPERM);
    filter.allow_if(SYS_ioctl, 1, BPF_JEQ, {TCGETS}, ENOTTY);
    filter.allow_if(SYS_prctl, 0, BPF_JEQ, {PR_SET_NAME, kNameOfMapping}, EPERM);
    return filter.install() ? "" : fmt::format("seccomp filters ({})", std::strerror(errno));
}

#else

std::string filter_calls() { return "a list of system calls"; }

#endif

}  // namespace

std::string confine(uint64_t memory) {
    signal(SIGXFSZ, SIG_IGN);
    limit(RLIMIT_FSIZE, 0);  // no files
    limit(RLIMIT_CORE, 0);
    if (kSanitized) return "";
    if (memory) limit(RLIMIT_AS, memory);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return fmt::format("no_new_privs ({})", std::strerror(errno));
    std::string lacking = landlock();
    if (std::string filter = filter_calls(); !filter.empty())
        lacking += (lacking.empty() ? "" : " and ") + filter;
    return lacking;
}

void allow_cpu(std::chrono::seconds time) {
    rusage used{};
    rlimit value{};
    if (getrusage(RUSAGE_SELF, &used) != 0 || getrlimit(RLIMIT_CPU, &value) != 0) return;
    value.rlim_cur = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1 + time.count());
    setrlimit(RLIMIT_CPU, &value);
}

}  // namespace smt::runtime::jit
