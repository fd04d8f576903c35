// Images opened in a worker: what comes back, hostile images, and workers that go wrong over one
// (toy_worker.cpp).
#include "runtime/jit/opener.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "runtime/jit/messages.h"
#include "tests/image/made.h"
#include "tests/jit/sources.h"

using namespace smt;
using namespace smt::runtime::jit;
using namespace smt::tests;
using namespace std::chrono_literals;
using Catch::Contains;
using Outcome = Opener::Outcome;

namespace {

constexpr TenantId kAsking = 1;
constexpr uint16_t kPtxKind = 1, kCubinKind = 2;
const std::string kText =
    ".version 8.0\n.target sm_90a\n.address_size 64\n.global .b8 v[40];\n.visible .entry k() { ret; }\n";

OpenOrder asked() { return {{90}, {90}, 1 << 20}; }

Opener::Answer open(Opener& opener, const std::string& image, TenantId tenant = kAsking) {
    return opener.open(tenant, asked(), image);
}

std::string packed_cubin(uint64_t flags, uint32_t architecture = 90) {
    const std::string cubin = image::small_cubin();
    return image::fatbin({{kCubinKind, architecture, flags,
                           flags == image::kZstd ? image::zstd(cubin) : image::lz4(cubin), cubin.size()}});
}

void check_opens(Opener& opener) {
    const Opener::Answer answer = open(opener, packed_cubin(image::kZstd));
    INFO(answer.reason << answer.opened.problem);
    REQUIRE(answer.outcome == Outcome::kOpened);
    CHECK(answer.opened.unpacked == image::small_cubin());
}

void ignore(const std::string&) {}

// Of all threads, in the kernel's words.
std::string child_processes() {
    std::string all;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream file(task.path() / "children");
        all.append(std::istreambuf_iterator<char>(file), {});
    }
    return all;
}

}  // namespace

TEST_CASE("a worker that was started ahead opens the first image") {
    Opener opener(toy_settings(), ignore);
    opener.warm(90);
    const auto until = std::chrono::steady_clock::now() + 30s;
    while (child_processes().empty() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    const std::string worker = child_processes();
    CHECK(!worker.empty());
    check_opens(opener);
    CHECK(child_processes() == worker);
}

TEST_CASE("images are opened ahead, side by side, and each answer is its own image's") {
    Settings settings = toy_settings();
    settings.workers = 3;
    Opener opener(settings, ignore);
    std::vector<std::string> images;
    for (int bytes = 1; bytes <= 12; ++bytes) {
        const std::string variable = std::to_string(bytes) + "];";
        images.push_back(kText);
        images.back().replace(kText.find("40];"), 4, variable);
    }
    const std::vector<std::string_view> views(images.begin(), images.end());
    {
        const auto ahead = opener.ahead(kAsking, asked(), views);
        const auto until = std::chrono::steady_clock::now() + 30s;
        const auto workers = [] {  // that have been started without open()
            std::istringstream all(child_processes());
            return std::distance(std::istream_iterator<int>(all), {});
        };
        while (workers() < 2 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
        CHECK(workers() >= 2);
        for (size_t i = 0; i < images.size(); ++i)
            CHECK(open(opener, images[i]).opened.variable_bytes == i + 1);
        CHECK(open(opener, images.back()).opened.variable_bytes == images.size());  // once more: by a worker
    }
    {
        const auto ahead = opener.ahead(kAsking, asked(), views);  // in another order, and not all of them
        CHECK(open(opener, images[7]).opened.variable_bytes == 8);
        CHECK(open(opener, images[0]).opened.variable_bytes == 1);
    }
    check_opens(opener);
}

TEST_CASE("a worker opens an archive, unpacks its cubin and says what is in it") {
    Opener opener(toy_settings(), ignore);
    for (const uint64_t flags : {image::kZstd, image::kLz4}) {
        const Opener::Answer answer = open(opener, packed_cubin(flags));
        INFO(answer.reason << answer.opened.problem);
        REQUIRE(answer.outcome == Outcome::kOpened);
        CHECK(answer.opened.code == Code::kCubin);
        CHECK(code_of(answer.opened, "") == image::small_cubin());
        CHECK(answer.opened.choices.code == "sm_90");
        CHECK(answer.opened.choices.ptx.reason == "it holds machine code only");
    }
    CHECK(open(opener, packed_cubin(image::kZstd, 80)).opened.code == Code::kNone);
    // Where nothing is packed, a part of the image is named.
    const std::string plain = image::fatbin({{kCubinKind, 90, 0, image::small_cubin()}});
    const Opened of_plain = open(opener, plain).opened;
    CHECK(of_plain.unpacked.empty());
    CHECK(code_of(of_plain, plain) == image::small_cubin());
    const Opened text = open(opener, kText + std::string(3, '\0')).opened;
    CHECK(text.code == Code::kPtx);
    CHECK(text.variant == 'a');
    CHECK(text.variable_bytes == 40);
    CHECK(code_of(text, kText) == kText);
    CHECK(text.choices.ptx.text == kText);
}

TEST_CASE("what is wrong with an image is its problem alone") {
    Opener opener(toy_settings(), ignore);
    const std::string cubin = image::small_cubin(), good = packed_cubin(image::kZstd);
    std::string cut = cubin;
    cut.resize(cut.size() / 2);
    const auto bomb = [](uint64_t said) {
        return image::fatbin({{kCubinKind, 90, image::kZstd, image::zstd(std::string(64 << 20, ' ')), said}});
    };
    const std::pair<std::string, const char*> hostile[] = {
        {good.substr(0, good.size() - 8), "a fatbin of"},
        {image::fatbin({{kCubinKind, 90, image::kZstd, "no frame", 100}}), "is broken"},
        {image::fatbin({{kCubinKind, 90, image::kLz4, image::lz4(cubin), 1ull << 40}}),
         "taken for a mistake"},
        {bomb(100), "more than 100 bytes"},
        {bomb(64 << 20), "no cubin"},
        {image::fatbin({{kCubinKind, 90, image::kLz4, image::lz4(cut), cut.size()}}), "ELF file"},
        {image::fatbin({{kCubinKind, 90, 0, "what"}}), "no cubin"},
        {cut, "ELF file"},
        {std::string("\xb1\x43\x62\x46\x01\0\0\0", 8) + std::string(16, 'x'), "wrapper"}};
    for (const auto& [image, problem] : hostile) {
        const Opener::Answer answer = open(opener, image);
        CHECK(answer.outcome == Outcome::kOpened);
        CHECK_THAT(answer.opened.problem, Contains(problem));
        check_opens(opener);
    }
}

TEST_CASE("a worker that goes wrong over an image costs that image") {
    Settings settings = toy_settings();
    settings.memory_bytes = 2ull << 30;
    settings.time = 3s;
    const std::pair<const char*, const char*> ways[] = {
        {"crash", "Segmentation"}, {"kill", "Killed"},  {"hang", "longer than 3 s"}, {"exit", "exit code 7"},
        {"garbage", "nonsense"},   {"lie", "nonsense"}, {"beyond", "nonsense"},      {"much", "nonsense"}};
    for (const auto& [way, reason] : ways) {
        Opener opener(settings, ignore);
        const Opener::Answer answer = open(opener, std::string("//toy ") + way);
        INFO(way);
        CHECK(answer.outcome == Outcome::kLost);
        CHECK_THAT(answer.reason, Contains(reason));
        check_opens(opener);
    }
}

TEST_CASE("without a worker that starts there is no answer") {
    for (const char* compiler : {"/nowhere/smt-compile", "/bin/false"}) {
        Settings settings = toy_settings();
        settings.compiler = compiler;
        Opener opener(settings, ignore);
        const Opener::Answer answer = open(opener, kText);
        CHECK(answer.outcome == Outcome::kNoWorker);
        CHECK_THAT(answer.reason, Contains("the compile worker"));
    }
}

TEST_CASE("many threads open images at the same time, beside some that hang") {
    Settings settings = toy_settings();
    settings.workers = 2;
    settings.time = 3s;
    Opener opener(settings, ignore);
    std::vector<std::thread> hanging, others;
    std::atomic<int> right{0};
    for (int i = 0; i < 3; ++i) hanging.emplace_back([&] { open(opener, "//toy hang", kAsking); });
    for (TenantId tenant = 2; tenant < 6; ++tenant)
        others.emplace_back([&, tenant] {
            for (int i = 0; i < 20; ++i)
                right +=
                    open(opener, packed_cubin(image::kLz4), tenant).opened.unpacked == image::small_cubin();
        });
    for (std::thread& each : others) each.join();
    CHECK(right == 80);
    for (std::thread& each : hanging) each.join();
}

TEST_CASE("what is said of an image survives its way, and what leads out of it does not") {
    Opened given;
    given.code = Code::kCubin;
    given.at = 8, given.bytes = 100;
    given.variant = 'a';
    given.printing.kernels = {"k", "l"};
    given.managed.variables["v"] = {0, 4};
    given.managed.bytes = 256;
    given.managed.initials.push_back({0, 4, 90});
    given.managed.fixups.push_back({92, 0, image::ManagedPlan::Kind::kWhole});
    given.managed.trimmed.push_back({0, 50, 24, {true, false}});
    given.uses_variables = true;
    given.moved = given.managed;
    given.stays = "one";
    given.unplaced = true;
    given.constants = {"c", "d"};
    given.system_atomics = {"k"};
    given.fenced = {{"k", ""}, {"f", "has textures"}};
    given.choices = {"sm_90", {"text", {{"k", 32}}, "because"}};
    bool unpacked = true;
    const std::string bytes = encode(given);
    const std::optional<Opened> back = decode_opened(bytes, 108, &unpacked);
    REQUIRE(back);
    CHECK(encode(*back) == bytes);
    CHECK_FALSE(unpacked);
    for (size_t cut = 0; cut < bytes.size(); ++cut)
        CHECK(!decode_opened(std::string_view(bytes).substr(0, cut), 108, &unpacked));
    CHECK(!decode_opened(bytes + "trailing", 108, &unpacked));
    CHECK(!decode_opened(bytes, 107, &unpacked));
    const auto refuses = [&](auto change) {
        Opened changed = given;
        change(changed);
        return !decode_opened(encode(changed), 108, &unpacked);
    };
    CHECK(refuses([](Opened& opened) { opened.at = ~0ull; }));
    CHECK(refuses([](Opened& opened) { opened.code = static_cast<Code>(4); }));
    CHECK(refuses([](Opened& opened) { opened.code = Code::kPtx; }));  // the plan is a cubin's
    CHECK(refuses([](Opened& opened) { opened.variant = 'x'; }));
    CHECK(refuses([](Opened& opened) { opened.managed.bytes = 2; }));
    CHECK(refuses([](Opened& opened) { opened.moved.fixups[0].at = 93; }));
    CHECK(refuses([](Opened& opened) { opened.managed.variables["v"].offset = ~0ull; }));
    CHECK(refuses([](Opened& opened) { opened.managed.initials[0].at = 97; }));
    CHECK(refuses([](Opened& opened) { opened.managed.initials[0].offset = 253; }));
    CHECK(refuses([](Opened& opened) { opened.managed.fixups[0].at = 93; }));
    CHECK(refuses(
        [](Opened& opened) { opened.managed.fixups[0].kind = static_cast<image::ManagedPlan::Kind>(3); }));
    CHECK(refuses([](Opened& opened) { opened.managed.trimmed[0].at = 53; }));
    CHECK(refuses([](Opened& opened) { opened.managed.trimmed[0].size_at = 93; }));
    CHECK(refuses([](Opened& opened) { opened.managed.trimmed[0].entry_bytes = ~0ull; }));
    ImageOrder question{asked(), 77};
    CHECK_FALSE(decode_image_order(encode(question))->asked.doors);
    CHECK_FALSE(decode_image_order(encode(question))->asked.fences);
    CHECK_FALSE(decode_image_order(encode(question))->asked.tables);
    question.asked.doors = question.asked.fences = true;
    CHECK(decode_image_order(encode(question))->asked.fences);
    question.asked.tables = true;
    CHECK(decode_image_order(encode(question))->asked.tables);
    CHECK(decode_image_order(encode(question))->asked.doors);
    CHECK(encode(*decode_image_order(encode(question))) == encode(question));
    CHECK(!decode_image_order(encode(question).substr(8)));
}

TEST_CASE("doors survive their way, and what is no door does not") {
    Opened given;
    given.code = Code::kCubin;
    given.unpacked = "a cubin";
    given.bytes = given.unpacked.size();
    given.doors = {
        {"k", "", 40, 16, true}, {"l", "it is a managed form", 0, 8, false}, {"m", "", 255, 4304, false}};
    given.own = {{{"k", 40}, {"m", 255}}, "PTX"};
    bool unpacked = false;
    const std::string bytes = encode(given);
    const std::optional<Opened> back = decode_opened(bytes, 0, &unpacked);
    REQUIRE(back);
    CHECK(unpacked);
    Opened again = *back;
    again.unpacked = given.unpacked;
    CHECK(encode(again) == bytes);
    CHECK((back->own.registers == given.own.registers && back->own.ptx == "PTX"));
    REQUIRE(back->doors.size() == 3);
    const Door& door = back->doors[0];
    CHECK((door.kernel == "k" && door.reason.empty() && door.registers == 40 && door.offset == 16 &&
           door.waits));
    CHECK(back->doors[1].reason == "it is a managed form");
    CHECK_FALSE(back->doors[2].waits);
    for (size_t cut = 0; cut < bytes.size(); ++cut)
        CHECK(!decode_opened(std::string_view(bytes).substr(0, cut), 0, &unpacked));
    CHECK(!decode_opened(bytes + "trailing", 0, &unpacked));
    const auto refuses = [&](auto change) {
        Opened changed = given;
        change(changed);
        return !decode_opened(encode(changed), 100, &unpacked);
    };
    CHECK_FALSE(refuses([](Opened&) {}));
    CHECK(refuses([](Opened& opened) { opened.doors[0].offset = ~0u; }));
    CHECK(refuses([](Opened& opened) { opened.doors[0].offset = 1 << 15; }));
    CHECK(refuses([](Opened& opened) { opened.doors[0].offset = 20; }));
    CHECK(refuses([](Opened& opened) { opened.unpacked.clear(); }));  // the program's own cubin has none
    CHECK(refuses([](Opened& opened) { opened.code = Code::kPtx; }));
    CHECK_FALSE(refuses([](Opened& opened) {  // none of its kernels has a door
        opened.unpacked.clear();
        opened.doors = {{"", "its layout is that of ABI version 6", 0, 0, false}};
    }));
    CHECK_FALSE(refuses([](Opened& opened) { opened.doors[0].offset = 32720; }));
    CHECK(refuses([](Opened& opened) { opened.doors.resize(kMostItems + 1); }));
    // A count that the message does not bear out.
    const size_t count_at = bytes.find(std::string("\3\0\0\0\0\0\0\0", 8));
    REQUIRE(count_at != bytes.npos);
    for (const uint64_t said : {uint64_t{0}, uint64_t{4}, uint64_t{kMostItems}, ~uint64_t{0}}) {
        std::string changed = bytes;
        changed.replace(count_at, sizeof said, reinterpret_cast<const char*>(&said), sizeof said);
        CHECK(!decode_opened(changed, 0, &unpacked));
    }
}
