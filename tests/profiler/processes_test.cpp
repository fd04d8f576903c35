// Several processes with one file, and processes that die while they write.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>

#include "profiler/store/database.h"
#include "profiler/store/store.h"
#include "tests/profiler/profiles.h"
#include "tests/unit/temporary_folder.h"

namespace smt::profiler {
namespace {

using tests::problem_of;
using tests::some_key;
using tests::some_profile;
using tests::TemporaryFolder;
using tests::value_of;

// A process that does `work` and ends with what it returns. It runs none of Catch2.
class Process {
public:
    explicit Process(const std::function<int()>& work) : pid_(fork()) {
        if (pid_ == 0) _exit(work());
    }
    ~Process() { wait(); }
    void kill() { ::kill(pid_, SIGKILL); }
    int wait() {
        if (pid_ > 0 && waitpid(pid_, &status_, 0) == pid_) pid_ = -1;
        return status_;
    }

private:
    pid_t pid_;
    int status_ = -1;
};

// One launch, one stop: two tables that must agree.
Profile one_launch() {
    Profile profile;
    profile.key = some_key();
    profile.times[{132, 8}] = {1, 100, 0, 10};
    profile.preemption = {1, 1000};
    return profile;
}

// Where processes wait for each other: until the parent has started all of them.
class Gate {
public:
    Gate() { REQUIRE(pipe(ends_) == 0); }
    ~Gate() {
        open();
        close(ends_[0]);
    }
    void wait() {  // in a child
        close(ends_[1]);
        char byte;
        if (read(ends_[0], &byte, 1) != 0) _exit(100);
    }
    void open() {
        if (ends_[1] >= 0) close(ends_[1]);
        ends_[1] = -1;
    }

private:
    int ends_[2];
};

TEST_CASE("two processes record at once and begin the file at once, and nothing is lost", "[profiles]") {
    TemporaryFolder folder;
    const std::string path = folder.file("p");
    constexpr int kRecords = 300;
    Gate gate;
    const auto work = [&](const std::string& own) {
        gate.wait();
        Store store(path);
        for (int i = 0; i < kRecords; ++i) {
            Profile profile = one_launch();
            profile.key.kernel = own + std::to_string(i);
            if (store.record(one_launch()) || store.record(profile)) return 1;
        }
        return 0;
    };
    Process first([&] { return work("first"); }), second([&] { return work("second"); });
    gate.open();
    CHECK(first.wait() == 0);
    CHECK(second.wait() == 0);
    Store store(path);
    CHECK(value_of(store.list()).size() == 2 * kRecords + 1);
    const auto shared = value_of(store.find(some_key()));
    REQUIRE(shared);
    CHECK(shared->times.at({132, 8}).launches == 2 * kRecords);
    CHECK(shared->preemption.stops == 2 * kRecords);
}

TEST_CASE("of processes that find a file damaged, one sets it aside and all use the new one", "[profiles]") {
    for (int round = 0; round < 10; ++round) {
        TemporaryFolder folder;
        const std::string path = folder.file("p");
        std::ofstream(path) << std::string(8192, 'x');
        Gate gate;
        const auto work = [&] {
            gate.wait();
            return Store(path).record(one_launch()) ? 1 : 0;
        };
        Process first(work), second(work), third(work);
        gate.open();
        CHECK(first.wait() + second.wait() + third.wait() == 0);
        CHECK(value_of(Store(path).find(some_key()))->preemption.stops == 3);
        CHECK_FALSE(std::filesystem::exists(path + ".damaged-2"));
    }
}

TEST_CASE("a process that is killed while it records loses nothing that it had recorded", "[profiles]") {
    TemporaryFolder folder;
    const std::string path = folder.file("p");
    int recorded = 0;
    for (int round = 0; round < 5; ++round) {
        int done[2];
        REQUIRE(pipe(done) == 0);
        Process writer([&] {
            Store store(path);
            while (!store.record(one_launch()) && write(done[1], "", 1) == 1) {
            }
            return 1;
        });
        close(done[1]);
        char bytes[64];
        for (int seen = 0; seen < 50 + round; ++seen, ++recorded) REQUIRE(read(done[0], bytes, 1) == 1);
        writer.kill();
        writer.wait();
        for (ssize_t got; (got = read(done[0], bytes, sizeof bytes)) > 0;) recorded += static_cast<int>(got);
        close(done[0]);

        std::string said;
        Store store(path, [&](const std::string& line) { said += line; });
        const auto found = value_of(store.find(some_key()));
        REQUIRE(found);
        // The last record may have been finished before it could be told.
        const int64_t launches = found->times.at({132, 8}).launches;
        CHECK(launches >= recorded);
        CHECK(launches <= recorded + 1);
        CHECK(found->preemption.stops == launches);
        CHECK(said.empty());
        recorded = static_cast<int>(launches);
    }
}

TEST_CASE("a record that a process did not finish is as if it had never begun", "[profiles]") {
    TemporaryFolder folder;
    const std::string path = folder.file("p");
    REQUIRE(problem_of(Store(path).record(some_profile())).empty());
    Process writer([&] {
        Database database(path);
        database.run("BEGIN IMMEDIATE; UPDATE profile SET stops = 1000; DELETE FROM times");
        return raise(SIGKILL);
    });
    CHECK(WTERMSIG(writer.wait()) == SIGKILL);
    Store store(path);
    CHECK(value_of(store.find(some_key())) == some_profile());
    CHECK(problem_of(store.record(one_launch())).empty());
    CHECK(value_of(store.find(some_key()))->preemption.stops == 4);
}

TEST_CASE("a process that dies while it opens the file does not keep others out", "[profiles]") {
    TemporaryFolder folder;
    const std::string path = folder.file("p");
    Process opener([&] {
        Store store(path, {});
        Database database(path);
        database.run("BEGIN IMMEDIATE; CREATE TABLE profile (half)");
        return raise(SIGKILL);
    });
    CHECK(WTERMSIG(opener.wait()) == SIGKILL);
    Store store(path);
    CHECK(problem_of(store.record(some_profile())).empty());
}

}  // namespace
}  // namespace smt::profiler
