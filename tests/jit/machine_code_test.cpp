// Machine code of PTX and of the linker's inputs, made by the worker.
#include <catch2/catch.hpp>

#include "runtime/image/image.h"
#include "runtime/image/kernel_facts.h"
#include "runtime/jit/service.h"
#include "tests/jit/sources.h"
#include "tests/unit/temporary_folder.h"

using namespace smt::runtime::jit;
using namespace smt::tests;
using namespace std::chrono_literals;
using Catch::Contains;

namespace {

constexpr uint32_t kJitCubin = 0, kJitPtx = 1;  // CUjitInputType

std::string module_with(const std::string& content, const std::string& version = "8.0",
                        const std::string& target = "sm_90") {
    return ".version " + version + "\n.target " + target + "\n.address_size 64\n" + content;
}
const std::string kCaller = module_with(
    ".extern .func (.param .b32 r) twice (.param .b32 x);\n"
    ".visible .entry k() { .reg .b32 %r<2>; { .param .b32 a, b; st.param.b32 [a], 21; call.uni (b), twice, "
    "(a); } ret; }\n");
const std::string kCallee = module_with(
    ".visible .func (.param .b32 r) twice (.param .b32 x) { .reg .b32 %r<3>; ld.param.b32 %r1, [x];\n"
    "add.s32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret; }\n");

Order order_for(Language language, std::vector<Input> inputs, std::vector<std::string> options = {}) {
    Order order;
    order.language = language;
    order.architecture = "sm_90";
    order.inputs = std::move(inputs);
    order.source.options = std::move(options);
    return order;
}

Input input(uint32_t type, const std::string& data) { return {type, 0, data.size(), "input", data}; }

ResultPointer make(Service& service, Order order) {
    Service::Answer answer = service.wait_for(1, service.make_machine_code(1, std::move(order)), 60s);
    REQUIRE(answer.state == Service::State::kDone);
    return answer.result;
}

ResultPointer assemble(Service& service, const std::string& text, std::vector<std::string> options = {}) {
    return make(service, order_for(Language::kAssembly, {input(kJitPtx, text)}, std::move(options)));
}

uint32_t registers_in(const std::string& cubin) {
    auto facts = smt::image::kernel_facts(cubin);
    const auto* list = std::get_if<std::vector<smt::image::KernelFacts>>(&facts);
    return list && list->size() == 1 ? list->front().registers : 0;
}

}  // namespace

TEST_CASE("PTX becomes machine code in the worker, with the options, once") {
    TemporaryFolder folder;
    std::string lines;
    const std::string text = module_with(".visible .entry k() { ret; }\n");
    {
        Service service(toy_settings(folder.file("cache")),
                        [&](const std::string& line) { lines += line + "\n"; });
        const ResultPointer plain = assemble(service, text);
        INFO(plain->reason);
        CHECK(registers_in(plain->image) > 0);
        CHECK_THAT(assemble(service, text, {"--verbose"})->log, Contains("Used") && Contains("registers"));
        CHECK(assemble(service, text) == plain);
        Order packed = order_for(Language::kAssembly, {input(kJitPtx, text)});
        packed.inputs[0].packed = 1;  // it is no LZ4
        CHECK_THAT(make(service, packed)->reason, Contains("LZ4"));
    }
    CHECK_THAT(lines, Contains("PTX for sm_90") && Contains("bytes of machine code; compiled in"));
    Service later(toy_settings(folder.file("cache")), [&](const std::string& line) { lines += line + "\n"; });
    CHECK(!assemble(later, text)->image.empty());
    CHECK_THAT(lines, Contains("kept from before"));
}

TEST_CASE("PTX that is none has the compiler's words, and a later version is told apart") {
    Service service(toy_settings(), [](const std::string&) {});
    const ResultPointer wrong =
        assemble(service, module_with(".visible .entry k() { mov.u32 %r1, 5; ret; }\n"));
    CHECK(wrong->image.empty());
    CHECK(wrong->trouble == Trouble::kInvalid);
    CHECK_THAT(wrong->reason,
               Contains("ptxas application ptx input, line 4; error") && Contains("Unknown symbol '%r1'"));
    const ResultPointer newer = assemble(service, module_with(".visible .entry k() { ret; }\n", "99.9"));
    CHECK(newer->trouble == Trouble::kTooNew);
    CHECK_THAT(newer->reason, Contains("Unsupported .version 99.9"));
    CHECK(assemble(service, module_with(".visible .entry k() { ret; }\n", "8.7", "sm_100"))->trouble ==
          Trouble::kInvalid);
    CHECK(assemble(service, kCaller)->trouble == Trouble::kInvalid);  // it wants to be linked
    CHECK(assemble(service, "")->image.empty());
}

TEST_CASE("inputs are linked in the worker") {
    Service service(toy_settings(), [](const std::string&) {});
    const ResultPointer caller = assemble(service, kCaller, {"--compile-only"}),
                        callee = assemble(service, kCallee, {"--compile-only"});
    INFO(caller->reason << callee->reason);
    const ResultPointer both =
        make(service,
             order_for(Language::kLink, {input(kJitCubin, caller->image), input(kJitCubin, callee->image)}));
    INFO(both->reason);
    CHECK(smt::image::read(both->image).index() == 0);
    CHECK_FALSE(smt::image::is_relocatable(both->image));
    const ResultPointer one = make(service, order_for(Language::kLink, {input(kJitCubin, caller->image)}));
    CHECK(one->trouble == Trouble::kInvalid);
    CHECK_THAT(one->reason, Contains("Undefined reference to 'twice'"));
    CHECK(make(service, order_for(Language::kLink, {input(kJitCubin, "no cubin")}))->trouble ==
          Trouble::kInvalid);
    CHECK(make(service, order_for(Language::kLink, {input(77, caller->image)}))->trouble ==
          Trouble::kInvalid);
}

TEST_CASE("without a linker that is said, for the driver to do it") {
    setenv("SMT_COMPILE", "nvjitlink=/nowhere/libnvJitLink.so.13", 1);
    Service service(toy_settings(), [](const std::string&) {});
    CHECK(make(service, order_for(Language::kLink, {input(kJitCubin, "x")}))->trouble == Trouble::kMissing);
    unsetenv("SMT_COMPILE");
}
