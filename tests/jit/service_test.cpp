// The service: from a source and the image that a program took to the managed image.
#include "runtime/jit/service.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "runtime/jit/exports.h"
#include "tests/jit/sources.h"
#include "tests/unit/temporary_folder.h"

using namespace smt::runtime::jit;
using namespace smt::tests;
using namespace std::chrono_literals;
using Catch::Contains;
using State = Service::State;

namespace {

constexpr auto kPatience = 60s;

struct Lines {
    std::mutex mutex;
    std::string all;
    Service::Say say() {
        return [this](const std::string& line) {
            std::lock_guard lock(mutex);
            all += line + "\n";
        };
    }
    std::string text() {
        std::lock_guard lock(mutex);
        return all;
    }
};

// As a program has it: compiled without the rewriter.
std::string plain_image(const Source& source) {
    Source managed = source;
    managed.text = "//toy managed none none\n#define smt Other\n" + source.text;
    const size_t at = managed.text.find("#ifdef TOY_REWRITTEN");
    if (at != std::string::npos) managed.text.replace(at, 20, "#if 0");
    Compiler compiler(toy_settings());
    Result result = compiler.compile({managed, Form::kPtx, ""});
    INFO(result.reason << result.log);
    REQUIRE(!result.image.empty());
    return result.image;
}

ResultPointer compiled(Service& service, const Source& source, const std::string& image) {
    service.submit(source, image);
    Service::Answer answer = service.wait(image, kPatience);
    REQUIRE(answer.state == State::kDone);
    return answer.result;
}

size_t count(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
    return found;
}

}  // namespace

TEST_CASE("a submitted image has a managed form, found by its bytes") {
    TemporaryFolder folder;
    Lines lines;
    const std::string image = plain_image(managed_scale());
    {
        Service service(toy_settings(folder.file("cache")), lines.say());
        CHECK(service.wait(image, kPatience).state == State::kUnknown);
        ResultPointer result = compiled(service, managed_scale(), image);
        CHECK_THAT(result->image, Contains(".entry smt_scale") && Contains(".entry scale"));
        // However many NULs the text ends with.
        CHECK(service.wait(image.substr(0, image.size() - 1), 0s).result == result);
        CHECK(service.wait(image + std::string(3, '\0'), 0s).result == result);
        CHECK(service.wait(image + " ", 0s).state == State::kUnknown);
        service.submit(managed_scale(), image);   // again
    }
    CHECK(count(lines.text(), "source captured: test.cu") == 1);
    CHECK_THAT(lines.text(), Contains("1 kernels managed, 0 refused; compiled in"));

    SECTION("another server finds it on disk") {
        Lines later;
        Service service(toy_settings(folder.file("cache")), later.say());
        ResultPointer result = compiled(service, managed_scale(), image);
        CHECK_THAT(result->image, Contains(".entry smt_scale"));
        CHECK_THAT(later.text(), Contains("kept from before"));
    }
    SECTION("and so does one that never saw the source, without any worker") {
        Settings settings = toy_settings(folder.file("cache"));
        settings.compiler = "/bin/false";
        Service service(settings, lines.say());
        Service::Answer answer = service.wait(image, 0s);
        REQUIRE(answer.state == State::kDone);
        CHECK_THAT(answer.result->image, Contains(".entry smt_scale"));
        CHECK(service.wait(image, 0s).result == answer.result);
    }
    SECTION("damaged files are made anew") {
        for (const auto& file : std::filesystem::directory_iterator(folder.file("cache"))) {
            std::ofstream(file.path(), std::ios::app) << "x";
        }
        Lines later;
        Service service(toy_settings(folder.file("cache")), later.say());
        CHECK(service.wait(image, 0s).state == State::kUnknown);
        ResultPointer result = compiled(service, managed_scale(), image);
        CHECK_THAT(result->image, Contains(".entry smt_scale"));
        CHECK_THAT(later.text(), Contains("damaged") && Contains("compiled in"));
    }
}

TEST_CASE("the image takes part in the key: an included file may have changed") {
    TemporaryFolder folder;
    Lines lines;
    Source source = managed_scale();
    source.text = "#include \"factor.h\"\n" + source.text;
    source.options.push_back("-I" + folder.path());
    Service service(toy_settings(folder.file("cache")), lines.say());
    for (const char* factor : {"3", "5"}) {
        std::ofstream(folder.file("factor.h")) << "extern \"C\" __device__ int factor = " << factor << ";\n";
        ResultPointer result = compiled(service, source, plain_image(source));
        CHECK_THAT(result->image, Contains(std::string("factor = ") + factor));
    }
    CHECK(count(lines.text(), "compiled in") == 2);
}

TEST_CASE("refusals are kept, a worker's troubles are not") {
    TemporaryFolder folder;
    const std::string image = plain_image(managed_scale());
    auto line_of = [&](const std::string& toy) {
        Lines lines;
        Service service(toy_settings(folder.file("cache")), lines.say());
        CHECK(compiled(service, source(toy), image + "\n// " + toy)->image.empty());
        return lines.text();
    };
    for (const char* toy : {"//toy refused scale it launches kernels", "//toy error test.cu:1: no C++", "//toy managed scale x\n!"}) {
        CHECK_THAT(line_of(toy), Contains("compiled in"));
        CHECK_THAT(line_of(toy), Contains("kept from before"));
    }
    CHECK_THAT(line_of("//toy refused scale it launches kernels"), Contains("0 kernels managed, 1 refused (scale: it launches kernels)"));
    CHECK_THAT(line_of("//toy crash"), Contains("crashed") && Contains("compiled in"));
    CHECK_THAT(line_of("//toy crash"), Contains("crashed") && Contains("compiled in"));
}

TEST_CASE("an image that lacks something of the program's own is not loaded") {
    Lines lines;
    Service service(toy_settings(), lines.say());
    const std::string image = plain_image(managed_scale());
    Source other = source("//toy managed scale smt_scale", "extern \"C\" __global__ void smt_scale() {}");
    ResultPointer result = compiled(service, other, image);
    CHECK(result->image.empty());
    CHECK_THAT(result->reason, Contains("lacks kernel scale"));
}

TEST_CASE("kernels are compared with their parameters, variables with their types") {
    const std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n";
    const std::string kernel = ".visible .entry k(.param .u64 a, .param .align 4 .b8 b[12]) { ret; }\n";
    const std::string variable = ".visible .global .align 4 .b8 v[16];\n.global .u32 own;\n";
    const std::string original = text + variable + kernel;
    CHECK(missing_from(original, original) == "");
    CHECK(missing_from(original, original + ".visible .entry more() { ret; }\n") == "");
    CHECK(missing_from(text + kernel, original) == "");
    CHECK_THAT(missing_from(original, text + kernel), Contains("lacks variable v"));
    CHECK_THAT(missing_from(original, text + variable), Contains("lacks kernel k"));
    std::string other = original;
    other.replace(other.find("b[12]"), 5, "b[16]");
    CHECK_THAT(missing_from(original, other), Contains("kernel k is another"));
    CHECK_THAT(missing_from(original, "no image"), Contains("managed image"));
    CHECK_THAT(missing_from("", original), Contains("program's image"));
}

TEST_CASE("waiting ends when patience does, and when the service leaves") {
    Lines lines;
    const std::string image = plain_image(managed_scale());
    auto service = std::make_unique<Service>(toy_settings(), lines.say());
    service->submit(source("//toy hang"), image);
    CHECK(service->wait(image, 20ms).state == State::kPending);
    service->submit(managed_scale(), "\n" + image);   // behind it
    CHECK(service->wait("\n" + image, 20ms).state == State::kPending);
    service.reset();   // at once, not after a minute
}

TEST_CASE("what NVRTC does not make is not looked up") {
    CHECK(!Service::may_be_known(""));
    CHECK(!Service::may_be_known(std::string("\x50\xed\x55\xba", 4) + std::string(100, 'x')));
    CHECK(Service::may_be_known("\177ELF"));
    CHECK(Service::may_be_known(".version 9.0"));
}
