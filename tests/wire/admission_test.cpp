// What a program is told before it has a session (runtime/server/connection.h), by a server that waits for a
// standby.
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "opcodes.gen.h"
#include "runtime/server/connection.h"
#include "runtime/server/quarantine.h"
#include "runtime/server/takeover/offences.h"
#include "tests/wire/server.h"

namespace smt::tests {
namespace {

using namespace protocol;
using namespace runtime::server;

// A server whose standby is never ready: it comes until a program has waited for it twice.
class WaitingServer {
public:
    WaitingServer()
        : journal_("/dev/null/none"),
          server_(TestServer::get().device(), journal_, printf_, runtime::schedule::make_policy("priority"),
                  runtime::dispatch::Settings{}) {
        owner_.server = &server_;
        owner_.ended = owner_.stop = owner_.stop_if_idle = [] {};
        server_.expect_takeover([] { return false; }, [this] { return ++asked_ < 2; }, [] {});
    }
    Server& server() { return server_; }
    int asked() const { return asked_.load(); }

    // Its first reply to a program that says nothing but its greeting.
    Welcome greet(const char* tenant) {
        int ends[2];
        REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
        Hello hello;
        hello.table_hash = kTableHash;
        std::strncpy(hello.tenant, tenant, sizeof hello.tenant - 1);
        REQUIRE(send(ends[0], &hello, sizeof hello, MSG_NOSIGNAL) == sizeof hello);
        Welcome welcome;
        {
            Connection connection(owner_, ends[1]);
            REQUIRE(connection.start().empty());
            CHECK(recv(ends[0], &welcome, sizeof welcome, 0) == sizeof welcome);
            close(ends[0]);
        }
        return welcome;
    }

private:
    std::atomic<int> asked_{0};
    ConnectionOwner owner_;
    runtime::journal::Writer journal_;
    DevicePrintf printf_;
    Server server_;
};

}  // namespace

TEST_CASE("admission: a program of a tenant that faulted waits for a standby", "[admission]") {
    WaitingServer waiting;
    waiting.server().quarantine().fault({"culprit"});
    CHECK(waiting.greet("another").status == WelcomeStatus::kOk);
    CHECK(waiting.asked() == 0);
    CHECK(waiting.greet("culprit").status == WelcomeStatus::kOk);
    CHECK(waiting.asked() == 2);
}

TEST_CASE("admission: a program that is refused waits for no standby", "[admission]") {
    WaitingServer waiting;
    waiting.server().quarantine().fault({"culprit"});
    for (size_t fault = 0; fault <= Offences::kFree; ++fault)
        waiting.server().offences().add("culprit", runtime::journal::now_ns());
    const Welcome welcome = waiting.greet("culprit");
    CHECK(welcome.status == WelcomeStatus::kRefused);
    CHECK(std::string(welcome.message).find("4 times within an hour") != std::string::npos);
    CHECK(waiting.asked() == 0);
}

}  // namespace smt::tests
