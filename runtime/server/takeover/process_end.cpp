#include "runtime/server/takeover/process_end.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>

namespace smt::runtime::server {

namespace {

constexpr useconds_t kLookAgain = 1000;

// By /proc/PID/stat: "pid (name) state ...", with the number of threads as the 18th word behind the name. Of
// a process whose parent has not fetched it the first thread is left.
bool is_left_over(int pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    if (!std::getline(file, line)) return false;
    char state = 0;
    long threads = 0;
    const size_t name_end = line.rfind(')');
    return name_end != std::string::npos &&
           std::sscanf(line.c_str() + name_end + 1,
                       " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld", &state,
                       &threads) == 2 &&
           (state == 'Z' || state == 'X') && threads <= 1;
}

bool has_ended(int pid) { return (kill(pid, 0) != 0 && errno == ESRCH) || is_left_over(pid); }

}  // namespace

int open_process(int pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

bool await_end_of(int pid, int process, std::chrono::milliseconds patience) {
    using namespace std::chrono;
    const auto until = steady_clock::now() + patience;
    for (;;) {
        const auto left = duration_cast<milliseconds>(until - steady_clock::now());
        if (process < 0) {
            if (has_ended(pid)) return true;
            usleep(kLookAgain);
        } else {
            pollfd ended{process, POLLIN, 0};
            if (poll(&ended, 1, static_cast<int>(std::max<int64_t>(0, left.count()))) > 0) return true;
        }
        if (left.count() <= 0) return false;
    }
}

}  // namespace smt::runtime::server
