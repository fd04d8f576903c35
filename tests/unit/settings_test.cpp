// What a program's environment says beside what a server has; and which of it a server gets.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "runtime/protocol/server_process.h"
#include "runtime/server/memory/address_plan.h"
#include "runtime/server/settings_check.h"
#include "tests/unit/set_variable.h"

using smt::runtime::server::AddressPlan;
using smt::runtime::server::differing_settings;
using smt::tests::SetVariable;

TEST_CASE("settings that differ from the server's are named, the same in other words are not", "[settings]") {
    SetVariable compile("SMT_COMPILE", nullptr), journal("SMT_JOURNAL", "mapping");
    CHECK(differing_settings("", "priority").empty());
    CHECK(
        differing_settings("policy=priority\ncompile.cache=1024M\njournal.mapping=1\n", "priority").empty());
    CHECK(differing_settings("policy=fair\njournal.mapping=0\n", "priority") ==
          "SMT_POLICY is fair here and priority in the server\nmapping in SMT_JOURNAL is 0 here and 1 in the "
          "server\n");
    CHECK(differing_settings("journal.record=/tmp/x\033[1m", "") ==
          "record in SMT_JOURNAL is /tmp/x?[1m here and not set in the server\n");
    CHECK(differing_settings("tenant=x\ndevice=sim\nPATH=/\nnonsense\n=\n\n", "").empty());
}

TEST_CASE("a server gets its own variables and those that say where things are", "[settings]") {
    using smt::protocol::server_inherits;
    for (const char* entry :
         {"SMT_POLICY=fair", "SMT_RUNTIME_DIR=/x", "SMT_SIM=sms=4", "SMT_COMPILE=nvrtc=/x",
          "SMT_FAKE_MEMORY=1", "XDG_CONFIG_HOME=/x", "LD_LIBRARY_PATH=/x", "HOME=/root", "LC_ALL=C",
          "CUDA_VISIBLE_DEVICES=1", "CUDA_HOME=/x"})
        CHECK(server_inherits(entry));
    for (const char* entry : {"SMT_TENANT=a", "SMT_SERVER=/x", "SMT_PRIORITY=high", "LD_PRELOAD=x",
                              "CUDA_LAUNCH_BLOCKING=1", "CUDA_VISIBLE_DEVICES_X=1", "PATHS=1", "nonsense"})
        CHECK_FALSE(server_inherits(entry));
}

TEST_CASE("more than 150 sessions fit, and none lies in another's place", "[settings]") {
    AddressPlan plan;
    std::set<uint64_t> bases;
    for (int region = 0; region < AddressPlan::kRegions; ++region) {
        for (int slot; (slot = plan.take(region, 0)) >= 0;) {
            bases.insert(AddressPlan::base(region, slot));
            if (slot == 3) CHECK(AddressPlan::base(region, slot) + AddressPlan::kSlotBytes < 1ull << 47);
        }
    }
    CHECK(bases.size() == static_cast<size_t>(AddressPlan::places()));
#ifndef __SANITIZE_THREAD__
    CHECK(bases.size() > 150);
#endif
    uint64_t end = 0;
    for (const uint64_t base : bases) {
        CHECK(base >= end);
        end = base + AddressPlan::kSlotBytes;
        const uint64_t device = base + smt::protocol::kArenaBytes;
        CHECK(AddressPlan::device_range_of(device) == device);
        CHECK(AddressPlan::device_range_of(end - 1) == device);
        CHECK(AddressPlan::device_range_of(device - 1) == 0);
    }
    CHECK(AddressPlan::device_range_of(0) == 0);
    CHECK(end <= 1ull << 47);
}

// The process that has the slot's lock, as another one sees it; 0: none.
pid_t locker(const std::string& path, int region, int slot) {
    int answer[2];
    REQUIRE(pipe(answer) == 0);
    const pid_t asker = fork();
    if (asker == 0) {
        struct flock range{};
        range.l_type = F_WRLCK;
        range.l_start = region * 128 + slot;  // a byte for each
        range.l_len = 1;
        const bool seen = fcntl(open(path.c_str(), O_RDWR), F_GETLK, &range) == 0;
        const pid_t pid = !seen ? -1 : range.l_type == F_UNLCK ? 0 : range.l_pid;
        _exit(write(answer[1], &pid, sizeof pid) == sizeof pid ? 0 : 1);
    }
    pid_t pid = -1;
    CHECK(read(answer[0], &pid, sizeof pid) == sizeof pid);
    waitpid(asker, nullptr, 0);
    for (const int file : answer) close(file);
    return pid;
}

// The lock is a process's, so the other server is one.
TEST_CASE("servers of one folder take different slots while there are others", "[settings]") {
    char folder[] = "/tmp/smt-addresses-XXXXXX";
    REQUIRE(mkdtemp(folder));
    const std::string path = std::string(folder) + "/addresses";
#ifdef __SANITIZE_THREAD__
    constexpr int kRegion = 3;
#else
    constexpr int kRegion = 2;
#endif
    int slots[2], end[2];
    REQUIRE(pipe(slots) == 0);
    REQUIRE(pipe(end) == 0);
    const pid_t other = fork();
    if (other == 0) {
        close(end[1]);
        AddressPlan its;
        its.share(path);
        for (int i = 0; i < 2; ++i) {
            const int slot = its.take(kRegion, 0);
            if (write(slots[1], &slot, sizeof slot) != sizeof slot) _exit(1);
        }
        char byte;
        _exit(read(end[0], &byte, 1) == 0 ? 0 : 1);
    }
    int its[2] = {-1, -1};
    REQUIRE(read(slots[0], its, sizeof its[0]) == sizeof its[0]);
    REQUIRE(read(slots[0], its + 1, sizeof its[1]) == sizeof its[1]);
    AddressPlan plan;
    plan.share(path);
    std::vector<int> mine;
    for (int slot; (slot = plan.take(kRegion, 0)) >= 0;) mine.push_back(slot);
    REQUIRE(mine.size() > 4);
    // The other one's come last, when there are no others.
    CHECK(std::set<int>(mine.end() - 2, mine.end()) == std::set<int>{its[0], its[1]});
    for (const int slot : mine) plan.give(kRegion, slot);
    CHECK(plan.take(kRegion, 0) == mine.front());
    CHECK(plan.take_exactly(kRegion, its[0]));
    CHECK_FALSE(plan.take_exactly(kRegion, its[0]));
    plan.lock_later();
    CHECK(locker(path, kRegion, its[0]) == other);
    close(end[1]);
    int status = 0;
    REQUIRE(waitpid(other, &status, 0) == other);
    CHECK(status == 0);
    CHECK(locker(path, kRegion, its[0]) == 0);
    plan.lock_later();
    CHECK(locker(path, kRegion, its[0]) == getpid());
    CHECK(locker(path, kRegion, its[1]) == 0);  // which is not taken
    plan.give(kRegion, its[0]);
    CHECK(locker(path, kRegion, its[0]) == 0);
    plan.lock_later();
    CHECK(locker(path, kRegion, its[0]) == 0);
    CHECK(plan.take(kRegion, 0) == std::min(its[0], its[1]));
    for (const int file : {slots[0], slots[1], end[0]}) close(file);
    unlink(path.c_str());
    rmdir(folder);
}
