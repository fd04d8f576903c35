// The table of settings: what values are taken, where they come from, and what is said about wrong ones.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>

#include "runtime/protocol/server_key.h"
#include "runtime/schedule/policy.h"
#include "runtime/settings/config.h"
#include "runtime/settings/document.h"
#include "runtime/settings/read.h"
#include "runtime/settings/spelling.h"
#include "tests/unit/set_variable.h"
#include "tests/unit/temporary_folder.h"

namespace smt::settings {
namespace {

using Catch::Contains;
using tests::SetVariable;
using tests::TemporaryFolder;

bool takes(Id id, std::string_view value) { return accepts(setting(id), value); }

std::string write(const TemporaryFolder& folder, const std::string& name, const std::string& text) {
    std::ofstream(folder.file(name)) << text;
    return folder.file(name);
}

File file_of(const std::string& text) {
    TemporaryFolder folder;
    return read_file(write(folder, "smt.toml", text));
}

TEST_CASE("numbers and sizes", "[settings]") {
    auto read = [](const char* text, uint64_t least, uint64_t most) {
        uint64_t value = 0;
        return read_number(text, least, most, &value) ? std::to_string(value) : "none";
    };
    CHECK(read("0", 0, UINT64_MAX) == "0");
    CHECK(read("12", 1, 12) == "12");
    CHECK(read("2m", 0, UINT64_MAX) == "2097152");
    CHECK(read("4GiB", 0, UINT64_MAX) == "4294967296");
    CHECK(read("18446744073709551615", 0, UINT64_MAX) == "18446744073709551615");
    for (const char* bad :
         {"", "K", "-1", "+1", " 1", "1 ", "1x", "1Kx", "1iB", "0x10", "18446744073709551616", "16777216T"})
        CHECK(read(bad, 0, UINT64_MAX) == "none");
    CHECK(read("13", 1, 12) == "none");
    CHECK(read("0", 1, 12) == "none");
}

TEST_CASE("each type takes its values and no others", "[settings]") {
    const std::pair<Id, const char*> good[] = {
        {Id::kMemoryLimit, "4G"}, {Id::kPriority, "-2"},         {Id::kPriority, "high"},
        {Id::kWeight, "2.5"},     {Id::kWeight, ".5"},           {Id::kWeight, "1000"},
        {Id::kWeight, "0.001"},   {Id::kProfile, "pairs"},       {Id::kMapping, "0"},
        {Id::kP99, "8ms"},        {Id::kP99, "12.000"},          {Id::kP99, "1us"},
        {Id::kP99, "1.5s"},       {Id::kP99, "3600s"},           {Id::kSlowdown, "1.1"},
        {Id::kSlowdown, "1.001"}, {Id::kSlowdown, "100"},        {Id::kTenant, "a b"},
        {Id::kSimMemory, "2M"},   {Id::kIdleSeconds, "0"},       {Id::kRuntimeDir, "/tmp/x"},
        {Id::kDevice, "sim"},     {Id::kPriority, "-2147483647"}};
    for (const auto& [id, value] : good) {
        INFO(variable_of(id) << " " << value);
        CHECK(takes(id, value));
    }
    const std::pair<Id, const char*> bad[] = {
        {Id::kMemoryLimit, "banana"},
        {Id::kPriority, "urgent"},
        {Id::kPriority, "1K"},
        {Id::kPriority, "99999999999"},
        {Id::kWeight, "-3"},
        {Id::kP99, "0"},
        {Id::kP99, "0.5us"},
        {Id::kP99, "3601s"},
        {Id::kP99, "8 ms"},
        {Id::kP99, "8m"},
        {Id::kP99, "ms"},
        {Id::kP99, "-8ms"},
        {Id::kP99, "99999999999999999999s"},
        {Id::kSlowdown, "1"},
        {Id::kSlowdown, "0.9"},
        {Id::kSlowdown, "101"},
        {Id::kSlowdown, "10%"},
        {Id::kWeight, "0"},
        {Id::kWeight, "1000.001"},
        {Id::kWeight, "0.0001"},
        {Id::kWeight, "1.2.3"},
        {Id::kWeight, "."},
        {Id::kWeight, "nan"},
        {Id::kMultiprocessors, "4097"},
        {Id::kDevice, "tpu"},
        {Id::kDevice, "gpu|sim"},
        {Id::kFallback, "err"},
        {Id::kIdleSeconds, "-1"},
        {Id::kMapping, "yes"},
        {Id::kMapping, "2"},
        {Id::kSimMemory, "1M"},
        {Id::kProfile, "all"},
        {Id::kRuntimeDir, "here"},
        {Id::kTenant, "a name that is too long for the field in the greeting, which has 63 bytes"}};
    for (const auto& [id, value] : bad) {
        INFO(variable_of(id) << " " << value);
        CHECK_FALSE(takes(id, value));
    }
}

TEST_CASE("the table has the policies that there are", "[settings]") {
    std::vector<std::string> words;
    std::istringstream list(setting(Id::kPolicy).takes.words);
    for (std::string word; std::getline(list, word, '|');) words.push_back(word);
    CHECK(words == runtime::schedule::policy_names());
}

TEST_CASE("items of a list", "[settings]") {
    CHECK(item_in("sms=8,grace=100", "sms") == "8");
    CHECK(item_in("sms=8,grace=100", "grace") == "100");
    CHECK(item_in("sms=8,sms=4", "sms") == "4");
    CHECK(item_in("mapping,times=0", "mapping") == "1");
    CHECK(item_in("smss=8,sm=3", "sms").empty());
    CHECK(item_in("sms=8,sms=", "sms").empty());
    CHECK(item_in("", "sms").empty());
    CHECK(item_in(",,sms=,", "sms").empty());
}

TEST_CASE("a value that is not taken counts as the default, and is named with what would be", "[settings]") {
    SetVariable sim("SMT_SIM", "sms=lots,grace=7"), idle("SMT_IDLE_SECONDS", "soon"),
        device("SMT_DEVICE", nullptr);
    CHECK(number_of(Id::kSimMultiprocessors) == 8);
    CHECK(number_of(Id::kSimGrace) == 7);
    CHECK(number_of(Id::kIdleSeconds) == 60);
    char text[200];
    REQUIRE(find_problem(kSimulator, text, sizeof text));
    CHECK(std::string(text) == "sms in SMT_SIM is 'lots'; it takes a number from 1 to 256");
    CHECK_FALSE(find_problem(kWorker, text, sizeof text));
    CHECK(Config({}).problems() ==
          std::vector<std::string>{"SMT_IDLE_SECONDS is 'soon'; it takes a number from 0 to 86400",
                                   "sms in SMT_SIM is 'lots'; it takes a number from 1 to 256"});
    SetVariable wrong_device("SMT_DEVICE", "tpu\033");
    CHECK(Config({}).problems()[0] == "SMT_DEVICE is 'tpu?'; it takes gpu, sim");
}

TEST_CASE("misspelled names are named with the one that may be meant", "[settings]") {
    SetVariable policy("SMT_POLCY", "fair"), far("SMT_SOMETHING_ELSE", "1"), old("SMT_SIM_SMS", "4"),
        tests("SMT_FAKE_MEMORY", "1");
    const std::vector<std::string> unknown = Config({}).unknown_variables();
    const auto has = [&](const std::string& line) {
        return std::find(unknown.begin(), unknown.end(), line) != unknown.end();
    };
    CHECK(unknown.size() == 3);
    CHECK(has("SMT_POLCY is no setting of smt; do you mean SMT_POLICY?"));
    CHECK(has("SMT_SOMETHING_ELSE is no setting of smt"));
    CHECK(has("SMT_SIM_SMS is not read any more: it is sms in SMT_SIM"));
    SetVariable sim("SMT_SIM", "smss=8,fish=3");
    CHECK(Config({}).problems() ==
          std::vector<std::string>{
              "smss in SMT_SIM is none of its items; do you mean sms?",
              "fish in SMT_SIM is none of its items: gpus, sms, memory, step_limit, grace, tenants, "
              "dispatch_clock, loads_wait, one_context, doors, streams"});
    CHECK(edit_distance("polcy", "policy") == 1);
    CHECK(edit_distance("pocily", "policy") == 2);
    CHECK(edit_distance("oplicy", "policy") == 1);
    CHECK(edit_distance("", "abc") == 3);
}

TEST_CASE("old names are no settings, and each has a new one", "[settings]") {
    for (const Renamed& each : kRenamed) {
        INFO(each.old_name);
        for (const Setting& setting : kSettings) CHECK(each.old_name != std::string(setting.variable));
        CHECK(std::any_of(std::begin(kSettings), std::end(kSettings),
                          [&](const Setting& setting) { return name_of(setting) == each.new_name; }));
    }
}

TEST_CASE("a config file", "[settings]") {
    const File file = file_of(
        "policy = \"fair\"\nidle_seconds = 600\nmemory_limit = \"8G\"\nweight = 2.5\n[journal]\nmapping = "
        "true\n[compile]\nworkers = 4\n");
    CHECK(file.problems.empty());
    CHECK(file.values == std::map<Id, std::string>{{Id::kPolicy, "fair"},
                                                   {Id::kIdleSeconds, "600"},
                                                   {Id::kMemoryLimit, "8G"},
                                                   {Id::kWeight, "2.5"},
                                                   {Id::kMapping, "1"},
                                                   {Id::kCompileWorkers, "4"}});
    CHECK(read_file("/nowhere/smt.toml").problems.empty());
    CHECK(read_file("/nowhere/smt.toml").values.empty());
    CHECK(file_of("").problems.empty());
    CHECK(file_of("[sim]\n").problems.empty());
}

TEST_CASE("what is wrong with a config file is said with its line", "[settings]") {
    const std::pair<const char*, const char*> wrong[] = {
        {"policy = \"fair\"\nidle_seconds = \"soon\"\n",
         "smt.toml:2: idle_seconds is 'soon'; it takes a number from 0 to 86400"},
        {"idle_seconds = -1\n", "smt.toml:1: idle_seconds is '-1'; it takes a number from 0 to 86400"},
        {"idle_seconds = true\n", "smt.toml:1: idle_seconds is '1'; it takes"},
        {"idle_seconds = [1]\n", "smt.toml:1: idle_seconds is ''; it takes"},
        {"\npolcy = \"fair\"\n", "smt.toml:2: polcy is no setting; do you mean policy?"},
        {"[compile]\nworker_count = 2\n", "smt.toml:2: compile.worker_count is no setting"},
        {"[compil]\nworkers = 2\n", "compil is no setting"},
        {"[compile.workers]\nx = 2\n", "compile.workers is ''"},
        {"compile = 3\n", "compile is no setting"},
        {"tenant = \"a\"\n", "smt.toml:1: tenant is not read from files; set SMT_TENANT"},
        {"stress = 7\n", "smt.toml:1: stress is not read from files; set SMT_STRESS"},
        {"[sim]\nstreams = \"/a,b\"\n", "smt.toml:2: sim.streams cannot have a comma"},
        {"policy = \"fair\npolicy = 3\n", "smt.toml:1: "},
        {"policy = \"fair\"\npolicy = \"fifo\"\n", "smt.toml:2: "}};
    for (const auto& [text, problem] : wrong) {
        INFO(text);
        const File file = file_of(text);
        REQUIRE(file.problems.size() == 1);
        CHECK_THAT(file.problems[0], Contains(problem));
        CHECK(file.values.size() == (std::string(text).starts_with("policy = \"fair\"\nidle") ? 1 : 0));
    }
    TemporaryFolder folder;
    const File unreadable = read_file(folder.path());  // a folder
    REQUIRE(unreadable.problems.size() == 1);
    CHECK_THAT(unreadable.problems[0], Contains("directory"));
}

TEST_CASE("the environment goes before the user's file, and that before the administrator's", "[settings]") {
    SetVariable policy("SMT_POLICY", "hpf"), idle("SMT_IDLE_SECONDS", nullptr), weight("SMT_WEIGHT", ""),
        sim("SMT_SIM", "grace=7");
    const Config config(
        {file_of("policy = \"fair\"\nidle_seconds = 1\nweight = 2\n[sim]\nsms = 3\ngrace = 9\n"),
         file_of(
             "policy = \"fifo\"\nidle_seconds = 2\nweight = 3\nfallback = \"native\"\n[sim]\nsms = 4\n")});
    const auto value = [&](Id id) { return config.source_of(setting(id)).value; };
    CHECK(value(Id::kPolicy) == "hpf");
    CHECK(value(Id::kIdleSeconds) == "1");
    CHECK(value(Id::kWeight) == "2");
    CHECK(value(Id::kFallback) == "native");
    CHECK(value(Id::kSimMultiprocessors) == "3");
    CHECK(value(Id::kSimGrace) == "7");
    CHECK(value(Id::kSessionLanes) == "1024");
    CHECK(value(Id::kCompiler).empty());
    CHECK(config.source_of(setting(Id::kPolicy)).from == "environment");
    CHECK_THAT(config.source_of(setting(Id::kWeight)).from, Contains("smt.toml"));
    CHECK(config.source_of(setting(Id::kSessionLanes)).from == "default");

    SetVariable fallback("SMT_FALLBACK", nullptr);
    config.apply();
    CHECK(is(Id::kPolicy, "hpf"));
    CHECK(number_of(Id::kIdleSeconds) == 1);
    CHECK(is(Id::kWeight, "2"));
    CHECK(is(Id::kFallback, "native"));
    CHECK(std::string(std::getenv("SMT_SIM")) == "grace=7,sms=3");
}

TEST_CASE("tenants that have to be strict are those that the administrator's file names", "[settings]") {
    SetVariable own("SMT_STRICT_TENANTS", "mine");
    const Setting& strict = setting(Id::kStrictTenants);
    const File users = file_of("strict_tenants = \"users\"\n"), none = file_of("policy = \"fair\"\n");
    CHECK(Config({users, none}).source_of(strict).value == "mine");
    const Config config({users, file_of("strict_tenants = \"a, bc,d\"\n")});
    CHECK(config.source_of(strict).value == "a, bc,d");
    Config({users, none}).apply();
    CHECK(protocol::has_to_be_strict("mine"));
    config.apply();
    for (const char* each : {"a", "bc", "d"}) CHECK(protocol::has_to_be_strict(each));
    for (const char* each : {"", "b", "c", "bcd", "mine", "users", "a, bc"})
        CHECK_FALSE(protocol::has_to_be_strict(each));
    SetVariable empty("SMT_STRICT_TENANTS", nullptr);
    CHECK_FALSE(protocol::has_to_be_strict(""));
}

TEST_CASE("where config files are", "[settings]") {
    SetVariable xdg("XDG_CONFIG_HOME", "/xdg"), home("HOME", "/home/a"), system("SMT_SYSTEM_FILE", nullptr);
    CHECK(user_file() == "/xdg/smt.toml");
    CHECK(system_file() == "/etc/smt.toml");
    SetVariable no_xdg("XDG_CONFIG_HOME", nullptr);
    CHECK(user_file() == "/home/a/.config/smt.toml");
    SetVariable no_home("HOME", nullptr);
    CHECK(user_file().empty());
}

TEST_CASE("docs/settings.md is what the table makes", "[settings]") {
    std::ifstream file(SMT_SETTINGS_DOCUMENT);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    CHECK((text == document()));  // else: smt config --markdown > docs/settings.md
}

}  // namespace
}  // namespace smt::settings
