// The two ends of a takeover, without their processes (runtime/server/takeover/).
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include "opcodes.gen.h"
#include "runtime/protocol/state.h"
#include "runtime/server/takeover/packet.h"
#include "runtime/server/takeover/process_end.h"
#include "runtime/server/takeover/taken_hello.h"
#include "tests/wire/server.h"

namespace smt::tests {
namespace {

using namespace protocol;
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

TEST_CASE("standby: one that does not read its socket does not outlive a server that ends in order",
          "[standby]") {
    for (const bool full : {false, true}) {
        const Other other;
        int ends[2];
        REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
        const Packet told = make_packet(PacketKind::kKept);
        while (full && send(ends[0], &told, sizeof told, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
        }
        put_leave(ends[0], other.pid());
        Packet said;
        std::vector<int> files;
        CHECK(take_packet(ends[1], PacketKind::kLeave, 0, &said, &files, 0) == !full);
        if (!full) other.end();
        siginfo_t how{};
        CHECK(waitid(P_PID, static_cast<id_t>(other.pid()), &how, WEXITED | WNOWAIT) == 0);
        CHECK(how.si_code == (full ? CLD_KILLED : CLD_EXITED));
        for (const int end : ends) close(end);
    }
}

TEST_CASE("standby: an arena whose session cannot be made again is closed", "[standby]") {
    Hello hello;
    StateWriter headless, head_only;
    head_only.scalar(kStateVersion);
    head_only.scalar<uint64_t>(kTableHash);
    head_only.scalar(hello);
    Server& server = TestServer::get().server();
    for (const std::string& state : {headless.all(), head_only.all()}) {
        Session session(server, server.next_session(), -1, hello);
        std::string told;
        Session::Taken taken;
        taken.state = FileBytes(file_of(state), state.size());
        taken.arena = memfd_create("arena", MFD_CLOEXEC);
        struct stat made{};
        REQUIRE(fstat(taken.arena, &made) == 0);
        taken.commit = [&](const std::string& problem) { return told = problem, true; };
        CHECK(session.serve_taken(taken));
        CHECK_FALSE(told.empty());
        struct stat now{};  // of what may have the number by now
        CHECK((fstat(taken.arena, &now) != 0 || now.st_ino != made.st_ino || now.st_dev != made.st_dev));
    }
}

}  // namespace smt::tests
