// Allocations that wait for room: which of them tries, and when a wait ends.
#include "runtime/server/memory/room_line.h"

#include <catch2/catch.hpp>
#include <thread>

#include "runtime/server/memory/tenant_accounts.h"

namespace smt::runtime::server {
namespace {

using namespace std::chrono_literals;
using For = RoomLine::For;
using Tried = RoomLine::Tried;

// A thread that waits for room in a line, as the test lets it.
class Waiting {
public:
    Waiting(RoomLine& line, const void* tenant, For reason)
        : thread_([this, &line, tenant, reason] {
              done = line.wait({.tenant = tenant,
                                .reason = reason,
                                .until = std::chrono::steady_clock::now() + 1h,
                                .attempt = [this] { return ++attempts, answer.load(); },
                                .gives_up = [this] { return ++looks, gives_up.load(); }});
          }) {}
    ~Waiting() { join(); }
    void join() {
        if (thread_.joinable()) thread_.join();
    }
    // Until it has looked so often after this call.
    void await_looks(int count) const {
        for (const int before = looks; looks < before + count && !done;) std::this_thread::yield();
    }

    std::atomic<int> attempts{0}, looks{0};
    std::atomic<Tried> answer{Tried::kNoRoomInLimit};
    std::atomic<bool> gives_up{false}, done{false};

private:
    std::thread thread_;
};

constexpr char kFirst = 0, kSecond = 0;

TEST_CASE("of one tenant the first that waits tries, and then the next", "[room_line]") {
    RoomLine line;
    Waiting first(line, &kFirst, For::kLimit);
    first.await_looks(1);
    Waiting second(line, &kFirst, For::kLimit);
    second.answer = Tried::kDone;  // there is room for it, but it came later
    second.await_looks(3);
    CHECK(second.attempts == 0);
    CHECK_FALSE(second.done);
    first.answer = Tried::kDone;
    line.note_room();
    first.join();
    second.join();
    CHECK(first.done);
    CHECK(second.done);
}

TEST_CASE("a tenant at its limit holds up no other, one that waits for the device does", "[room_line]") {
    RoomLine line;
    Waiting first(line, &kFirst, For::kLimit);
    first.await_looks(1);
    Waiting second(line, &kSecond, For::kDevice);
    second.answer = Tried::kDone;
    second.join();
    CHECK(second.done);

    first.answer = Tried::kNoRoomInDevice;  // its limit was raised, say
    first.await_looks(2);
    Waiting third(line, &kSecond, For::kDevice);
    third.answer = Tried::kDone;
    third.await_looks(3);
    CHECK(third.attempts == 0);
    first.gives_up = true;
    first.join();
    CHECK_FALSE(first.done);
    third.join();
    CHECK(third.done);
}

TEST_CASE("a wait is over when its time is", "[room_line]") {
    RoomLine line;
    int attempts = 0;
    CHECK_FALSE(line.wait({.tenant = &kFirst,
                           .reason = For::kLimit,
                           .until = std::chrono::steady_clock::now(),
                           .attempt = [&] { return ++attempts, Tried::kNoRoomInLimit; },
                           .gives_up = [] { return false; }}));
    CHECK(attempts == 1);
}

TEST_CASE("a wait ends when an account gets back what is needed", "[room_line]") {
    const auto account = std::make_shared<MemoryAccount>(100);
    REQUIRE(account->take(80));
    std::thread giver;
    int attempts = 0;
    CHECK(RoomLine::of_process().wait({.tenant = &kFirst,
                                       .reason = For::kLimit,
                                       .until = std::chrono::steady_clock::now() + 1h,
                                       .attempt =
                                           [&] {
                                               if (account->take(40)) return Tried::kDone;
                                               if (++attempts == 1)
                                                   giver = std::thread([&] { account->give(80); });
                                               return Tried::kNoRoomInLimit;
                                           },
                                       .gives_up = [] { return false; }}));
    giver.join();
    CHECK(account->held() == 40);
}

TEST_CASE("programs of a tenant share one account and its limit", "[memory_account]") {
    TenantAccounts accounts;
    const MemoryAccountPointer job = accounts.open("job", 100);
    CHECK(accounts.open("job", 0) == job);
    CHECK(accounts.open("other", 0)->limit() == 0);
    const auto first = std::make_shared<MemoryAccount>(0, job),
               second = std::make_shared<MemoryAccount>(50, job);
    CHECK(first->take(60));
    CHECK_FALSE(second->take(41));
    CHECK(job->refused() == 1);
    CHECK(second->take(40));
    CHECK(job->held() == 100);
    first->give(60);
    CHECK_FALSE(second->take(20));  // its own limit
    CHECK(job->held() == 40);
    CHECK(&first->whole() == job.get());
    CHECK(&job->whole() == job.get());
}

TEST_CASE("the last program's limit counts, unless one was set", "[memory_account]") {
    TenantAccounts accounts;
    MemoryAccountPointer job = accounts.open("job", 100);
    accounts.open("job", 200);
    CHECK(job->limit() == 200);
    accounts.set_limit(job, 0);
    accounts.open("job", 300);
    CHECK(job->limit() == 0);
    CHECK(accounts.open("other", 300)->limit() == 300);
    job.reset();  // its last program is gone
    CHECK(accounts.open("job", 400)->limit() == 400);
}

}  // namespace
}  // namespace smt::runtime::server
