// Source, PTX or neither: what becomes of an image.
#include "runtime/jit/decision.h"

#include <catch2/catch.hpp>

#include "tests/jit/sources.h"

using namespace smt::runtime::jit;
using namespace smt::tests;
using namespace std::chrono_literals;
using Catch::Contains;

namespace {

const std::string kTwo = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry plain() { ret; }
.visible .entry numbered() { .reg .b64 %rd; mov.u64 %rd, %gridid; ret; }
)";

constexpr TenantId kTenant = 1;

// What a server says of it, line by line, and what it decides.
struct Asked {
    Decision decision;
    std::string said;
};

// `captured`: the source that the program announced with it.
Asked ask(const std::string& image, Settings settings, int architecture = 90,
          const Source* captured = nullptr) {
    Service service(std::move(settings), [](const std::string&) {});
    if (captured) service.submit(kTenant, *captured, "", image);
    Asked asked;
    const Target target{architecture, true};
    asked.decision =
        decide(service, image, choices_of(image, target, service.settings().ptx_bytes), target,
               {[&](const std::string& identity) { return service.wait_for(kTenant, identity, 60s); },
                [&](const std::string& reason) { asked.said += reason + "\n"; }, kTenant});
    return asked;
}

}  // namespace

TEST_CASE("an image without source is managed by its PTX, kernel by kernel") {
    const Asked asked = ask(kTwo, toy_settings());
    REQUIRE(asked.decision.compiled);
    CHECK(asked.decision.by_ptx());
    CHECK(asked.decision.reason.empty());
    CHECK(asked.said.empty());
    CHECK(asked.decision.why_unmanaged("plain").empty());
    CHECK(asked.decision.why_unmanaged("numbered") == "reads %gridid");
    CHECK_THAT(asked.decision.why_unmanaged("nobody"), Contains("does not name it"));
}

TEST_CASE("why an image is not managed is said, and what was said of its kernels is kept") {
    std::string refused = kTwo;
    refused.erase(refused.find(".visible .entry plain"),
                  std::string(".visible .entry plain() { ret; }").size());
    const Asked looked_at = ask(refused, toy_settings());
    CHECK_FALSE(looked_at.decision.compiled);
    CHECK_THAT(looked_at.said, Contains("no kernel of it can be managed"));
    CHECK(looked_at.decision.why_unmanaged("numbered") == "reads %gridid");
    CHECK_THAT(looked_at.decision.why_unmanaged("nobody"), Contains("no kernel of it can be managed"));

    const Asked newer = ask(kTwo, toy_settings(), 75);
    CHECK_THAT(newer.decision.why_unmanaged("plain"), Contains("none of its PTX is for sm_75"));
    CHECK_THAT(newer.said, Contains("none of its PTX is for sm_75"));

    Settings without = toy_settings();
    without.ptx = false;
    const Asked not_asked = ask(kTwo, without);
    CHECK_THAT(not_asked.decision.why_unmanaged("plain"), Contains("ptx=0 in SMT_COMPILE"));
    CHECK(not_asked.said.empty());  // switched off on purpose, so it is not reported each time
}

TEST_CASE("a source that is known comes first, and PTX where it fails") {
    Source captured = source("//toy error because");
    captured.text += "\n__device__ int own = 1;";
    const std::string image = plain_image(captured);
    const Asked asked = ask(image, toy_settings(), 90, &captured);
    REQUIRE(asked.decision.compiled);
    CHECK(asked.decision.by_ptx());
    CHECK_THAT(asked.said, Contains("because"));

    Settings settings = toy_settings();
    settings.ptx_bytes = 10;
    const Asked unmanaged = ask(image, settings, 90, &captured);
    CHECK_FALSE(unmanaged.decision.compiled);
    CHECK_THAT(unmanaged.decision.reason, Contains("because; ") && Contains("ptx_size"));

    captured.text += "\n__device__ int other = 1;";
    const Asked lie = ask(image, settings, 90, &captured);
    CHECK_FALSE(lie.decision.compiled);
    CHECK_THAT(lie.decision.why_unmanaged("scale"), Contains("does not make it"));
}

TEST_CASE("what is not made yet is awaited, and decided later without the image") {
    Source captured = source("//toy error because");
    captured.text += "\n__device__ int own = 1;";
    std::string image = plain_image(captured);
    Service service(toy_settings(), [](const std::string&) {});
    service.submit(kTenant, captured, "", image);
    const Target target{90, true};
    std::string said;
    const auto say = [&](const std::string& reason) { said += reason + "\n"; };
    const auto pending = [](const std::string&) {
        return Service::Answer{Service::State::kPending, nullptr};
    };
    const auto patient = [&](const std::string& identity) {
        return service.wait_for(kTenant, identity, 60s);
    };
    const Deciding at_once{pending, say, kTenant, [] { return std::string("not yet"); }};

    Decision first =
        decide(service, image, choices_of(image, target, service.settings().ptx_bytes), target, at_once);
    image.clear();
    CHECK_FALSE(first.compiled);
    CHECK(first.reason == "not yet");
    CHECK(first.why_unmanaged("scale") == "not yet");
    REQUIRE(first.awaited);
    CHECK_FALSE(first.awaited->source.empty());
    CHECK(first.awaited->ptx.empty());  // it is not asked for before the source is known to be of no use

    // The source is refused, and its PTX is not there yet.
    Decision second =
        decide_again(service, *first.awaited, target,
                     {[&](const std::string& identity) {
                          return identity == first.awaited->source ? patient(identity) : pending(identity);
                      },
                      say, kTenant, at_once.late});
    REQUIRE(second.awaited);
    CHECK(second.awaited->source.empty());
    CHECK_FALSE(second.awaited->ptx.empty());

    const Decision third = decide_again(service, *second.awaited, target, {patient, say, kTenant});
    REQUIRE(third.compiled);
    CHECK(third.by_ptx());
    CHECK_FALSE(third.awaited);
    CHECK_THAT(said, Contains("because"));
}
