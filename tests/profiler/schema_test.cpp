#include "profiler/store/schema.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

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

constexpr const char* kSteps[] = {
    "CREATE TABLE seen (kernel TEXT)",
    "ALTER TABLE seen ADD COLUMN launches INTEGER DEFAULT 1; CREATE TABLE more (x)"};
const Schema kFirst{42, std::span(kSteps).first(1)};
const Schema kSecond{42, kSteps};

std::string bytes_of(const std::string& path) {
    std::ostringstream bytes;
    bytes << std::ifstream(path, std::ios::binary).rdbuf();
    return bytes.str();
}

TEST_CASE("a file of version 0 is brought up to date", "[profiles]") {
    TemporaryFolder folder;
    {
        Database(folder.file("p")).run("PRAGMA journal_mode = DELETE; CREATE TABLE t (x); DROP TABLE t");
    }
    CHECK_FALSE(bytes_of(folder.file("p")).empty());
    CHECK(Database(folder.file("p")).integer("PRAGMA user_version") == 0);
    Store store(folder.file("p"));
    REQUIRE(problem_of(store.record(some_profile())).empty());
    CHECK(value_of(store.find(some_key())) == some_profile());
    Database database(folder.file("p"));
    CHECK(database.integer("PRAGMA user_version") == static_cast<int64_t>(kProfiles.steps.size()));
    CHECK(database.integer("PRAGMA application_id") == kProfiles.application);
    CHECK(database.prepare("PRAGMA journal_mode").step());
}

TEST_CASE("a file of an older version keeps what is in it", "[profiles]") {
    TemporaryFolder folder;
    Database database(folder.file("p"));
    bring_up_to_date(database, kFirst);
    database.run("INSERT INTO seen VALUES ('a'), ('b')");
    CHECK(database.integer("PRAGMA user_version") == 1);
    bring_up_to_date(database, kSecond);
    CHECK(database.integer("PRAGMA user_version") == 2);
    CHECK(database.integer("SELECT sum(launches) FROM seen WHERE kernel IN ('a', 'b')") == 2);
    bring_up_to_date(database, kSecond);  // nothing is done twice
    CHECK(database.integer("SELECT count(*) FROM seen") == 2);
}

TEST_CASE("a file of version 1 keeps its profiles, and gets room for pairs", "[profiles]") {
    TemporaryFolder folder;
    Profile before = some_profile();
    before.beside.clear();
    before.slicing = {};
    before.learnt_times.clear();
    before.learnt_beside.clear();
    {
        Database database(folder.file("p"));
        bring_up_to_date(database, {kProfiles.application, kProfiles.steps.first(1)});
        REQUIRE(database.integer("PRAGMA user_version") == 1);
        database.run(R"(
            INSERT INTO profile VALUES (7, '_Z5saxpyfPfS_', '4f2a', 256, 1, 1, 12, 'NVIDIA H200',
                                        32, 16, 1024, 2048, 8, 5000, 350, 100000, 20000, 500, 4000,
                                        2000, 3, 60000, '2026-11-20T00:00:00Z');
            INSERT INTO times VALUES (7, 132, 8, 2, 10000, 4096, 700), (7, 1, 4, 1, 5000, 2048, 9000);
            INSERT INTO coefficient VALUES (7, 'duration.intercept_ns', 120.5),
                                           (7, 'duration.ns_per_block', 0.07))");
    }
    Store store(folder.file("p"));
    CHECK(value_of(store.find(some_key())) == before);
    Profile news;
    news.key = some_key();
    news.beside = some_profile().beside;
    news.slicing = some_profile().slicing;
    news.learnt_times = some_profile().learnt_times;
    news.learnt_beside = some_profile().learnt_beside;
    REQUIRE(problem_of(store.record(news)).empty());
    CHECK(value_of(store.find(some_key())) == some_profile());
    CHECK(Database(folder.file("p")).integer("PRAGMA user_version") ==
          static_cast<int64_t>(kProfiles.steps.size()));
}

TEST_CASE(
    "a file of version 2 keeps its profiles, and loses its pairs, which were counted over two stretches of "
    "time",
    "[profiles]") {
    TemporaryFolder folder;
    {
        Database database(folder.file("p"));
        bring_up_to_date(database, {kProfiles.application, kProfiles.steps.first(2)});
        database.run(R"(
            INSERT INTO profile VALUES (7, '_Z5saxpyfPfS_', '4f2a', 256, 1, 1, 12, 'NVIDIA H200',
                                        32, 16, 1024, 2048, 8, 5000, 350, 100000, 20000, 500, 4000,
                                        2000, 3, 60000, '2026-11-20T00:00:00Z');
            INSERT INTO times VALUES (7, 132, 8, 2, 10000, 4096, 700), (7, 1, 4, 1, 5000, 2048, 9000);
            INSERT INTO beside VALUES (7, '_Z5otherv', '4f2a', 256, 1, 1, 12, 3, 5, 2, 4000, 600);
            INSERT INTO coefficient VALUES (7, 'duration.intercept_ns', 120.5),
                                           (7, 'duration.ns_per_block', 0.07))");
    }
    Profile left = some_profile();
    left.beside.clear();
    left.slicing = {};
    left.learnt_times.clear();
    left.learnt_beside.clear();
    CHECK(value_of(Store(folder.file("p")).find(some_key())) == left);
}

TEST_CASE("a step that fails leaves the file as it was", "[profiles]") {
    TemporaryFolder folder;
    Database database(folder.file("p"));
    bring_up_to_date(database, kFirst);
    constexpr const char* broken[] = {kSteps[0], kSteps[1],
                                      "CREATE TABLE third (x); INSERT INTO nowhere VALUES (1)"};
    CHECK_THROWS_AS(bring_up_to_date(database, {42, broken}), DatabaseError);
    CHECK(database.integer("PRAGMA user_version") == 1);
    CHECK(database.integer("SELECT count(*) FROM sqlite_schema") == 1);
}

TEST_CASE("a file of a newer version is left alone, and named", "[profiles]") {
    TemporaryFolder folder;
    const std::string path = folder.file("p");
    REQUIRE(problem_of(Store(path).record(some_profile())).empty());
    {
        Database(path).run("PRAGMA user_version = 1000");
    }
    const std::string before = bytes_of(path);
    std::string said;
    Store store(path, [&](const std::string& line) { said += line; });
    for (const std::string& problem :
         {problem_of(store.find(some_key())), problem_of(store.record(some_profile())),
          problem_of(store.forget({})), problem_of(store.export_csv())}) {
        CHECK(problem.find(path) == 0);
        CHECK(problem.find("version 1000") != std::string::npos);
    }
    CHECK(said.empty());
    CHECK(bytes_of(path) == before);
}

TEST_CASE("the database of another program is left alone, and named", "[profiles]") {
    TemporaryFolder folder;
    const std::string path = folder.file("p");
    {
        Database(path).run("CREATE TABLE bookmarks (x); INSERT INTO bookmarks VALUES (1)");
    }
    const std::string before = bytes_of(path);
    Store store(path);
    CHECK(problem_of(store.record(some_profile())).find(path) == 0);
    CHECK(problem_of(store.list()).find("another program") != std::string::npos);
    CHECK(bytes_of(path) == before);
}

}  // namespace
}  // namespace smt::profiler
