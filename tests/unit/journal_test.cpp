#include "runtime/journal/journal.h"

#include <fmt/format.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/journal/file_format.h"
#include "tests/unit/temporary_folder.h"

namespace smt::runtime::journal {
namespace {

using tests::TemporaryFolder;

std::vector<Entry> entries_of(const Reader& reader, uint64_t from = 0) {
    std::vector<Entry> entries;
    reader.read(from, [&](const Entry& entry) { entries.push_back(entry); });
    return entries;
}

TEST_CASE("an entry comes back as it was written", "[journal]") {
    TemporaryFolder folder;
    Writer writer(folder.file("j"));
    REQUIRE(writer.error().empty());
    Entry launch;
    launch.kind = Kind::kLaunch;
    launch.session = 7;
    launch.name = writer.name("saxpy");
    launch.grid[0] = 4096;
    launch.block[2] = 3;
    launch.registers = 16;
    launch.shared_bytes = 1024;
    uint64_t sequence = writer.write(launch);

    Reader reader(folder.file("j"));
    REQUIRE(reader.error().empty());
    std::vector<Entry> entries = entries_of(reader);
    REQUIRE(entries.size() == 1);
    CHECK(entries[0].sequence == sequence);
    CHECK(entries[0].time_ns != 0);
    CHECK(entries[0].kind == Kind::kLaunch);
    CHECK(entries[0].session == 7);
    CHECK(reader.name(entries[0].name) == "saxpy");
    CHECK(entries[0].grid[0] == 4096);
    CHECK(entries[0].block[2] == 3);
    CHECK(entries[0].registers == 16);
    CHECK(entries[0].shared_bytes == 1024);
    CHECK(entries[0].end_ns == 0);
}

TEST_CASE("GPU times are added to an entry that is still there", "[journal]") {
    TemporaryFolder folder;
    Writer writer(folder.file("j"));
    uint64_t sequence = writer.write({});
    writer.set_times(sequence, 10, 20);
    writer.set_times(sequence + 1, 30, 40);  // never written: ignored
    Reader reader(folder.file("j"));
    std::vector<Entry> entries = entries_of(reader);
    REQUIRE(entries.size() == 1);
    CHECK(entries[0].start_ns == 10);
    CHECK(entries[0].end_ns == 20);
    Entry one;
    REQUIRE(reader.read_one(sequence, &one));
    CHECK(one.end_ns == 20);
    CHECK_FALSE(reader.read_one(sequence + 1, &one));
    CHECK_FALSE(reader.read_one(0, &one));
}

TEST_CASE("names are stored once, and a foreign index is a question mark", "[journal]") {
    TemporaryFolder folder;
    Writer writer(folder.file("j"));
    uint32_t first = writer.name("first"), second = writer.name("second");
    CHECK(first != second);
    CHECK(writer.name("first") == first);
    CHECK(writer.name("") == 0);
    Reader reader(folder.file("j"));
    CHECK(reader.name(first) == "first");
    CHECK(reader.name(second) == "second");
    CHECK(reader.name(0) == "?");
    CHECK(reader.name(kNameBytes) == "?");
    CHECK(reader.name(~0u) == "?");
}

TEST_CASE("lines are written once, and the oldest are forgotten", "[journal]") {
    TemporaryFolder folder;
    Writer writer(folder.file("j"));
    const Reader reader(folder.file("j"));
    const uint32_t first = writer.line("first"), long_one = writer.line(std::string(2 * kLongestLine, 'a'));
    CHECK(writer.line("first") == first);
    CHECK(writer.line("") == 0);
    CHECK(reader.name(first) == "first");
    CHECK(reader.name(long_one) == std::string(kLongestLine, 'a'));
    CHECK(reader.name(first + 1000) == "?");
    const uint32_t lines = kLineBytes / 64;  // of 50 characters, four units each
    const auto text = [](uint32_t i) { return fmt::format("{:>50}", i); };
    std::vector<uint32_t> written;
    for (uint32_t i = 0; i < 3 * lines; ++i) written.push_back(writer.line(text(i)));
    CHECK(reader.name(first) == "?");
    for (uint32_t i = 0; i < 3 * lines; i += 997)
        CHECK(reader.name(written[i]) == (i < 2 * lines + 1 ? "?" : text(i)));
    CHECK(writer.line(text(3 * lines - 1)) == written.back());
    CHECK(writer.line(text(2 * lines + 10)) != written[2 * lines + 10]);  // soon forgotten: written again
    CHECK(writer.name("a name") != 0);
}

TEST_CASE("a line that is overwritten while it is read is a question mark", "[journal]") {
    TemporaryFolder folder;
    Writer writer(folder.file("j"));
    const Reader reader(folder.file("j"));
    std::atomic<uint32_t> newest{writer.line("line 0")};
    std::thread other([&] {
        for (int i = 1; i < 300'000; ++i) newest.store(writer.line("line " + std::to_string(i)));
        newest.store(0);
    });
    int wrong = 0;
    for (uint32_t index = newest.load(), before = index; index != 0;
         before = std::exchange(index, newest.load())) {
        for (const uint32_t each : {before, index}) {
            const std::string found = reader.name(each);
            wrong += found != "?" && found.substr(0, 5) != "line ";
        }
    }
    other.join();
    CHECK(wrong == 0);
}

TEST_CASE("a full name table answers 0", "[journal]") {
    TemporaryFolder folder;
    Writer writer(folder.file("j"));
    uint32_t most = writer.name(std::string(kNameBytes - 64, 'a'));
    CHECK(most != 0);
    CHECK(writer.name(std::string(200, 'b')) == 0);
    CHECK(writer.name("short") != 0);
    CHECK(Reader(folder.file("j")).name(most).size() == kNameBytes - 64);
}

TEST_CASE("reading goes on where it stopped, and the newest entries stay", "[journal]") {
    TemporaryFolder folder;
    Writer writer(folder.file("j"));
    Reader reader(folder.file("j"));
    Entry entry;
    for (entry.value = 0; entry.value < 10; ++entry.value) writer.write(entry);
    uint64_t next = reader.read(0, [](const Entry&) {});
    CHECK(entries_of(reader, next).empty());
    writer.write(entry);
    REQUIRE(entries_of(reader, next).size() == 1);
    CHECK(entries_of(reader, next)[0].value == 10);

    for (entry.value = 0; entry.value < kEntries + 5; ++entry.value) writer.write(entry);
    std::vector<Entry> entries = entries_of(reader);
    REQUIRE(entries.size() == kEntries);
    CHECK(entries.front().value == 5);
    CHECK(entries.back().value == kEntries + 4);
}

TEST_CASE("threads write at once and a reader never sees half an entry", "[journal]") {
    TemporaryFolder folder;
    Writer writer(folder.file("j"));
    Reader reader(folder.file("j"));
    constexpr int kThreads = 4;
    constexpr uint64_t kEach = 20'000;
    std::atomic<int> running = kThreads;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            for (uint64_t i = 0; i < kEach; ++i) {
                Entry entry;
                entry.session = static_cast<uint32_t>(t);
                entry.value = entry.start_ns = i;
                entry.registers = entry.shared_bytes = static_cast<uint32_t>(i);
                writer.write(entry);
            }
            --running;
        });
    bool whole = true;
    uint64_t next = 0;
    while (running != 0)
        next = reader.read(next, [&](const Entry& e) {
            whole = whole && e.value == e.start_ns && e.registers == e.value && e.shared_bytes == e.value;
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(whole);
    CHECK(entries_of(reader).size() == kThreads * kEach);
}

TEST_CASE("a writer without a file is mute and says why", "[journal]") {
    Writer writer("/nonexistent/folder/j");
    CHECK_FALSE(writer.error().empty());
    CHECK(writer.name("x") == 0);
    CHECK(writer.write({}) == 0);
    writer.set_times(1, 2, 3);
}

TEST_CASE("a missing, foreign, cut or older journal is an error", "[journal]") {
    TemporaryFolder folder;
    std::string path = folder.file("j");
    CHECK(Reader(path).error().find("no journal") != std::string::npos);
    std::ofstream(path) << "not a journal";
    CHECK(Reader(path).error().find("damaged") != std::string::npos);
    {
        Writer writer(path);
    }
    CHECK(Reader(path).error().empty());
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(8).write("\x7f", 1);
    CHECK(Reader(path).error().find("another version") != std::string::npos);
    std::filesystem::resize_file(path, kFileBytes / 2);
    CHECK(Reader(path).error().find("damaged") != std::string::npos);
    CHECK_FALSE(Reader(folder.path()).error().empty());
}

TEST_CASE("a new writer does not disturb a reader of the old journal", "[journal]") {
    TemporaryFolder folder;
    std::string path = folder.file("j");
    auto old_writer = std::make_unique<Writer>(path);
    old_writer->write({});
    Reader old_reader(path);
    Writer new_writer(path);
    CHECK(entries_of(old_reader).size() == 1);
    CHECK(entries_of(Reader(path)).empty());
}

}  // namespace
}  // namespace smt::runtime::journal
