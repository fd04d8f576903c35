// printf's formats, each against what the host prints.
#include <bit>
#include <catch2/catch.hpp>
#include <deque>

#include "runtime/device/simulated/exec/families/builtins.h"

using namespace smt::runtime::device::simulated;

namespace {

std::string print(const std::string& format, std::deque<uint64_t> values) {
    PrintSource source;
    source.next = [&](uint32_t bytes, uint64_t* value) {
        if (values.empty()) return false;
        *value = bytes == 4 ? static_cast<uint32_t>(values.front()) : values.front();
        values.pop_front();
        return true;
    };
    source.text_at = [](uint64_t address, std::string* text) {
        *text = reinterpret_cast<const char*>(address);
        return true;
    };
    std::string out;
    if (!format_print(format, source, &out)) return "failed";
    return out;
}

uint64_t bits(double value) { return std::bit_cast<uint64_t>(value); }
uint64_t text(const char* words) { return reinterpret_cast<uint64_t>(words); }

}  // namespace

TEST_CASE("integers of every length") {
    REQUIRE(print("%d %i %u", {~0ull, 5, ~0ull}) == "-1 5 4294967295");
    REQUIRE(print("%ld %lld %llu %zu", {~0ull, ~1ull, ~0ull, 7}) == "-1 -2 18446744073709551615 7");
    REQUIRE(print("%hd %hhd %hu %hhu", {0x18000, 0x180, 0x1ffff, 0x1ff}) == "-32768 -128 65535 255");
    REQUIRE(print("%x %X %o %#x %lx", {0xbeef, 0xBEEF, 8, 255, 1ull << 40}) ==
            "beef BEEF 10 0xff 10000000000");
    REQUIRE(print("[%5d][%-5d][%05d][%+d]", {42, 42, 42, 42}) == "[   42][42   ][00042][+42]");
    REQUIRE(print("[%*d][%-*d]", {6, 1, 4, 2}) == "[     1][2   ]");
}

TEST_CASE("floating point, text, characters, pointers") {
    REQUIRE(print("%f %.3f %10.2e %g", {bits(1.5), bits(3.14159), bits(12345.0), bits(0.0001)}) ==
            "1.500000 3.142   1.23e+04 0.0001");
    REQUIRE(print("%a %f", {bits(1.0), bits(INFINITY)}) == "0x1p+0 inf");
    REQUIRE(print("<%s|%6s|%-6s|%.2s>", {text("ab"), text("cd"), text("ef"), text("ghi")}) ==
            "<ab|    cd|ef    |gh>");
    REQUIRE(print("%s", {0}) == "(null)");
    REQUIRE(print("%c%c 100%%", {'o', 'k'}) == "ok 100%");
    REQUIRE(print("%p", {0x1234}) == "0x1234");
}

TEST_CASE("what is no conversion stays, what has no argument fails") {
    REQUIRE(print("%y %", {}) == "%y %");
    REQUIRE(print("plain", {}) == "plain");
    REQUIRE(print("%d %d", {1}) == "failed");
    REQUIRE(print("%99999999d", {1}) == "failed");
}
