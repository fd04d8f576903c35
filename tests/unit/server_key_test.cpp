// Which server a program has, by its key; and the files of strict tenants' servers.
#include "runtime/protocol/server_key.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "runtime/server/strict_files.h"
#include "tests/unit/set_variable.h"
#include "tests/unit/temporary_folder.h"
#include "tools/smt/command.h"
#include "tools/smt/places.h"

namespace {

namespace fs = std::filesystem;
namespace protocol = smt::protocol;
using smt::tests::SetVariable;
using smt::tests::TemporaryFolder;

constexpr const char* kUuid = "0123456789abcdef0123456789abcdef";

// Empty: refused.
std::string key_for(const char* gpu, const char* name, const char* family) {
    char key[protocol::kKeyBytes] = {};
    std::snprintf(key, sizeof key, "%s", gpu);
    return protocol::add_tenant(key, name, family) ? "" : key;
}

TEST_CASE("server key: of a strict tenant", "[server_key]") {
    CHECK(key_for(kUuid, "alice", "") == std::string(kUuid) + "@alice");
    CHECK(key_for("simulated", "job.1-a_b", "ignored") == "simulated@job.1-a_b");
    CHECK(key_for("simulated", nullptr, "group-12-in-4026531836") == "simulated@_group-12-in-4026531836");
    CHECK(key_for("simulated", "", "alice") != key_for("simulated", "alice", ""));
    const std::string longest(63, 'n');
    CHECK(key_for(kUuid, longest.c_str(), "") == std::string(kUuid) + "@" + longest);
    CHECK(key_for(kUuid, nullptr, longest.c_str()) == std::string(kUuid) + "@_" + longest);
    CHECK(key_for(std::string(64, 'k').c_str(), std::string(70, 'n').c_str(), "").empty());
    for (const char* bad :
         {"../up", "..", ".", ".a", "a/b", "a b", "_a", "-a", "a@b", "\xc3\xa4", "a\n", "a\"b"})
        CHECK(key_for("simulated", bad, "").empty());
    for (const char* bad : {"", "group 1", "../up", "a/b"}) CHECK(key_for("simulated", nullptr, bad).empty());
}

TEST_CASE("server key: a key is a plain file name", "[server_key]") {
    for (const char* good : {kUuid, "simulated", "device", "simulated@alice", "a-b_c@_f", "g@a.b"})
        CHECK(protocol::is_key(good));
    for (const char* bad : {"", "@", "@a", "g@", "../g", "g/h", "g@../x", "g@a/b", "g@a@b", "g.h", "g h"})
        CHECK_FALSE(protocol::is_key(bad));
    CHECK_FALSE(protocol::is_key(std::string(65, 'k')));
    CHECK_FALSE(protocol::is_key("g@" + std::string(200, 'n')));
    CHECK(protocol::gpu_of_key("simulated@alice") == "simulated");
    CHECK(protocol::gpu_of_key("simulated") == "simulated");
    CHECK(protocol::is_strict_key("simulated@alice"));
    CHECK_FALSE(protocol::is_strict_key("simulated"));
}

// As a server leaves them, some seconds ago.
void leave_files(const TemporaryFolder& folder, const std::string& key, int seconds) {
    for (const char* suffix : {".lock", ".start", ".log", ".log.1", ".journal", ".journal.1", ".fault"}) {
        const std::string path = folder.file(key + suffix);
        std::ofstream(path) << "";
        fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
    }
}

std::set<std::string> names_in(const TemporaryFolder& folder) {
    std::set<std::string> names;
    for (const auto& each : fs::directory_iterator(folder.path())) names.insert(each.path().filename());
    return names;
}

TEST_CASE("server key: files of the oldest strict servers that have ended are deleted", "[server_key]") {
    using smt::runtime::server::kMostStrictServers;
    TemporaryFolder folder;
    leave_files(folder, "simulated", 9000);
    for (size_t i = 0; i < kMostStrictServers; ++i)
        leave_files(folder, "simulated@new" + std::to_string(i), static_cast<int>(i));
    const std::set<std::string> stay = names_in(folder);
    leave_files(folder, "simulated@old", 5000);
    leave_files(folder, "simulated@runs", 6000);
    const int lock = open(folder.file("simulated@runs.lock").c_str(), O_RDWR | O_CLOEXEC);
    REQUIRE(flock(lock, LOCK_EX) == 0);
    smt::runtime::server::forget_strict_servers(folder.path());
    CHECK(fs::exists(folder.file("simulated@runs.journal")));
    CHECK_FALSE(fs::exists(folder.file("simulated@old.lock")));
    close(lock);
    smt::runtime::server::forget_strict_servers(folder.path());
    CHECK(names_in(folder) == stay);
}

TEST_CASE("server key: journals that are shown together", "[server_key]") {
    TemporaryFolder folder;
    SetVariable chosen("SMT_RUNTIME_DIR", folder.path().c_str());
    CHECK_THROWS_AS(smt::tools::find_journals(nullptr), smt::tools::Failure);
    leave_files(folder, "0a", 5);
    leave_files(folder, "simulated@b", 10);
    leave_files(folder, "simulated@a", 20);
    leave_files(folder, "simulated", 30);
    leave_files(folder, "simulated@c", 1);
    const auto path = [&](const char* key) { return folder.file(std::string(key) + ".journal"); };
    CHECK(smt::tools::find_journals(nullptr) ==
          std::vector<std::string>{path("simulated"), path("simulated@a"), path("simulated@b"),
                                   path("simulated@c")});
    const std::string other = "0a";
    CHECK(smt::tools::find_journals(&other) == std::vector<std::string>{path("0a")});
    CHECK(smt::tools::key_of_journal(path("simulated@job.1")) == "simulated@job.1");
}

}  // namespace
