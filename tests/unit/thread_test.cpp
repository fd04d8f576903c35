// What happens at the top of a thread of the server.
#include "runtime/thread/thread.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>

namespace smt::runtime {
namespace {

std::string logged;  // by one thread at a time, joined before it is read

void log(const std::string& line) { logged += line + "\n"; }

TEST_CASE("an exception ends its thread, is logged with name and tenant, and is told", "[thread]") {
    Thread::log_with(log);
    logged.clear();
    std::string told;
    Thread thread;
    const auto body = [] { throw std::runtime_error("no such thing"); };
    REQUIRE(thread.start({"lane 3", "alice"}, body, [&](const std::string& why) { told = why; }).empty());
    thread.join();
    CHECK(told == "no such thing");
    CHECK(logged == "thread 'lane 3' of alice ended by an exception: no such thing\n");
}

TEST_CASE("what fails while a failure is told ends nothing either", "[thread]") {
    Thread::log_with([](const std::string&) { throw std::runtime_error("the log"); });
    Thread thread;
    REQUIRE(thread.start({"x", ""}, [] { throw 7; }, [](const std::string&) { throw 8; }).empty());
    thread.join();
    CHECK(!thread.joinable());
}

TEST_CASE("a thread of the server's own goes on after an exception", "[thread]") {
    Thread::log_with(log);
    logged.clear();
    int runs = 0, failures = 0;
    Thread thread;
    const auto body = [&] {
        if (++runs < 3) throw std::runtime_error("again");
    };
    REQUIRE(thread.serve({"dispatcher", ""}, body, [&](const std::string&) { ++failures; }).empty());
    thread.join();
    CHECK(runs == 3);
    CHECK(failures == 2);
    CHECK(logged.find("thread 'dispatcher' starts again after an exception: again\n") == 0);
}

TEST_CASE("a detached thread tells its failure", "[thread]") {
    Thread::log_with(log);
    std::atomic<bool> told{false};
    REQUIRE(Thread::detach(
                {"host function", ""}, [] { throw 1; },
                [&](const std::string&) { told.store(true), told.notify_all(); })
                .empty());
    told.wait(false);
    CHECK(told.load());
}

}  // namespace
}  // namespace smt::runtime
