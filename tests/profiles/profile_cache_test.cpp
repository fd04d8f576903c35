#include "runtime/profiles/profile_cache.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/unit/temporary_folder.h"

using namespace smt::runtime;
using namespace smt::runtime::profiles;
using smt::profiler::Store;

namespace {

DeviceFacts facts() { return {"a device", 10, {1e9, 40, 20}, {}}; }

std::vector<smt::profiler::Profile> all_of(const std::string& path) {
    Store store(path);
    return std::get<std::vector<smt::profiler::Profile>>(store.list());
}

}  // namespace

TEST_CASE("what one server learnt the next one knows", "[book]") {
    smt::tests::TemporaryFolder folder;
    const std::string path = folder.file("profiles.db");
    const Shape shape{{256, 1, 1}, 1024};
    {
        ProfileCache book(path, facts(), [](const std::string& line) { FAIL(line); });
        const auto kernel = book.open("kernel", "image");
        REQUIRE(kernel);
        CHECK(book.open("kernel", "image") == kernel);  // all sessions share it
        CHECK(book.open("kernel", "other") != kernel);
        book.wait();
        CHECK_FALSE(kernel->find(shape));
        kernel->ran(shape, {10, 4}, 1024, 2048);
        book.write_soon();
        book.wait();
        CHECK(*kernel->predict(shape) == Approx(2048));  // and is told the policies at once
        kernel->stopped(shape, 77);
    }  // the rest is written at the end
    REQUIRE(all_of(path).size() == 1);
    CHECK(all_of(path)[0].preemption.stops == 1);
    ProfileCache book(path, facts(), [](const std::string& line) { FAIL(line); });
    const auto kernel = book.open("kernel", "image");
    book.wait();
    CHECK(*kernel->predict(shape) == Approx(2048));
    CHECK(kernel->find(shape)->preemption == std::chrono::nanoseconds(77));
    DeviceFacts others = facts();
    others.name = "another device";
    ProfileCache elsewhere(path, others, [](const std::string& line) { FAIL(line); });
    const auto stranger = elsewhere.open("kernel", "image");
    elsewhere.wait();
    CHECK_FALSE(stranger->find(shape));
}

TEST_CASE("what others have learnt meanwhile is known when a kernel is met again", "[book]") {
    smt::tests::TemporaryFolder folder;
    const std::string path = folder.file("profiles.db");
    const Shape shape{{256, 1, 1}, 1024};
    ProfileCache book(path, facts(), [](const std::string& line) { FAIL(line); });
    const auto kernel = book.open("kernel", "image"), other = book.open("other", "image");
    book.wait();
    {
        ProfileCache measuring(path, facts(), [](const std::string& line) { FAIL(line); });
        measuring.open("kernel", "image")->ran(shape, {10, 4}, 1024, 2048);
    }
    CHECK_FALSE(kernel->predict(shape));
    book.open("other", "image");  // a program comes
    book.wait();
    REQUIRE(kernel->predict(shape));
    CHECK(*kernel->predict(shape) == Approx(2048));
    kernel->ran(shape, {10, 4}, 1024, 4096);  // not written yet, and not lost
    book.open("kernel", "image");
    book.write_soon();
    book.wait();
    CHECK(*kernel->predict(shape) == Approx(3072));
}

TEST_CASE("where nothing is kept, nothing is known", "[book]") {
    ProfileCache book("", facts(), [](const std::string& line) { FAIL(line); });
    CHECK_FALSE(book.open("kernel", "image"));
    CHECK(book.identify("some bytes").empty());
    book.write_soon();
    book.wait();
}

TEST_CASE("a file that cannot be used is said once", "[book]") {
    smt::tests::TemporaryFolder folder;
    std::ofstream(folder.file("file")) << "no folder";
    std::vector<std::string> said;
    {
        ProfileCache book(folder.file("file/profiles.db"), facts(),
                          [&](const std::string& line) { said.push_back(line); });
        const auto kernel = book.open("kernel", "image");
        REQUIRE(kernel);
        book.wait();
        kernel->ran({{256, 1, 1}, 1024}, {10, 4}, 1024, 2048);
        book.write_soon();
    }
    REQUIRE(said.size() == 1);
    CHECK(said[0].starts_with("profiles of kernels are neither looked up nor kept: "));
}

TEST_CASE("images are told apart by their size and ends", "[book]") {
    const std::string large(3u << 20, 'x');
    std::string head = large, tail = large;
    head[100] = tail[tail.size() - 100] = 'y';
    CHECK(image_identity(large) == image_identity(std::string(large)));
    CHECK(image_identity(large) != image_identity(head));
    CHECK(image_identity(large) != image_identity(tail));
    CHECK(image_identity(large) != image_identity(large + "x"));
    CHECK(image_identity("a") != image_identity("b"));
}
