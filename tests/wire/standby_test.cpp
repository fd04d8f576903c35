// The two ends of a takeover, without their processes (runtime/server/takeover/).
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "runtime/server/takeover/process_end.h"
#include "tests/wire/server.h"

namespace smt::tests {
namespace {

using namespace runtime::server;
using namespace std::chrono_literals;

// A process that ends when it is told to. It is not fetched before the end of the test.
class Other {
public:
    Other() {
        REQUIRE(pipe(ends_) == 0);
        pid_ = fork();
        if (pid_ != 0) return;
        close(ends_[1]);
        char byte;
        while (read(ends_[0], &byte, 1) < 0) {
        }
        _exit(0);
    }
    ~Other() {
        close(ends_[0]);
        close(ends_[1]);
        waitpid(pid_, nullptr, 0);
    }
    int pid() const { return pid_; }
    void end() const { REQUIRE(write(ends_[1], "e", 1) == 1); }
    int end_file() const { return ends_[1]; }

private:
    int ends_[2] = {};
    int pid_ = -1;
};

int signals_left = 0, signals_file = -1;

void count_down(int) {
    if (--signals_left == 0 && write(signals_file, "e", 1) != 1) abort();
}

}  // namespace

TEST_CASE("standby: a process has ended when it is a zombie, with pidfds and without", "[standby]") {
    for (const bool pidfds : {true, false}) {
        const Other other;
        const int process = pidfds ? open_process(other.pid()) : -1;
        CHECK_FALSE(await_end_of(other.pid(), process, 10ms));
        other.end();
        CHECK(await_end_of(other.pid(), process, 60s));
        if (process >= 0) close(process);
    }
    int gone = -1;
    {
        const Other other;
        other.end();
        gone = other.pid();
    }
    CHECK(await_end_of(gone, -1, 0ms));
}

TEST_CASE("standby: signals do not end the wait for a process", "[standby]") {
    const Other other;
    const int process = open_process(other.pid());
    signals_left = 5;
    signals_file = other.end_file();
    struct sigaction now{}, before{};
    now.sa_handler = count_down;
    REQUIRE(sigaction(SIGALRM, &now, &before) == 0);
    const itimerval often{{0, 1000}, {0, 1000}}, never{};
    setitimer(ITIMER_REAL, &often, nullptr);
    const bool ended = await_end_of(other.pid(), process, 60s);
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before, nullptr);
    CHECK(ended);
    if (process >= 0) close(process);
}

}  // namespace smt::tests
