// What a GPU core dump tells of a fault, with another kernel at work beside it.
#include "runtime/image/core_dump.h"

#include <catch2/catch.hpp>

#include "tests/image/made_core_dump.h"

namespace smt::image {
namespace {

using Sign = MadeDump::Sign;

// "culprit@5000 2,0,1 of 7,1,4 x 64,1,1", or the problem.
std::string told(const std::string& bytes) {
    const auto read = read_core_dump(bytes);
    if (const auto* problem = std::get_if<Problem>(&read)) return problem->text;
    const auto& site = std::get<FaultSite>(read);
    const auto three = [](const std::array<uint32_t, 3>& of) {
        return std::to_string(of[0]) + ',' + std::to_string(of[1]) + ',' + std::to_string(of[2]);
    };
    char module[32];
    std::snprintf(module, sizeof module, "@%lx", static_cast<unsigned long>(site.module));
    std::string text = site.kernel + module;
    if (site.place)
        text += " " + three(site.place->cta) + " of " + three(site.place->grid) + " x " +
                three(site.place->block);
    return text;
}

std::string told(Sign sign) { return told(made_core_dump({.sign = sign})); }

TEST_CASE("a thread's exception, a warp's error and a breakpoint name kernel, module and CTA") {
    const std::string whole = "culprit@5000 2,0,1 of 7,1,4 x 64,1,1";
    CHECK(told(Sign::kException) == whole);
    CHECK(told(Sign::kErrorPc) == whole);
    CHECK(told(Sign::kBreakpoint) == whole);
}

TEST_CASE("a CTA that ended before the dump is known by the address of its code") {
    CHECK(told(Sign::kEnded) == "culprit@5000");
}

TEST_CASE("what is no dump of a fault is a problem in words") {
    CHECK(told(Sign::kNone) == "a core dump that shows no fault");
    CHECK(told("") == "no ELF file");
    MadeElf program;
    CHECK(told(program.bytes({ET_EXEC, EM_X86_64})) == "an ELF file that is not the core dump of a GPU");
}

TEST_CASE("a dump that is cut or damaged anywhere is answered") {
    const std::string whole = made_core_dump({});
    for (size_t length = 0; length < whole.size(); length += 7)
        CHECK_FALSE(told(whole.substr(0, length)).empty());
    for (size_t at = 0; at < whole.size(); at += 3) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
        told(damaged);
    }
}

}  // namespace
}  // namespace smt::image
