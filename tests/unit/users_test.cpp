// What the administrator's file grants users of a system's server.
#include "runtime/server/users.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <fstream>

#include "runtime/server/memory_file.h"
#include "runtime/server/peer.h"
#include "runtime/settings/grants.h"
#include "tests/unit/temporary_folder.h"

namespace smt::tests {

using namespace runtime::server;

namespace {

constexpr uid_t kAlice = 3000001, kBob = 3000002;  // no accounts
constexpr gid_t kGroup = 3000003, kOther = 3000004;

settings::Grants grants_of(const std::string& text) {
    TemporaryFolder folder;
    const std::string path = folder.file("smt.toml");
    std::ofstream(path) << text;
    return settings::read_grants(path);
}

constexpr const char* kFile = R"(
policy = "fair"
[everyone]
memory = "8G"
sessions = 4
[groups.3000003]
memory = "16G"
priority = "high"
[groups.3000004]
memory = 0
priority = -2
weight = 2.5
[users.3000001]
priority = 3
administers = true
)";

}  // namespace

TEST_CASE("without a file there are defaults", "[users]") {
    Users users(settings::read_grants("/there/is/none"));
    const Granted granted = users.granted(kAlice, {kGroup});
    CHECK(granted.memory == 0);
    CHECK(granted.sessions == settings::kGrantedSessions);
    CHECK(granted.priority == 0);
    CHECK(granted.weight_thousandths == 1000);
    CHECK_FALSE(granted.administers);
}

TEST_CASE("a user's table counts before groups', and these before everyone's", "[users]") {
    const settings::Grants grants = grants_of(kFile);
    CHECK(grants.problems.empty());
    Users users(grants);
    const Granted of_everyone = users.granted(kBob, {});
    CHECK(of_everyone.memory == 8ul << 30);
    CHECK(of_everyone.sessions == 4);
    const Granted member = users.granted(kBob, {kGroup});
    CHECK(member.memory == 16ul << 30);
    CHECK(member.priority == 1);
    const Granted of_both = users.granted(kBob, {kOther, kGroup});  // the most generous of each
    CHECK(of_both.memory == 0);
    CHECK(of_both.priority == 1);
    CHECK(of_both.weight_thousandths == 2500);
    const Granted alice = users.granted(kAlice, {kOther});
    CHECK(alice.priority == 3);
    CHECK(alice.administers);
    CHECK(alice.weight_thousandths == 2500);
    CHECK(users.granted(0, {}).administers);
}

TEST_CASE("what is nothing to grant is a problem with its line", "[users]") {
    const std::vector<std::string> problems =
        grants_of(
            "[everyone]\nmemroy = \"1G\"\nsessions = \"many\"\n[users]\nalice = 3\n[groups.x]\nadministers = "
            "1\n")
            .problems;
    REQUIRE(problems.size() == 4);
    CHECK(problems[0].find(":2: memroy in everyone is nothing to grant") != std::string::npos);
    CHECK(problems[1].find(":3: sessions in everyone is 'many'") != std::string::npos);
    CHECK(problems[2].find(":7: administers in groups.x is '1'; it takes true or false") !=
          std::string::npos);
    CHECK(problems[3].find(":5: users.alice is not a table") != std::string::npos);
    CHECK(grants_of("[everyone").problems.size() == 1);
}

TEST_CASE("a user has so many places, and so much memory together", "[users]") {
    Users users({});
    CHECK(users.name_of(kAlice) == std::to_string(kAlice));
    auto place = users.enter(kAlice, 1);
    REQUIRE(place);
    CHECK(users.enter(kBob, 1));
    CHECK_FALSE(users.enter(kAlice, 1, std::chrono::seconds(0)));
    place.reset();
    CHECK(users.enter(kAlice, 1));

    const MemoryAccountPointer account = users.account_of(kAlice, 100);
    MemoryAccount one(0, account), other(0, users.account_of(kAlice, 100));
    CHECK(one.take(60));
    CHECK_FALSE(other.take(60));
    CHECK(MemoryAccount(0, users.account_of(kBob, 100)).take(60));
    CHECK(other.take(40));
    one.give(60);
    other.give(40);
}

TEST_CASE("a peer is of its user, whose name stands in front of its tenants'", "[users]") {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
    CHECK(user_of(ends[0]) == getuid());
    protocol::Hello hello;
    std::strcpy(hello.tenant, "train");
    std::strcpy(hello.family, "shell");
    hello.pid = 1;
    hello.limited = ~0u;

    const std::optional<Peer> own =
        Peer::of(ends[0], nullptr);  // a user's own server changes the number alone
    REQUIRE(own);
    CHECK(own->admit(hello).empty());
    CHECK(protocol::text_in(hello.tenant) == "train");
    CHECK(hello.pid == getpid());
    CHECK(hello.limited == 0);
    CHECK(own->full_name("a/b") == "a/b");

    Users users({});
    hello.pid = 1;
    const std::optional<Peer> peer = Peer::of(ends[0], &users);
    REQUIRE(peer);
    const std::string user = users.name_of(getuid());
    CHECK(peer->admit(hello).empty());
    CHECK(protocol::text_in(hello.tenant) == user + "/train");
    CHECK(protocol::text_in(hello.family) == user + "/shell");
    CHECK(hello.pid == getpid());
    CHECK(peer->full_name("train") == user + "/train");
    CHECK(peer->full_name(user + "/train") == user + "/train");
    std::memset(hello.tenant, 'x', sizeof hello.tenant);
    CHECK(peer->admit(hello).find("too long") != std::string::npos);
    close(ends[0]);
    close(ends[1]);
}

TEST_CASE("descriptors of memory alone are read", "[users]") {
    const int memory = memfd_create("memory", 0), other = open("/proc/self/exe", O_RDONLY);
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    CHECK(is_memory_file(memory));
    for (const int each : {other, ends[0], ends[1], -1}) CHECK_FALSE(is_memory_file(each));
    for (const int each : {memory, other, ends[0], ends[1]}) close(each);
}

}  // namespace smt::tests
