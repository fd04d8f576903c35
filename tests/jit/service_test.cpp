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
constexpr TenantId kOne = 1, kOther = 2;

struct ServiceLines {
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

Service::Answer wait(Service& service, const std::string& image,
                     std::chrono::milliseconds patience = kPatience, TenantId tenant = kOne) {
    return service.wait_for(tenant, identity_of(image), patience);
}

ResultPointer compiled(Service& service, const Source& source, const std::string& image,
                       TenantId tenant = kOne) {
    service.submit(tenant, source, "", image);
    Service::Answer answer = wait(service, image, kPatience, tenant);
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
    ServiceLines lines;
    const std::string image = plain_image(managed_scale());
    {
        Service service(toy_settings(folder.file("cache")), lines.say());
        CHECK(wait(service, image).state == State::kUnknown);
        ResultPointer result = compiled(service, managed_scale(), image);
        CHECK_THAT(result->image, Contains(".entry smt_scale") && Contains(".entry scale"));
        // However many NULs the text ends with.
        CHECK(wait(service, image.substr(0, image.size() - 1), 0s).result == result);
        CHECK(wait(service, image + std::string(3, '\0'), 0s).result == result);
        CHECK(wait(service, image + " ", 0s).state == State::kUnknown);
        service.submit(kOne, managed_scale(), "", image);  // again
    }
    CHECK(count(lines.text(), "source captured: test.cu") == 1);
    CHECK_THAT(lines.text(), Contains("1 kernels managed, 0 refused; compiled in"));

    SECTION("another server finds it on disk") {
        ServiceLines later;
        Service service(toy_settings(folder.file("cache")), later.say());
        ResultPointer result = compiled(service, managed_scale(), image);
        CHECK_THAT(result->image, Contains(".entry smt_scale"));
        CHECK_THAT(later.text(), Contains("kept from before"));
    }
    SECTION("and so does one that never saw the source, without any worker") {
        Settings settings = toy_settings(folder.file("cache"));
        settings.compiler = "/bin/false";
        Service service(settings, lines.say());
        Service::Answer answer = wait(service, image, 0s);
        REQUIRE(answer.state == State::kDone);
        CHECK_THAT(answer.result->image, Contains(".entry smt_scale"));
        CHECK(wait(service, image, 0s).result == answer.result);
    }
    SECTION("damaged files are made anew") {
        for (const auto& file : std::filesystem::directory_iterator(folder.file("cache"))) {
            std::ofstream(file.path(), std::ios::app) << "x";
        }
        ServiceLines later;
        Service service(toy_settings(folder.file("cache")), later.say());
        CHECK(wait(service, image, 0s).state == State::kUnknown);
        ResultPointer result = compiled(service, managed_scale(), image);
        CHECK_THAT(result->image, Contains(".entry smt_scale"));
        CHECK_THAT(later.text(), Contains("damaged") && Contains("compiled in"));
    }
}

TEST_CASE("the image takes part in the key: an included file may have changed") {
    TemporaryFolder folder;
    ServiceLines lines;
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
        ServiceLines lines;
        Service service(toy_settings(folder.file("cache")), lines.say());
        CHECK(compiled(service, source(toy), image)->image.empty());
        return lines.text();
    };
    for (const char* toy : {"//toy refused scale it launches kernels", "//toy error test.cu:1: no C++"}) {
        CHECK_THAT(line_of(toy), Contains("compiled in"));
        CHECK_THAT(line_of(toy), Contains("kept from before"));
    }
    CHECK_THAT(line_of("//toy refused scale it launches kernels"),
               Contains("0 kernels managed, 1 refused (scale: it launches kernels)"));
    CHECK_THAT(line_of("//toy crash"), Contains("crashed") && Contains("compiled in"));
    CHECK_THAT(line_of("//toy crash"), Contains("crashed") && Contains("compiled in"));
}

TEST_CASE("a source that does not make the image is not used, by any program") {
    TemporaryFolder folder;
    ServiceLines lines;
    const Form form = GENERATE(Form::kPtx, Form::kCubin);
    Source honest = managed_scale(), lie = source("//toy managed scale smt_scale",
                                                  std::string(kScale) + "/* and */ __device__ int more;");
    lie.text.replace(lie.text.find("*= 2"), 4, "*= 3");
    if (form == Form::kCubin) honest.options = lie.options = {"--gpu-architecture=sm_90"};
    const std::string target = plain_image(honest, form);
    REQUIRE(target != plain_image(lie, form));
    {
        Service service(toy_settings(folder.file("cache")), lines.say());
        ResultPointer refused = compiled(service, lie, target);
        CHECK(refused->image.empty());
        CHECK_THAT(refused->reason, Contains("does not make it") && Contains("makes another image"));
        CHECK(wait(service, target, 0s, kOther).state == State::kUnknown);
        ResultPointer proven =
            compiled(service, honest, target, kOther);  // the lie does not stand in its way
        CHECK_THAT(proven->image, Contains("smt_scale"));
        CHECK(compiled(service, lie, target) == proven);  // the image's own, whatever it announces
        CHECK_THAT(lines.text(), Contains("does not make it"));
    }
    Service later(toy_settings(folder.file("cache")), lines.say());
    CHECK_THAT(wait(later, target, 0s).result->image, Contains("smt_scale"));
}

TEST_CASE("what a rewritten text became is for programs that announced this text") {
    TemporaryFolder folder;
    ServiceLines lines;
    // It makes the image, and something else once it is rewritten.
    Source trick = source("//toy managed scale smt_scale", kUneven);
    trick.text.replace(trick.text.find("#ifdef TOY_REWRITTEN"), 20,
                       "#ifdef TOY_REWRITTEN\n__device__ int trick;");
    const std::string image = plain_image(source("//toy managed scale smt_scale", kUneven));
    {
        Service service(toy_settings(folder.file("cache")), lines.say());
        CHECK_THAT(compiled(service, trick, image)->image, Contains("trick"));
        CHECK(wait(service, image, 0s, kOther).state == State::kUnknown);
        CHECK_THAT(compiled(service, source("//toy managed scale smt_scale", kUneven), image, kOther)->image,
                   !Contains("trick"));
    }
    Service later(toy_settings(folder.file("cache")), lines.say());
    CHECK(wait(later, image, 0s).state == State::kUnknown);
    CHECK_THAT(compiled(later, trick, image)->image, Contains("trick"));
    CHECK_THAT(lines.text(), Contains("kept from before"));
}

TEST_CASE("a source is compiled in its program's folder") {
    TemporaryFolder folder;
    ServiceLines lines;
    Service service(toy_settings(), lines.say());
    std::filesystem::create_directory(folder.file("include"));
    std::ofstream(folder.file("include/factor.h")) << "__device__ int factor = 3;\n";
    Source given = source("//toy managed scale smt_scale", "#include \"factor.h\"\n" + std::string(kScale));
    given.options.push_back("-Iinclude");
    given.options.push_back("-lineinfo");  // names the folders
    const std::string image = plain_image(given, Form::kPtx, folder.path());
    service.submit(kOther, given, "/nowhere", image);
    CHECK_THAT(wait(service, image, kPatience, kOther).result->reason, Contains("factor.h"));
    service.submit(kOne, given, folder.path(), image);
    CHECK_THAT(wait(service, image).result->image, Contains(".entry smt_scale"));
}

TEST_CASE("an image that lacks something of the program's own is not loaded") {
    ServiceLines lines;
    Service service(toy_settings(), lines.say());
    Source given = source("//toy managed scale smt_scale",
                          "#ifndef TOY_REWRITTEN\n" + std::string(kUneven) +
                              "#else\nextern \"C\" __global__ void smt_scale() {}\n#endif");
    ResultPointer result = compiled(service, given, plain_image(given));
    CHECK(result->image.empty());
    CHECK_THAT(result->reason, Contains("lacks kernel scale"));
}

TEST_CASE("one tenant's compiles do not keep another's waiting") {
    ServiceLines lines;
    const std::string image = plain_image(managed_scale());
    Settings settings = toy_settings();
    settings.workers = 2;
    Service service(settings, lines.say());
    for (const char* hang : {"//toy hang", "//toy hang a", "//toy hang b"})
        service.submit(kOne, source(hang), "", image);
    CHECK(wait(service, image, 0s).state == State::kPending);
    CHECK_THAT(compiled(service, managed_scale(), image, kOther)->image, Contains(".entry smt_scale"));
    CHECK(wait(service, image, 0s).state == State::kPending);
}

TEST_CASE("a question without patience hurries no compile") {
    ServiceLines lines;
    const std::string image = plain_image(managed_scale());
    Settings settings = toy_settings();
    settings.workers = 1;
    Service service(settings, lines.say());
    const char* const names[] = {"first.cu", "second.cu", "third.cu", "fourth.cu"};
    std::string last;
    for (const char* name : names) {
        Source own = managed_scale();
        own.name = name;
        last = image + "\n// " + name;
        service.submit(kOne, own, "", last);
    }
    CHECK(wait(service, last, 0s).state == State::kPending);
    for (const char* name : names) wait(service, image + "\n// " + name);
    size_t before = 0;
    for (const char* name : names) {
        const size_t at = lines.text().find(name);
        CHECK(at != std::string::npos);
        CHECK(at >= before);
        before = at;
    }
}

TEST_CASE("what two tenants ask for is compiled once") {
    ServiceLines lines;
    const std::string image = plain_image(managed_scale());
    Settings settings = toy_settings();
    settings.workers = 4;
    Service service(settings, lines.say());
    for (TenantId tenant = 1; tenant <= 8; ++tenant) service.submit(tenant, managed_scale(), "", image);
    ResultPointer first = wait(service, image).result;
    for (TenantId tenant = 1; tenant <= 8; ++tenant)
        CHECK(wait(service, image, kPatience, tenant).result == first);
    CHECK(count(lines.text(), "compiled in") == 1);
}

TEST_CASE("a tenant's compiles that wait are bounded, and a load is told so") {
    ServiceLines lines;
    const std::string image = plain_image(managed_scale());
    Service service(toy_settings(), lines.say());
    service.submit(kOne, source("//toy hang"), "", image);
    Source large = managed_scale();
    large.text.append(20u << 20, ' ');
    for (int i = 0; i < 4; ++i) service.submit(kOne, (large.text += ' ', large), "", image);
    CHECK_THAT(wait(service, image, 0s).result->reason, Contains("too many of this tenant's compiles"));
    service.forget(kOne);
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
    ServiceLines lines;
    const std::string image = plain_image(managed_scale());
    auto service = std::make_unique<Service>(toy_settings(), lines.say());
    service->submit(kOne, source("//toy hang"), "", image);
    CHECK(wait(*service, image, 20ms).state == State::kPending);
    service->submit(kOne, managed_scale(), "", "\n" + image);  // behind it
    CHECK(wait(*service, "\n" + image, 20ms).state == State::kPending);
    service.reset();  // at once, not after a minute
}

TEST_CASE("what NVRTC does not make is not looked up") {
    CHECK(!Service::may_be_known(""));
    CHECK(!Service::may_be_known(std::string("\x50\xed\x55\xba", 4) + std::string(100, 'x')));
    CHECK(Service::may_be_known("\177ELF"));
    CHECK(Service::may_be_known(".version 9.0"));
}
