// Fenced kernels take blocks as large as the program's own do; the assembler is the real one.
#include "runtime/jit/worker/block_sizes.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "runtime/image/image.h"
#include "runtime/jit/opened.h"
#include "runtime/jit/service.h"
#include "runtime/jit/worker/ptx_compiler.h"
#include "runtime/jit/worker/registers.h"
#include "tests/image/made.h"
#include "tests/jit/sources.h"

using namespace smt;
using namespace smt::runtime::jit;

namespace {

constexpr uint16_t kEntryPtx = 1, kEntryCubin = 2;
constexpr int kFull = 54;  // values with which a kernel has 64 registers, and with fences more
constexpr int kWide = 80;  // with which its own form has more than 64

// A kernel that holds so many values at once.
std::string keeping(const std::string& name, int values, const std::string& directives = "") {
    std::string text = fmt::format(
        ".visible .entry {}(.param .u64 p)\n{}{{\n.reg .b64 %a<2>;\n.reg .f32 %f<{}>;\n"
        "ld.param.u64 %a1, [p];\n",
        name, directives, values);
    for (int i = 0; i < values; ++i)
        text += fmt::format("ld.volatile.global.f32 %f{}, [%a1+{}];\n", i, 4 * i);
    for (int i = 0; i < values; ++i)
        text += fmt::format("st.volatile.global.f32 [%a1+{}], %f{};\n", 4 * i, values - 1 - i);
    return text + "ret;\n}\n";
}

std::string text_with(const std::string& kernels) {
    return ".version 8.0\n.target sm_90\n.address_size 64\n" + kernels;
}

Order assembly_of(const std::string& text) {
    Order order;
    order.language = Language::kAssembly;
    order.form = Form::kCubin;
    order.architecture = "sm_90";
    order.inputs.push_back({0, 0, text.size(), "", text});
    return order;
}

Facts facts_in(const Result& result) {
    INFO(result.reason);
    REQUIRE(!result.image.empty());
    return facts_of(result.image);
}

std::string machine_code_of(const std::string& text) { return compile_ptx(assembly_of(text)).image; }

Opened fenced(std::string_view image) {
    OpenOrder asked;
    asked.moves = asked.tables = asked.fences = true;
    asked.device.architecture = asked.target.architecture = 90;
    asked.most_ptx_bytes = 1 << 20;
    Opened opened = open_image(asked, image);
    INFO(opened.problem);
    REQUIRE(opened.problem.empty());
    return opened;
}

// As the server orders the machine code of what was opened.
Order order_of(const Opened& opened) {
    Order order = assembly_of(opened.choices.ptx.text);
    order.registers = opened.own.registers;
    order.ptx = opened.own.ptx;
    return order;
}

}  // namespace

TEST_CASE("how many threads registers allow, and how many registers threads leave", "[fences]") {
    constexpr std::pair<uint32_t, uint32_t> kKnown[] = {
        // registers, threads
        {0, 1024}, {1, 1024}, {64, 1024}, {65, 896}, {72, 896}, {80, 768}, {96, 640}, {128, 512}, {255, 256}};
    for (const auto& [registers, threads] : kKnown) CHECK(threads_with(registers) == threads);
    CHECK(threads_with(~0u) == 256);
    CHECK(registers_for(1024) == 64);
    CHECK(registers_for(768) == 80);
    CHECK(registers_for(1) == 255);
    for (uint32_t registers = 1; registers <= 255; ++registers) {
        CHECK(registers_for(threads_with(registers)) >= registers);
        CHECK(threads_with(registers_for(threads_with(registers))) == threads_with(registers));
    }
}

TEST_CASE("a fenced kernel takes the blocks that the program's own takes", "[fences]") {
    const std::string text = text_with(keeping("k", kFull) + keeping("small", 4) + keeping("wide", kWide));
    const Facts own = facts_of(machine_code_of(text));
    REQUIRE(own.at("k").registers <= 64);
    REQUIRE(own.at("wide").registers > 64);
    for (const bool machine_code : {true, false}) {  // beside the PTX
        const std::string image =
            machine_code
                ? image::fatbin({{kEntryCubin, 90, 0, machine_code_of(text)}, {kEntryPtx, 90, 0, text}})
                : text;
        const Opened opened = fenced(image);
        CHECK(opened.own.registers.size() == (machine_code ? 3 : 0));
        CHECK(opened.own.ptx == (machine_code ? "" : text));
        const Facts free = facts_in(compile_ptx(order_of(opened)));
        CHECK(free.at("k").registers > 64);
        const Facts held = facts_in(compile_for_blocks(order_of(opened)));
        CHECK(held.at("k").registers <= 64);
        CHECK(held.at("small").registers == free.at("small").registers);
        for (const auto& [name, kernel] : own)
            CHECK(threads_with(held.at(name).registers) >= threads_with(kernel.registers));
        CHECK(held.at("wide").registers > 64);
    }
}

TEST_CASE("a fenced kernel is not held to more than its blocks need", "[fences]") {
    // By its own bounds it is never launched with 1024 threads, or ptxas holds it.
    const std::string text =
        text_with(keeping("bounded", kWide, ".maxntid 256, 1, 1\n") +
                  keeping("full", kFull, ".maxntid 32, 32, 1\n") + keeping("wide", kWide));
    const Opened opened = fenced(text);
    const Result free = compile_ptx(order_of(opened));
    CHECK(facts_in(free).at("bounded").registers > 64);
    CHECK(facts_in(free).at("full").registers <= 64);
    Order order = order_of(opened);
    order.registers = {{"wide", 255}};
    CHECK(compile_for_blocks(order).image == free.image);
    order.registers.clear();
    order.ptx.clear();  // nothing is known of own forms
    CHECK(compile_for_blocks(order).image == free.image);
    order.registers = {{"other", 8}};
    CHECK(compile_for_blocks(order).image == free.image);
    order.ptx = "nonsense";
    CHECK(compile_for_blocks(order).image == free.image);
}

TEST_CASE("a limit that the program wrote gives way to a lower one", "[fences]") {
    const Opened opened = fenced(text_with(keeping("k", kFull, ".maxnreg 128\n")));
    CHECK(facts_in(compile_ptx(order_of(opened))).at("k").registers > 64);
    CHECK(facts_in(compile_for_blocks(order_of(opened))).at("k").registers <= 64);
}

TEST_CASE("the managed form of a kernel that is held is held, too", "[fences]") {
    Order order = assembly_of(text_with(keeping("k", kWide) + keeping("smt_k", kWide) + keeping("fits", 4) +
                                        keeping("smt_fits", kWide)));
    order.registers = {{"k", 20}, {"fits", 20}};
    const Facts held = facts_in(compile_for_blocks(order));
    CHECK(held.at("k").registers <= 64);
    CHECK(held.at("smt_k").registers <= 64);
    CHECK(held.at("smt_fits").registers > 64);  // registers.h says what it may have
}

TEST_CASE("machine code that the worker makes is held", "[fences]") {
    const Opened opened = fenced(text_with(keeping("k", kFull)));
    Service service(smt::tests::toy_settings(), [](const std::string&) {});
    const std::string identity = service.make_machine_code(1, order_of(opened));
    const Service::Answer answer = service.wait_for(1, identity, std::chrono::seconds(60));
    REQUIRE(answer.state == Service::State::kDone);
    CHECK(facts_in(*answer.result).at("k").registers <= 64);
}

TEST_CASE("a kernel that cannot be fenced needs no own form", "[fences]") {
    const std::string refused = ".visible .entry r()\n{\nbar.sync 1, 64;\nret;\n}\n";
    CHECK(fenced(text_with(refused)).own.ptx.empty());
    CHECK_FALSE(fenced(text_with(refused + keeping("k", 4))).own.ptx.empty());
}
