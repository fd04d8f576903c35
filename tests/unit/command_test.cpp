// The command line and the environment of `smt`.
#include "tools/smt/command.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "runtime/protocol/environment.h"
#include "tests/unit/temporary_folder.h"
#include "tools/smt/control.h"
#include "tools/smt/json.h"
#include "tools/smt/log_view.h"
#include "tools/smt/places.h"
#include "tools/smt/settings.h"

namespace smt::tools {
namespace {

using tests::TemporaryFolder;

// A variable for the length of a test.
class Setting {
public:
    Setting(const char* name, const char* value) : name_(name) {
        if (const char* before = std::getenv(name)) before_ = before, had_ = true;
        value ? ::setenv(name, value, 1) : ::unsetenv(name);
    }
    ~Setting() { had_ ? ::setenv(name_, before_.c_str(), 1) : ::unsetenv(name_); }

private:
    const char* name_;
    std::string before_;
    bool had_ = false;
};

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

TEST_CASE("priorities", "[command]") {
    CHECK(parse_priority("0") == 0);
    CHECK(parse_priority("-3") == -3);
    for (const char* bad : {"", "high", "1x", "99999999999"}) CHECK_THROWS_AS(parse_priority(bad), Misuse);
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
        Setting chosen(environment::kRuntimeDir, "/chosen"), xdg(environment::kXdgRuntimeDir, "/xdg");
        CHECK(runtime_directory() == "/chosen");
    }
    {
        Setting chosen(environment::kRuntimeDir, nullptr), xdg(environment::kXdgRuntimeDir, "/xdg");
        CHECK(runtime_directory() == "/xdg/smt");
    }
    {
        Setting chosen(environment::kRuntimeDir, ""), xdg(environment::kXdgRuntimeDir, nullptr);
        CHECK(runtime_directory().starts_with("/tmp/smt-"));
    }
    CHECK(runtime_directory_problem(folder.path()).empty());
    CHECK(runtime_directory_problem(folder.file("missing")).empty());
    ::chmod(folder.path().c_str(), 0755);
    CHECK_FALSE(runtime_directory_problem(folder.path()).empty());
    std::ofstream(folder.file("file")) << "";
    CHECK_FALSE(runtime_directory_problem(folder.file("file")).empty());
}

TEST_CASE("servers are found by what they leave in the runtime folder", "[command]") {
    TemporaryFolder folder;
    Setting chosen(environment::kRuntimeDir, folder.path().c_str());
    CHECK(keys_with(".sock").empty());
    std::ofstream(folder.file("0a1b.sock")) << "";
    std::ofstream(folder.file("0a1b.journal")) << "";
    std::ofstream(folder.file(".sock")) << "";
    CHECK(keys_with(".sock") == std::vector<std::string>{"0a1b"});
    CHECK(path_of("0a1b", ".log") == folder.file("0a1b.log"));
    CHECK_FALSE(ask_server("nobody", protocol::ControlKind::kStatus).has_value());
}

TEST_CASE("names for people and for programs", "[command]") {
    CHECK(demangle("_Z5saxpyifPfS_") == "saxpy(int, float, float*, float*)");
    CHECK(demangle("plain_kernel") == "plain_kernel");
    CHECK(json_string("a\"b\\c\n") == R"("a\"b\\c\u000a")");
}

}  // namespace
}  // namespace smt::tools
