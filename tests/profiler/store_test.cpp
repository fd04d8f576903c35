#include "profiler/store/store.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <thread>
#include <vector>

#include "profiler/store/database.h"
#include "tests/profiler/cost.h"
#include "tests/profiler/profiles.h"
#include "tests/unit/temporary_folder.h"

namespace smt::profiler {
namespace {

using tests::problem_of;
using tests::some_key;
using tests::some_profile;
using tests::TemporaryFolder;
using tests::value_of;

TEST_CASE("grid classes are powers of two", "[profiles]") {
    CHECK(grid_class(0) == 0);
    CHECK(grid_class(1) == 0);
    CHECK(grid_class(2) == 1);
    CHECK(grid_class(3) == 1);
    CHECK(grid_class(4) == 2);
    CHECK(grid_class(4095) == 11);
    CHECK(grid_class(4096) == 12);
    CHECK(grid_class(~0ull) == 63);
}

TEST_CASE("a profile comes back as it was recorded, in another store as well", "[profiles]") {
    TemporaryFolder folder;
    const std::string path = folder.file("deep/er/profiles.db");
    Profile least;
    least.key = some_key("_Z4least");
    {
        Store store(path);
        CHECK_FALSE(value_of(store.find(some_key())));
        CHECK(problem_of(store.record(some_profile())).empty());
        CHECK(problem_of(store.record(least)).empty());
        CHECK(value_of(store.find(some_key())) == some_profile());
    }
    Store store(path);
    CHECK(value_of(store.find(some_key())) == some_profile());
    CHECK(value_of(store.find(least.key)) == least);
    CHECK(value_of(store.list()) == std::vector<Profile>{least, some_profile()});
}

TEST_CASE("each part of the key makes another profile", "[profiles]") {
    TemporaryFolder folder;
    Store store(folder.file("p"));
    std::vector<Key> keys(8, some_key());
    keys[1].kernel += "x";
    keys[2].image = "4f2b";
    keys[3].block = {128, 1, 1};
    keys[4].block = {256, 2, 1};
    keys[5].block = {256, 1, 2};
    keys[6].grid_class = 13;
    keys[7].device = "NVIDIA A100";
    for (size_t i = 0; i < keys.size(); ++i) {
        Profile profile;
        profile.key = keys[i];
        profile.preemption = {static_cast<int64_t>(i) + 1, 0};
        REQUIRE(problem_of(store.record(profile)).empty());
    }
    for (size_t i = 0; i < keys.size(); ++i) {
        const auto found = value_of(store.find(keys[i]));
        REQUIRE(found);
        CHECK(found->preemption.stops == static_cast<int64_t>(i) + 1);
    }
}

TEST_CASE("a record merges: sums are added, facts replaced", "[profiles]") {
    TemporaryFolder folder;
    Store store(folder.file("p"));
    REQUIRE(problem_of(store.record(some_profile())).empty());
    Profile news;
    news.key = some_key();
    news.times[{132, 8}] = {10, 50000, 1, 3000};
    news.times[{66, 8}] = {1, 5000, 1, 600};
    news.beside[{some_key("_Z5otherv"), 3, 5}] = {1, 1000, 200};
    news.beside[{some_key("_Z5otherv"), 5, 3}] = {1, 7, 8};
    news.counters = {1, 2, 3, 4, 5, 6, 7};
    news.preemption = {1, 40000};
    news.coefficients = {{"duration.ns_per_block", 0.08}, {"saturation.sms", 66}};
    REQUIRE(problem_of(store.record(news)).empty());

    Profile expected = some_profile();
    expected.times[{132, 8}] = {12, 60000, 4097, 3700};
    expected.times[{66, 8}] = {1, 5000, 1, 600};
    expected.beside[{some_key("_Z5otherv"), 3, 5}] = {3, 5000, 800};
    expected.beside[{some_key("_Z5otherv"), 5, 3}] = {1, 7, 8};
    expected.counters = {5001, 352, 100003, 20004, 505, 4006, 2007};
    expected.preemption = {4, 100000};
    expected.coefficients = {
        {"duration.intercept_ns", 120.5}, {"duration.ns_per_block", 0.08}, {"saturation.sms", 66}};
    CHECK(value_of(store.find(some_key())) == expected);  // the resources are still known

    news = {};
    news.key = some_key();
    news.resources = Resources{40, 0, 0, 0, 6};
    REQUIRE(problem_of(store.record(news)).empty());
    expected.resources = news.resources;
    CHECK(value_of(store.find(some_key())) == expected);
}

TEST_CASE("each part of what was beside it makes another sum", "[profiles]") {
    TemporaryFolder folder;
    Store store(folder.file("p"));
    Profile profile;
    profile.key = some_key();
    std::vector<Beside> all(9, {some_key("other"), 2, 3});
    all[1].other.kernel += "x";
    all[2].other.image = "4f2b";
    all[3].other.block = {128, 1, 1};
    all[4].other.block = {256, 2, 1};
    all[5].other.block = {256, 1, 2};
    all[6].other.grid_class = 13;
    all[7].ctas_per_sm = 3;
    all[8].other_ctas_per_sm = 2;
    for (size_t i = 0; i < all.size(); ++i) profile.beside[all[i]] = {static_cast<int64_t>(i) + 1, 10, 100};
    REQUIRE(problem_of(store.record(profile)).empty());
    REQUIRE(problem_of(store.record(profile)).empty());
    const auto found = value_of(store.find(some_key()));
    REQUIRE(found);
    REQUIRE(found->beside.size() == all.size());
    for (size_t i = 0; i < all.size(); ++i)
        CHECK(found->beside.at(all[i]) == SharedTime{2 * (static_cast<int64_t>(i) + 1), 20, 200});
}

TEST_CASE("what was beside a kernel that is forgotten stays with the other one", "[profiles]") {
    TemporaryFolder folder;
    Store store(folder.file("p"));
    Profile a = some_profile("a"), b = some_profile("b");
    a.beside = {{{b.key, 1, 2}, {1, 10, 100}}};
    b.beside = {{{a.key, 2, 1}, {1, 20, 100}}};
    for (const Profile& each : {a, b}) REQUIRE(problem_of(store.record(each)).empty());
    CHECK(value_of(store.forget({.kernel = "a"})) == 1);
    CHECK(value_of(store.list()) == std::vector<Profile>{b});
    CHECK(Database(folder.file("p")).integer("SELECT count(*) FROM beside") == 1);
}

TEST_CASE("what is listed and forgotten can be chosen", "[profiles]") {
    TemporaryFolder folder;
    Store store(folder.file("p"));
    for (const char* kernel : {"a", "b"}) {
        for (const char* device : {"x", "y"}) {
            Profile profile = some_profile(kernel);
            profile.key.device = device;
            profile.beside.clear();
            REQUIRE(problem_of(store.record(profile)).empty());
        }
    }
    CHECK(value_of(store.list()).size() == 4);
    CHECK(value_of(store.list({.kernel = "a"})).size() == 2);
    CHECK(value_of(store.list({.kernel = "a", .device = "y"})).size() == 1);
    CHECK(value_of(store.list({.image = "4f2a"})).size() == 4);
    CHECK(value_of(store.list({.image = "none"})).empty());
    CHECK(value_of(store.forget({.kernel = "a", .image = "none"})) == 0);
    CHECK(value_of(store.forget({.kernel = "a", .device = "y"})) == 1);
    CHECK(value_of(store.list()).size() == 3);
    CHECK(value_of(store.forget({.device = "x"})) == 2);
    CHECK(value_of(store.forget({})) == 1);
    CHECK(value_of(store.list()).empty());
    // Nothing of them is left to be merged with.
    REQUIRE(problem_of(store.record(some_profile("a"))).empty());
    CHECK(value_of(store.list()) == std::vector<Profile>{some_profile("a")});
    Database database(folder.file("p"));
    CHECK(database.integer("SELECT count(*) FROM times") == 2);
    CHECK(database.integer("SELECT count(*) FROM coefficient") == 2);
    CHECK(database.integer("SELECT count(*) FROM beside") == 2);
}

TEST_CASE("what cannot be kept is refused, and nothing of it is kept", "[profiles]") {
    TemporaryFolder folder;
    Store store(folder.file("p"));
    Profile profile = some_profile();
    profile.coefficients["bad"] = std::numeric_limits<double>::quiet_NaN();
    CHECK(problem_of(store.record(profile)).find("bad") != std::string::npos);
    profile.coefficients["bad"] = std::numeric_limits<double>::infinity();
    CHECK_FALSE(problem_of(store.record(profile)).empty());
    profile = some_profile(std::string("a\0b", 3));
    CHECK_FALSE(problem_of(store.record(profile)).empty());
    profile = some_profile();
    profile.beside[{some_key(std::string("a\0b", 3)), 1, 1}] = {1, 1, 1};
    CHECK(problem_of(store.record(profile)).find("without NUL") != std::string::npos);
    profile = some_profile();
    profile.beside[{{"k", "i", {1, 1, 1}, 0, "another device"}, 1, 1}] = {1, 1, 1};
    CHECK(problem_of(store.record(profile)).find("of the same device") != std::string::npos);
    CHECK(value_of(store.list()).empty());

    // A sum beyond 64 bits: found out in the middle of the record.
    REQUIRE(problem_of(store.record(some_profile())).empty());
    profile = some_profile();
    profile.times[{132, 8}].nanoseconds = std::numeric_limits<int64_t>::max();
    const std::string problem = problem_of(store.record(profile));
    CHECK(problem.find(folder.file("p")) == 0);
    CHECK(value_of(store.list()) == std::vector<Profile>{some_profile()});
}

TEST_CASE("names may hold whatever SQL, JSON and CSV have a meaning for", "[profiles]") {
    TemporaryFolder folder;
    Store store(folder.file("p"));
    const std::string name = "a'; DROP TABLE profile; --\"\\,\n\t\x01\xc3\xbc";
    Profile profile = some_profile(name);
    profile.coefficients = {{name, 1}};
    REQUIRE(problem_of(store.record(profile)).empty());
    CHECK(value_of(store.find(some_key(name))) == profile);
    CHECK(value_of(store.list({.kernel = name})).size() == 1);
    const std::string json = value_of(store.export_json());
    CHECK(json.find("\"kernel\":\"a'; DROP TABLE profile; --\\\"\\\\,\\n\\t\\u0001\xc3\xbc\"") !=
          std::string::npos);
    const std::string csv = value_of(store.export_csv());
    CHECK(csv.find("\r\n\"a'; DROP TABLE profile; --\"\"\\,\n\t\x01\xc3\xbc\",4f2a,") != std::string::npos);
}

TEST_CASE("JSON has everything", "[profiles]") {
    TemporaryFolder folder;
    Store store(folder.file("p"));
    CHECK(value_of(store.export_json()) == "[\n]\n");
    Profile least;
    least.key = some_key("b");
    REQUIRE(problem_of(store.record(least)).empty());
    REQUIRE(problem_of(store.record(some_profile("a"))).empty());
    std::string json = value_of(store.export_json());
    for (size_t at = 0; (at = json.find(",\"updated\":\"", at)) != std::string::npos;) json.erase(at, 33);
    CHECK(json ==
          "[\n"
          R"({"kernel":"a","image":"4f2a","device":"NVIDIA H200","block":[256,1,1],"grid_class":12,)"
          R"("resources":{"registers":32,"local_bytes":16,"static_shared_bytes":1024,)"
          R"("dynamic_shared_bytes":2048,)"
          R"("most_ctas_per_sm":8},"times":[)"
          R"({"sms":1,"ctas_per_sm":4,"launches":1,"blocks":5000,"input_bytes":2048,"nanoseconds":9000},)"
          R"({"sms":132,"ctas_per_sm":8,"launches":2,"blocks":10000,"input_bytes":4096,"nanoseconds":700}],)"
          R"("beside":[)"
          R"({"kernel":"_Z5otherv","image":"4f2a","block":[256,1,1],"grid_class":12,)"
          R"("ctas_per_sm":3,"other_ctas_per_sm":5,)"
          R"("windows":2,"blocks":4000,"nanoseconds":600},)"
          R"({"kernel":"_Z5thirdv","image":"77aa","block":[64,2,1],"grid_class":9,)"
          R"("ctas_per_sm":1,"other_ctas_per_sm":2,)"
          R"("windows":1,"blocks":100,"nanoseconds":50}],)"
          R"("learnt_times":[)"
          R"({"sms":132,"ctas_per_sm":4,"launches":1,"blocks":600,"nanoseconds":80}],)"
          R"("learnt_beside":[)"
          R"({"kernel":"_Z6fourthv","image":"4f2a","block":[256,1,1],"grid_class":12,)"
          R"("ctas_per_sm":2,"other_ctas_per_sm":2,)"
          R"("windows":3,"blocks":900,"nanoseconds":400}],)"
          R"("counters":{"blocks":5000,"nanoseconds":350,"instructions":100000,"memory_instructions":20000,)"
          R"("uncoalesced_instructions":500,"dram_reads":4000,"dram_writes":2000},)"
          R"("preemption":{"stops":3,"nanoseconds":60000},)"
          R"("slicing":{"slices":4,"nanoseconds":90000},)"
          R"("coefficients":{"duration.intercept_ns":120.5,"duration.ns_per_block":0.07}},)"
          "\n"
          R"({"kernel":"b","image":"4f2a","device":"NVIDIA H200","block":[256,1,1],"grid_class":12,)"
          R"("resources":null,"times":[],"beside":[],"learnt_times":[],"learnt_beside":[],)"
          R"("counters":{"blocks":0,"nanoseconds":0,"instructions":0,"memory_instructions":0,)"
          R"("uncoalesced_instructions":0,"dram_reads":0,"dram_writes":0},)"
          R"("preemption":{"stops":0,"nanoseconds":0},"slicing":{"slices":0,"nanoseconds":0},)"
          R"("coefficients":{}})"
          "\n]\n");
}

TEST_CASE("CSV has a line for each placement", "[profiles]") {
    TemporaryFolder folder;
    Store store(folder.file("p"));
    Profile least;
    least.key = some_key("b");
    REQUIRE(problem_of(store.record(least)).empty());
    REQUIRE(problem_of(store.record(some_profile("a"))).empty());
    std::string csv = value_of(store.export_csv());
    for (size_t at = 0; (at = csv.find("Z\r\n", at)) != std::string::npos; ++at)
        csv.replace(at - 19, 20, "now"), at -= 19;
    CHECK(csv ==
          "kernel,image,device,block,grid_class,registers,shared_bytes,most_ctas_per_sm,sms,ctas_per_sm,"
          "launches,"
          "blocks,input_bytes,nanoseconds,ns_per_launch,ns_per_block,stops,ns_per_stop,updated\r\n"
          "a,4f2a,NVIDIA H200,256x1x1,12,32,3072,8,1,4,1,5000,2048,9000,9000,1.8,3,20000,now\r\n"
          "a,4f2a,NVIDIA H200,256x1x1,12,32,3072,8,132,8,2,10000,4096,700,350,0.1,3,20000,now\r\n"
          "b,4f2a,NVIDIA H200,256x1x1,12,,,,,,,,,,,,0,,now\r\n");
    const std::string none = value_of(store.export_csv({.kernel = "none"}));
    CHECK(none.find("\r\n") + 2 == none.size());
}

TEST_CASE("threads share a store", "[profiles]") {
    TemporaryFolder folder;
    Store store(folder.file("p"));
    std::atomic<int> failed{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int j = 0; j < 25; ++j) {
                failed += store.record(some_profile()).has_value();
                failed += std::holds_alternative<Problem>(store.find(some_key()));
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(failed == 0);
    CHECK(value_of(store.find(some_key()))->preemption.stops == 300);
}

TEST_CASE("a place that cannot be written to is a problem that names the file", "[profiles]") {
    Store store("/proc/nothing/profiles.db");
    CHECK(problem_of(store.find(some_key())).find("/proc/nothing/profiles.db") == 0);
    CHECK(problem_of(store.record(some_profile())).find("/proc/nothing/profiles.db") == 0);
    CHECK_FALSE(problem_of(store.export_json()).empty());
    TemporaryFolder folder;
    std::filesystem::create_directory(folder.file("p"));  // a folder in its place
    CHECK(problem_of(Store(folder.file("p")).list()).find(folder.file("p")) == 0);
}

TEST_CASE("a file that is taken away is begun anew", "[profiles]") {
    TemporaryFolder folder;
    Store store(folder.file("p"));
    REQUIRE(problem_of(store.record(some_profile())).empty());
    for (const char* part : {"p", "p-wal", "p-shm"}) std::filesystem::remove(folder.file(part));
    CHECK(value_of(store.list()).empty());
    REQUIRE(problem_of(store.record(some_profile())).empty());
    CHECK(value_of(Store(folder.file("p")).find(some_key())) == some_profile());
}

// Left out unless asked for: profile_tests '[cost]'
TEST_CASE("what calls cost", "[.][cost]") {
    TemporaryFolder folder;
    Store store(folder.file("p"));
    for (int i = 0; i < 1000; ++i)
        REQUIRE(problem_of(store.record(some_profile("k" + std::to_string(i)))).empty());
    const auto time = [](const char* what, const auto& call) {
        std::printf("%s: %.0f us\n", what, tests::cost_us(call));
    };
    time("find", [&] { value_of(store.find(some_key("k500"))); });
    time("record", [&] { REQUIRE(problem_of(store.record(some_profile("k500"))).empty()); });
    time("list one of 1000", [&] { value_of(store.list({.kernel = "k500"})); });
    time("open", [&] { value_of(Store(folder.file("p")).find(some_key("k500"))); });
}

}  // namespace
}  // namespace smt::profiler
