// The command line and the environment of `smt`.
#include "tools/smt/command.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "runtime/protocol/runtime_folder.h"
#include "tests/unit/set_variable.h"
#include "tests/unit/temporary_folder.h"
#include "tools/smt/control.h"
#include "tools/smt/json.h"
#include "tools/smt/log_view.h"
#include "tools/smt/places.h"
#include "tools/smt/program_file.h"
#include "tools/smt/settings.h"

namespace smt::tools {
namespace {

using tests::SetVariable;
using tests::TemporaryFolder;
using tests::whole_file;

TEST_CASE("sizes", "[command]") {
    CHECK(parse_bytes("1") == 1);
    CHECK(parse_bytes("512K") == 512ull << 10);
    CHECK(parse_bytes("800M") == 800ull << 20);
    CHECK(parse_bytes("4G") == 4ull << 30);
    CHECK(parse_bytes("4GiB") == 4ull << 30);
    CHECK(parse_bytes("1T") == 1ull << 40);
    for (const char* bad :
         {"", "G", "0", "-1", "4X", "4Gx", "4 G", "99999999999999999999", "99999999999T", "1.5G"})
        CHECK_THROWS_AS(parse_bytes(bad), Misuse);
}

TEST_CASE("limits for kernels are whole seconds", "[command]") {
    const auto limit = [](const char* text) {
        return parse_seconds("--kernel-limit", settings::Id::kKernelLimit, 1, text);
    };
    CHECK(limit("1") == 1);
    CHECK(limit("86400") == 86400);
    for (const char* bad : {"", "0", "-1", "1.5", "2s", "86401", "soon"}) CHECK_THROWS_AS(limit(bad), Misuse);
    CHECK(parse_seconds("--memory-wait", settings::Id::kMemoryWait, 0, "0") == 0);
}

TEST_CASE("priorities", "[command]") {
    CHECK(parse_multiprocessors("32") == 32);
    for (const char* bad : {"", "0", "-8", "8x", "5000", "99999999999999999999"})
        CHECK_THROWS_AS(parse_multiprocessors(bad), Misuse);
    CHECK(parse_priority("0") == 0);
    CHECK(parse_priority("-3") == -3);
    CHECK(parse_priority("high") > parse_priority("normal"));
    CHECK(parse_priority("low") < parse_priority("normal"));
    for (const char* bad : {"", "higher", "1x", "99999999999"}) CHECK_THROWS_AS(parse_priority(bad), Misuse);
}

TEST_CASE("targets", "[command]") {
    for (const char* fine : {"8ms", "8", "500us", "1.5s"}) CHECK(parse_time(fine) == fine);
    for (const char* bad : {"", "0", "8x", "ms", "-1ms", "2h"}) CHECK_THROWS_AS(parse_time(bad), Misuse);
    for (const char* fine : {"1.1", "2", "100"}) CHECK(parse_slowdown(fine) == fine);
    for (const char* bad : {"", "1", "0.5", "1.1x", "nan", "1000"})
        CHECK_THROWS_AS(parse_slowdown(bad), Misuse);
}

TEST_CASE("weights", "[command]") {
    for (const char* fine : {"1", "2.5", "0.001", "1000"}) CHECK(parse_weight(fine) == fine);
    for (const char* bad : {"", "0", "-1", "0.0001", "1001", "2x", "nan", "heavy"})
        CHECK_THROWS_AS(parse_weight(bad), Misuse);
}

TEST_CASE("options", "[command]") {
    Options options = parse_options({"--json", "--tenant", "a", "--memory=4G", "prog", "--json"}, {"--json"},
                                    {"--tenant", "--memory"}, Operands::kCommandLine);
    CHECK(options.has("--json"));
    CHECK(*options.value("--tenant") == "a");
    CHECK(*options.value("--memory") == "4G");
    CHECK(options.operands == Arguments{"prog", "--json"});
    CHECK(parse_options({"--", "--json"}, {}, {}, Operands::kCommandLine).operands == Arguments{"--json"});
    CHECK_THROWS_AS(parse_options({"--jsn"}, {"--json"}, {}), Misuse);
    CHECK_THROWS_AS(parse_options({"--json=1"}, {"--json"}, {}), Misuse);
    CHECK_THROWS_AS(parse_options({"--tenant"}, {}, {"--tenant"}), Misuse);
    CHECK_THROWS_AS(parse_options({"extra"}, {}, {}), Misuse);
}

TEST_CASE("the runtime folder", "[command]") {
    TemporaryFolder folder;
    {
        SetVariable chosen("SMT_RUNTIME_DIR", "/chosen"), xdg("XDG_RUNTIME_DIR", "/xdg");
        CHECK(runtime_directory() == "/chosen");
    }
    {
        SetVariable chosen("SMT_RUNTIME_DIR", "chosen");
        CHECK_THROWS_WITH(runtime_directory(), Catch::Contains("absolute path"));
    }
    // A user's programs meet at one server, whatever else their environments say.
    SetVariable chosen("SMT_RUNTIME_DIR", nullptr);
    std::string with;
    {
        SetVariable xdg("XDG_RUNTIME_DIR", folder.path().c_str());
        with = runtime_directory();
    }
    {
        SetVariable xdg("XDG_RUNTIME_DIR", nullptr);
        CHECK(runtime_directory() == with);
    }
    CHECK(runtime_directory_problem(folder.path()).empty());
    CHECK(runtime_directory_problem(folder.file("missing")).empty());
    ::chmod(folder.path().c_str(), 0755);
    CHECK_FALSE(runtime_directory_problem(folder.path()).empty());
    std::ofstream(folder.file("file")) << "";
    CHECK_FALSE(runtime_directory_problem(folder.file("file")).empty());
}

TEST_CASE("a runtime folder that another user's file blocks is passed over for the next place", "[command]") {
    TemporaryFolder first, second;
    const char* const places[] = {first.path().c_str(), "/nowhere", second.path().c_str()};
    const std::string name = "smt-" + std::to_string(::geteuid());
    char path[512];
    REQUIRE(protocol::pick_runtime_folder(places, path, sizeof path));
    CHECK(path == first.file(name));
    REQUIRE(::symlink("/tmp", first.file(name).c_str()) == 0);
    REQUIRE(protocol::pick_runtime_folder(places, path, sizeof path));
    CHECK(path == second.file(name));
    REQUIRE(::mkdir(second.file(name).c_str(), 0700) == 0);
    REQUIRE(::unlink(first.file(name).c_str()) == 0);  // the folder that is in use stays the one
    REQUIRE(protocol::pick_runtime_folder(places, path, sizeof path));
    CHECK(path == second.file(name));
    std::ofstream(first.file(name)) << "";
    REQUIRE(::rmdir(second.file(name).c_str()) == 0);
    std::ofstream(second.file(name)) << "";
    CHECK_FALSE(protocol::pick_runtime_folder(places, path, sizeof path));
}

TEST_CASE("servers are found by what they leave in the runtime folder", "[command]") {
    TemporaryFolder folder;
    SetVariable chosen("SMT_RUNTIME_DIR", folder.path().c_str());
    CHECK(keys_with(".sock").empty());
    std::ofstream(folder.file("0a1b.sock")) << "";
    std::ofstream(folder.file("0a1b.journal")) << "";
    std::ofstream(folder.file(".sock")) << "";
    CHECK(keys_with(".sock") == std::vector<std::string>{"0a1b"});
    CHECK(path_of("0a1b", ".log") == folder.file("0a1b.log"));
    CHECK_FALSE(ask_server("nobody", protocol::ControlKind::kStatus).has_value());
    ::chmod(folder.path().c_str(), 0755);
    CHECK_THROWS_AS(keys_with(".sock"), Failure);  // not: there is no server
}

TEST_CASE("a journal is complete when its server's process has ended", "[command]") {
    TemporaryFolder folder;
    const std::string journal = folder.file("0a.journal");
    CHECK(is_complete(journal));
    const int lock = ::open(folder.file("0a.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(::flock(lock, LOCK_EX | LOCK_NB) == 0);
    CHECK_FALSE(is_complete(journal));
    CHECK(is_complete(journal + ".1"));
    ::close(lock);
    CHECK(is_complete(journal));
}

TEST_CASE("which CUDA runtime a program has", "[command]") {
    TemporaryFolder folder;
    auto examine = [&](const std::string& bytes) {
        std::ofstream(folder.file("program"), std::ios::binary) << bytes;
        return examine_program(folder.file("program"));
    };
    const std::string text = "CUDA driver version is insufficient for CUDA runtime version";
    const std::string memory = "/cudart.shm.%x";
    const std::string shell = whole_file("/bin/sh");
    REQUIRE(shell.size() > 1000);

    CHECK(examine(shell).is_elf);
    CHECK_FALSE(examine(shell).static_runtime);
    CHECK(examine(shell).shared_runtime.empty());
    CHECK(examine(shell + text + memory).static_runtime);
    CHECK_FALSE(examine(shell + text).static_runtime);  // a user of the driver may say that
    CHECK_FALSE(examine(text + memory).is_elf);
    CHECK_FALSE(examine("#!/usr/bin/python3\n").is_elf);
    CHECK_FALSE(examine_program(folder.file("missing")).is_elf);
    CHECK_FALSE(examine_program(folder.path()).is_elf);
    for (size_t bytes = 0; bytes < 4096; bytes += 13) examine(shell.substr(0, bytes));  // cut off anywhere
    std::string crooked = shell;
    for (size_t at = 16; at < 4096 && at < crooked.size(); at += 3) crooked[at] = char(at * 37);
    examine(crooked);

#ifdef SMT_SHARED_RUNTIME_PROGRAM  // a program that was linked with ours
    CHECK(examine_program(SMT_SHARED_RUNTIME_PROGRAM).shared_runtime == kRuntimeFile);
    CHECK_FALSE(examine_program(SMT_SHARED_RUNTIME_PROGRAM).static_runtime);
    CHECK_FALSE(examine(whole_file(SMT_SHARED_RUNTIME_PROGRAM) + text + memory).static_runtime);
#endif
}

TEST_CASE("which loader a program has", "[command]") {
    TemporaryFolder folder;
    auto loader = [&](const std::string& bytes) {
        std::ofstream(folder.file("program"), std::ios::binary) << bytes;
        return loader_of(folder.file("program"));
    };
    const std::string name = "/lib64/ld-linux-x86-64.so.2", musl = "/lib/ld-musl-x86_64.so.1";
    std::string shell = whole_file("/bin/sh");
    REQUIRE(shell.find(name) != shell.npos);
    CHECK(loader(shell) == name);
    CHECK(loader(shell.replace(shell.find(name), name.size() + 1, musl + std::string(4, '\0'))) == musl);
    Elf64_Ehdr header{};
    std::memcpy(&header, shell.data(), sizeof header);
    header.e_phnum = 0;
    CHECK(loader(std::string(reinterpret_cast<char*>(&header), sizeof header)) == "");
    CHECK_FALSE(loader("#!/bin/sh\n"));
    CHECK_FALSE(loader_of(folder.file("missing")));
    for (size_t bytes = 0; bytes < 4096; bytes += 13) loader(shell.substr(0, bytes));  // cut off anywhere
}

TEST_CASE("names for people and for programs", "[command]") {
    CHECK(demangle("_Z5saxpyifPfS_") == "saxpy(int, float, float*, float*)");
    CHECK(demangle("plain_kernel") == "plain_kernel");
    CHECK(json_string("a\"b\\c\n\x01") == R"("a\"b\\c\n\u0001")");
    CHECK(json_string("\xc3\xa4\xff") == "\"\xc3\xa4\xef\xbf\xbd\"");  // a tenant may be called anything
}

}  // namespace
}  // namespace smt::tools
