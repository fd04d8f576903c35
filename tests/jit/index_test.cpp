// The index of sources, and the service's way from a fatbin of nvcc's to the managed image.
#include "runtime/jit/index.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "runtime/jit/compiler.h"
#include "runtime/jit/exports.h"
#include "runtime/jit/service.h"
#include "tests/jit/sources.h"
#include "tests/unit/temporary_folder.h"

using namespace smt::runtime::jit;
using namespace smt::tests;
using namespace std::chrono_literals;
using Catch::Contains;
using State = Service::State;

namespace {

constexpr auto kTimeout = 60s;
constexpr Target kSimulated{90, true};
constexpr uint64_t kMuch = 1 << 20;  // of PTX

void silent(const std::string&) {}

template <typename T>
void put(std::string& bytes, T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// One entry of PTX for compute_90, not compressed (runtime/image/image.cpp has the layout).
std::string fatbin(std::string text) {
    text.resize((text.size() + 8) / 8 * 8);
    std::string entry;
    put<uint16_t>(entry, 1), put<uint16_t>(entry, 0), put<uint32_t>(entry, 64),
        put<uint64_t>(entry, text.size());
    put<uint32_t>(entry, 0), put<uint32_t>(entry, 0), put<uint16_t>(entry, 0), put<uint16_t>(entry, 9),
        put<uint32_t>(entry, 90);
    entry.resize(64);
    std::string image;
    put<uint32_t>(image, 0xba55ed50), put<uint16_t>(image, 1), put<uint16_t>(image, 16),
        put<uint64_t>(image, entry.size() + text.size());
    return image + entry + text;
}

const std::string kPtx =
    ".version 8.0\n.target sm_90\n.address_size 64\n.global .u32 state;\n"
    ".visible .entry scale(.param .u64 a, .param .u32 n) { ret; }\n";

Indexed indexed(const Source& source, std::vector<std::string> variables = {}) {
    return {{{source, {"sm_80", "compute_80"}}, {source, {"sm_90", "compute_90"}}}, std::move(variables)};
}

}  // namespace

TEST_CASE("what is stored is found by the image's bytes, by other processes too") {
    TemporaryFolder folder;
    const std::string image = fatbin(kPtx);
    SourceIndex index(folder.file("cache"), silent);
    CHECK_FALSE(index.has(image));
    CHECK_FALSE(index.find(image));
    REQUIRE(index.store(image, indexed(managed_scale(), {"state"})));
    SourceIndex other(folder.file("cache"), silent);
    std::optional<Indexed> found = other.find(image);
    REQUIRE(found);
    CHECK(found->variants.size() == 2);
    CHECK(found->variants[1].source.text == managed_scale().text);
    CHECK(found->variants[1].codes == std::vector<std::string>{"sm_90", "compute_90"});
    CHECK(found->variables == std::vector<std::string>{"state"});
    CHECK(other.list().size() == 1);

    SECTION("another image of its size and ends is another") {
        std::string middle = fatbin(std::string(100'000, ' ') + kPtx);
        REQUIRE(index.store(middle, indexed(managed_scale())));
        middle[50'000] = '\n';
        CHECK(index.has(middle));
        CHECK_FALSE(index.find(middle));
    }
    SECTION("it can be removed, and all of it forgotten") {
        index.remove(image);
        CHECK_FALSE(other.find(image));
        REQUIRE(index.store(image, indexed(managed_scale())));
        CHECK(index.clear() > 0);
        CHECK_FALSE(other.has(image));
    }
    SECTION("damaged entries count as absent") {
        for (const auto& file : std::filesystem::directory_iterator(index.folder()))
            std::ofstream(file.path(), std::ios::app) << "x";
        CHECK_FALSE(other.find(image));
    }
}

TEST_CASE("a fatbin whose source is in the index is compiled when a program loads it") {
    TemporaryFolder folder;
    const std::string image = fatbin(kPtx);
    std::string lines;
    Service service(toy_settings(folder.file("cache")),
                    [&](const std::string& line) { lines += line + "\n"; });
    CHECK(service.request(kNoTenant, image, choices_of(image, kSimulated, kMuch)).empty());
    SourceIndex(folder.file("cache"), silent).store(image, indexed(managed_scale()));
    CHECK(service.request(kNoTenant, image, choices_of(image, {70, true}, kMuch))
              .empty());  // nothing of it runs there
    const std::string identity = service.request(kNoTenant, image, choices_of(image, kSimulated, kMuch));
    REQUIRE_FALSE(identity.empty());
    Service::Answer answer = service.wait_for(kNoTenant, identity, kTimeout);
    REQUIRE(answer.state == State::kDone);
    CHECK_THAT(answer.result->image, Contains(".entry smt_scale") && Contains(".entry scale"));
    CHECK_THAT(lines,
               Contains("source indexed: test.cu") && Contains("1 kernels managed, 0 refused; compiled in"));
    CHECK(service.request(kNoTenant, image, choices_of(image, kSimulated, kMuch)) == identity);
    // Another source for the same image is compiled anew.
    SourceIndex(folder.file("cache"), silent)
        .store(image, indexed(source("//toy managed scale smt_scale\n// newer")));
    CHECK(service.request(kNoTenant, image, choices_of(image, kSimulated, kMuch)) != identity);
}

TEST_CASE("a managed image without a variable that the host names is not loaded") {
    TemporaryFolder folder;
    const std::string image = fatbin(kPtx);
    SourceIndex(folder.file("cache"), silent).store(image, indexed(managed_scale(), {"other"}));
    Service service(toy_settings(folder.file("cache")), silent);
    Service::Answer answer = service.wait_for(
        kNoTenant, service.request(kNoTenant, image, choices_of(image, kSimulated, kMuch)), kTimeout);
    REQUIRE(answer.state == State::kDone);
    CHECK(answer.result->image.empty());
    CHECK_THAT(answer.result->reason, Contains("lacks variable other"));
}

TEST_CASE("an indexed image is managed by its own PTX, which lacks nothing that its source may lack") {
    TemporaryFolder folder;
    const std::string image = fatbin(kPtx);
    SourceIndex(folder.file("cache"), silent).store(image, indexed(managed_scale(), {"state"}));
    Service service(toy_settings(folder.file("cache")), silent);
    Service::Answer answer = service.wait_for(
        kNoTenant, service.request(kNoTenant, image, choices_of(image, kSimulated, kMuch)), kTimeout);
    REQUIRE(answer.state == State::kDone);
    INFO(answer.result->reason);
    CHECK_THAT(answer.result->image, Contains(".entry smt_scale") && Contains(" state;"));
}

TEST_CASE("a fatbin tells its kernels and variables") {
    const Symbols symbols = symbols_of(fatbin(kPtx));
    CHECK(symbols.problem.empty());
    CHECK(symbols.kernels == std::vector<std::string>{"scale"});
    CHECK(symbols.variables == std::vector<std::string>{"state"});
    CHECK_FALSE(symbols_of("nothing").problem.empty());
    CHECK(missing_variables({"state"}, kPtx).empty());
    CHECK_THAT(missing_variables({"other"}, kPtx), Contains("lacks variable other"));
}
