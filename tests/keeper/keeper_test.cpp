// The keeper as a process: its answers, its end, and the memory of processes that are killed.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/keeper/channel.h"
#include "runtime/keeper/client.h"

extern char** environ;

using namespace smt::runtime::keeper;

namespace {

constexpr uint64_t kMib = 1ull << 20;

// A keeper with one client, and a way to give it more.
struct Place {
    explicit Place(const std::string& driver = "") : started(start(SMT_TEST_KEEPER, driver)) {
        INFO(started.problem);
        REQUIRE(started.socket >= 0);
        client = std::make_unique<Client>(started.socket);
    }
    ~Place() {
        client.reset();
        if (started.pid > 0) waitpid(started.pid, nullptr, 0);
    }
    int another() {  // a socket of a further client
        int ends[2];
        REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
        REQUIRE(client->add_client(ends[1]) == 0);
        close(ends[1]);
        return ends[0];
    }
    uint64_t make(uint64_t bytes) {
        Client::Given given;
        REQUIRE(client->create(bytes, &given) == 0);
        close(given.file);
        return given.chunk.id;
    }
    size_t held() {
        std::vector<Client::Given> chunks;
        REQUIRE(client->list(&chunks) == 0);
        for (const Client::Given& each : chunks) close(each.file);
        return chunks.size();
    }
    Started started;
    std::unique_ptr<Client> client;
};

// A child with the socket as its descriptor 3.
struct Executor {
    Executor(int socket, const char* what, int keeper) {
        int in[2], out[2];
        REQUIRE((pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0));
        posix_spawn_file_actions_t files;
        posix_spawn_file_actions_init(&files);
        const int high = fcntl(socket, F_DUPFD_CLOEXEC, 10);
        posix_spawn_file_actions_adddup2(&files, in[0], 0);
        posix_spawn_file_actions_adddup2(&files, out[1], 1);
        posix_spawn_file_actions_adddup2(&files, high, 3);
        std::string program = SMT_TEST_EXECUTOR, argument = what, number = std::to_string(keeper);
        char* const arguments[] = {program.data(), argument.data(), number.data(), nullptr};
        REQUIRE(posix_spawn(&pid, program.c_str(), &files, nullptr, arguments, environ) == 0);
        posix_spawn_file_actions_destroy(&files);
        for (int file : {in[0], out[1], high, socket}) close(file);
        input = in[1];
        output = fdopen(out[0], "r");
    }
    ~Executor() {
        fclose(output);
        if (input >= 0) close(input);
    }
    std::string line() {
        char text[100] = {};
        return fgets(text, sizeof text, output) ? std::string(text) : std::string();
    }
    int end() {
        int status = 0;
        waitpid(pid, &status, 0);
        return status;
    }
    pid_t pid = -1;
    int input = -1;
    FILE* output = nullptr;
};

void outlives(const std::string& driver) {
    Place place(driver);
    Executor writer(place.another(), "write", place.started.pid);
    REQUIRE(writer.line() == "written\n");
    kill(writer.pid, SIGKILL);
    REQUIRE(WTERMSIG(writer.end()) == SIGKILL);
    CHECK(place.held() == 3);
    Executor reader(place.another(), "read", place.started.pid);
    CHECK(reader.line() == "3 of 3\n");
    CHECK(reader.end() == 0);  // and it could give all of it back
    CHECK(place.held() == 0);
}

}  // namespace

TEST_CASE("keeper: memory outlives a killed process at its addresses, simulated device", "[keeper]") {
    setenv("SMT_DEVICE", "sim", 1);
    outlives("");
}

TEST_CASE("keeper: memory outlives a killed process at its addresses, a driver", "[keeper]") {
    setenv("SMT_DEVICE", "gpu", 1);
    setenv("SMT_DRIVER", SMT_TEST_DRIVER, 1);
    outlives(SMT_TEST_DRIVER);
}

TEST_CASE("keeper: it ends with its last client", "[keeper]") {
    Place place;
    Executor writer((setenv("SMT_DEVICE", "sim", 1), place.another()), "write", place.started.pid);
    REQUIRE(writer.line() == "written\n");
    place.client.reset();
    CHECK(waitpid(place.started.pid, nullptr, WNOHANG) == 0);  // the writer is one
    kill(writer.pid, SIGKILL);
    writer.end();
    int status = -1;
    REQUIRE(waitpid(place.started.pid, &status, 0) == place.started.pid);
    CHECK(status == 0);
    place.started.pid = -1;
}

TEST_CASE("keeper: chunks have ids of their own, and lists have all of them", "[keeper]") {
    Place place;
    std::set<uint64_t> ids;
    for (int i = 0; i < 200; ++i) ids.insert(place.make(2 * kMib));
    CHECK(ids.size() == 200);
    CHECK(place.held() == 200);
    for (uint64_t id : {uint64_t{1}, uint64_t{64}, uint64_t{65}, uint64_t{200}})
        CHECK(place.client->release(id) == 0);
    CHECK(place.client->release(64) == kInvalid);
    CHECK(place.held() == 196);
    CHECK(place.make(2 * kMib) == 201);
    std::vector<Client::Given> chunks;
    REQUIRE(place.client->list(&chunks) == 0);
    struct stat facts{};
    for (const Client::Given& each : chunks) {
        CHECK((fstat(each.file, &facts) == 0 && facts.st_size == static_cast<off_t>(2 * kMib)));
        CHECK(each.chunk.bytes == 2 * kMib);
        close(each.file);
    }
    CHECK_FALSE(place.client->lost());
}

TEST_CASE("keeper: sizes that are none, and memory that is not there", "[keeper]") {
    Place place;
    Client::Given given;
    for (uint64_t bytes : {uint64_t{0}, uint64_t{4096}, 3 * kMib, ~uint64_t{0}, uint64_t{2} << 40})
        CHECK(place.client->create(bytes, &given) == kInvalid);
    setenv("SMT_FAKE_MEMORY", "0x1000000", 1);
    Place small(SMT_TEST_DRIVER);
    const uint64_t id = small.make(16 * kMib);
    CHECK(small.client->create(2 * kMib, &given) == kNoMemory);
    CHECK(small.client->release(id) == 0);
    small.make(2 * kMib);
}

TEST_CASE("keeper: nonsense ends the client that says it, and no other", "[keeper]") {
    Place place;
    place.make(2 * kMib);
    Request wrong[5];
    wrong[0].magic = 1;
    wrong[1].version = 99;
    wrong[2].kind = static_cast<Kind>(77);
    for (size_t i = 0; i < 5; ++i) {
        const int socket = place.another();
        const size_t bytes = i == 3 ? 1 : i == 4 ? sizeof wrong : sizeof(Request);  // too short, too long
        REQUIRE(send_packet(socket, i < 3 ? &wrong[i] : wrong, bytes, {}, true));
        char answer[64];
        std::vector<int> files;
        CHECK(receive_packet(socket, answer, sizeof answer, &files) == 0);
        close(socket);
        CHECK(place.held() == 1);
    }
    Request without;  // a client to be added, and no socket
    without.kind = Kind::kAddClient;
    const int socket = place.another();
    REQUIRE(send_packet(socket, &without, sizeof without, {}, true));
    Reply reply;
    std::vector<int> files;
    CHECK((receive_packet(socket, &reply, sizeof reply, &files) == sizeof reply && reply.status == kInvalid));
    close(socket);
}

TEST_CASE("keeper: one that is killed is found out, what it made stays, and others make more", "[keeper]") {
    setenv("SMT_DEVICE", "sim", 1);
    Place place;
    Executor alone(place.another(), "alone", place.started.pid);
    REQUIRE(alone.line() == "made\n");
    kill(place.started.pid, SIGKILL);
    siginfo_t ended{};
    REQUIRE(waitid(P_PID, static_cast<id_t>(place.started.pid), &ended, WEXITED | WNOWAIT) == 0);
    CHECK(place.client->lost());
    CHECK(place.client->release(1) == kLost);
    CHECK(how_it_ended(place.started.pid) == "was killed by signal 9");
    place.started.pid = -1;
    close(alone.input);
    alone.input = -1;
    CHECK(alone.line() == "right\n");
    CHECK(alone.end() == 0);
}

TEST_CASE("keeper: a driver that is none, and a program that is none", "[keeper]") {
    CHECK(start(SMT_TEST_KEEPER, "/nonexistent").socket < 0);
    CHECK(start("/nonexistent", "").problem.find("/nonexistent") == 0);
}
