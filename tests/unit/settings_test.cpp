// What a program's environment says beside what a server has; and which of it a server gets.
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "runtime/protocol/server_process.h"
#include "runtime/server/address_plan.h"
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
    }
    CHECK(end <= 1ull << 47);
}
