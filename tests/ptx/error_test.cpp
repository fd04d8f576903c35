// What is refused, where, and in which words.
#include <catch2/catch.hpp>

#include "rewriter/ptx/parser.h"

namespace smt::ptx {
namespace {

constexpr const char* kHeadLine = ".version 9.0 .target sm_90 .address_size 64\n";  // one line

std::string problem_of(const std::string& text) {
    auto result = parse(text);
    auto* problem = std::get_if<Diagnostic>(&result);
    return problem ? to_string(*problem) : "";
}

std::string in_module(const std::string& text) { return problem_of(kHeadLine + text); }
// The instruction begins at line 3, column 1.
std::string in_kernel(const std::string& text) {
    return in_module(".global .b32 g; .entry k() { .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<4>;\n" +
                     text + "\n}");
}

TEST_CASE("instructions are refused with their name and place", "[ptx]") {
    CHECK(in_kernel("frobnicate.s32 %r1, %r2;") == "line 3, column 1: unknown instruction 'frobnicate.s32'");
    CHECK(in_kernel("@%p frobnicate;") == "line 3, column 5: unknown instruction 'frobnicate'");
    CHECK(in_kernel("add.foo.s32 %r1, %r2, %r3;") ==
          "line 3, column 4: add.foo.s32: unknown modifier '.foo'");
    CHECK(in_kernel("add.sync.s32 %r1, %r2, %r3;") ==
          "line 3, column 4: add.sync.s32: add takes no modifier '.sync'");
    CHECK(in_kernel("add.m8n8.s32 %r1, %r2, %r3;") ==
          "line 3, column 4: add.m8n8.s32: add takes no modifier '.m8n8'");
    CHECK(in_kernel("add.s32 %r1, %r2;") == "line 3, column 1: add.s32: takes 3 operands, not 2");
    CHECK(in_kernel("mov.b32 %r1;") == "line 3, column 1: mov.b32: takes 2 operands, not 1");
    CHECK(in_kernel("ret %r1;") == "line 3, column 1: ret: takes 0 operands, not 1");
    CHECK(in_kernel("setp.eq.s32 %p;") == "line 3, column 1: setp.eq.s32: takes 3 to 4 operands, not 1");
    CHECK(in_kernel("add.s32 %r1, %r2, %r3 ret;") ==
          "line 3, column 23: add.s32: expected ';' after the operands, not 'ret'");
    CHECK(in_kernel("add.s32 %r1, %r2, ;") == "line 3, column 19: add.s32: expected an operand, not ';'");
    CHECK(in_kernel("add.s32 %r1, %r2, %q;") == "line 3, column 19: add.s32: '%q' is not declared");
    CHECK(in_kernel("add.s32 %r1, %r2, %r4;") == "line 3, column 19: add.s32: '%r4' is not declared");
    CHECK(in_kernel("mov.b32 %r1, %tid.q;") ==
          "line 3, column 18: mov.b32: '.q' selects no part of an operand");
    CHECK(in_kernel("mov.b32 %r1, %envreg32;") == "line 3, column 14: mov.b32: '%envreg32' is not declared");
    CHECK(in_kernel("@%x ret;") == "line 3, column 2: '%x' is no declared register");
    CHECK(in_kernel("@ret;") == "line 3, column 2: 'ret' is no declared register");
    CHECK(in_kernel("@3 ret;") == "line 3, column 2: expected a predicate register after '@', not '3'");
    CHECK(in_kernel("@%p ;") == "line 3, column 5: expected an instruction, not ';'");
    CHECK(in_kernel("setp.eq.s32 %p|3, %r1, %r2;") ==
          "line 3, column 16: setp.eq.s32: expected a register after '|', not '3'");
}

TEST_CASE("addresses, vectors, calls and labels", "[ptx]") {
    CHECK(in_kernel("ld.b32 %r1, [%d0;") ==
          "line 3, column 17: ld.b32: expected ']' at the end of the address, not ';'");
    CHECK(in_kernel("ld.b32 %r1, [];") == "line 3, column 14: ld.b32: expected an address, not ']'");
    CHECK(in_kernel("ld.b32 %r1, [%d0+%r1];") == "line 3, column 18: ld.b32: expected a number, not '%r1'");
    CHECK(in_kernel("ld.b32 %r1, [%d0+1.5];") == "line 3, column 17: ld.b32: an offset is an integer");
    CHECK(in_kernel("mov.b64 {%r1, %r2, %d0;") ==
          "line 3, column 23: mov.b64: expected '}' at the end of the vector, not ';'");
    CHECK(in_kernel("mov.b64 {%r1, [%r2]}, %d0;") ==
          "line 3, column 15: mov.b64: expected a register or a number, not '['");
    CHECK(in_kernel("bra nowhere;") == "line 3, column 5: there is no label 'nowhere'");
    CHECK(in_kernel("bra inner; { inner: ret; }") == "line 3, column 5: there is no label 'inner'");
    CHECK(in_kernel("bra 5;") == "line 3, column 5: bra: expected a label, not '5'");
    CHECK(in_kernel("l: ret; l: ret;") == "line 3, column 9: 'l' is declared twice");
    CHECK(in_kernel("l: mov.b32 %r1, l;") == "line 3, column 17: mov.b32: 'l' is a label");
    CHECK(in_kernel("t: .branchtargets a; a: ret; brx.idx %r0, u;") ==
          "line 3, column 43: there is no label 'u'");
    CHECK(in_kernel("call nothing;") == "line 3, column 6: call: 'nothing' is not declared");
    CHECK(in_kernel("call (%r0) g;") == "line 3, column 12: call: expected ',' before the function, not 'g'");
    CHECK(in_kernel("call 5;") == "line 3, column 7: call: what is called is a function or a register");
    CHECK(in_kernel(".reg .b32 a, b, a;") == "line 3, column 17: 'a' is declared twice");
    CHECK(in_kernel("{ { ret; }") == "line 2, column 28: this '{' is not closed");
}

TEST_CASE("the module and its declarations", "[ptx]") {
    CHECK(problem_of("") ==
          "line 1, column 1: expected .version, with which a module begins, not the end of the text");
    CHECK(problem_of("\n  hello") ==
          "line 2, column 3: expected .version, with which a module begins, not 'hello'");
    CHECK(problem_of(".version 9") == "line 1, column 10: expected a version such as 9.0, not '9'");
    CHECK(problem_of(".version 9.0e1") == "line 1, column 10: expected a version such as 9.0");
    CHECK(problem_of(".version 9.0 .address_size 64") ==
          "line 1, column 14: expected .target after .version, not '.address_size'");
    CHECK(problem_of(".version 9.0 .target") ==
          "line 1, column 21: expected a target such as sm_90, not the end of the text");
    CHECK(problem_of(".version 9.0 .target sm_90 .address_size 48") ==
          "line 1, column 42: an address size is 32 or 64");
    CHECK(in_module("ret;") == "line 2, column 1: expected a declaration, not 'ret'");
    CHECK(in_module(".wonder x;") == "line 2, column 1: unknown directive '.wonder'");
    CHECK(in_module(".entry k() { .wonder x; }") == "line 2, column 14: unknown directive '.wonder'");
    CHECK(in_module(".visible x;") == "line 2, column 10: expected a function or a variable, not 'x'");
    CHECK(in_module(".global x;") == "line 2, column 9: expected the type of what is declared, not 'x'");
    CHECK(in_module(".global .b32 .f32 x;") == "line 2, column 14: '.f32' is a second type");
    CHECK(in_module(".global .b32 .nice x;") == "line 2, column 14: '.nice' is no part of a declaration");
    CHECK(in_module(".global .align 3 .b32 x;") == "line 2, column 16: an alignment is a power of two");
    CHECK(in_module(".global .b32 x[-1];") ==
          "line 2, column 16: a dimension is an integer from 0 to 1099511627776");
    CHECK(in_module(".global .b32 x[4") ==
          "line 2, column 17: expected ']' after the dimension, not the end of the text");
    CHECK(in_module(".global .b32 x = ;") == "line 2, column 18: expected a value, not ';'");
    CHECK(in_module(".global .b32 x = {1, 2;") ==
          "line 2, column 23: expected '}' at the end of the list, not ';'");
    CHECK(in_module(".global .b32 x = 1 / 0;") == "line 2, column 20: division by zero");
    CHECK(in_module(".global .b32 x = 1.5 & 2;") == "line 2, column 22: this operator takes integers");
    CHECK(in_module(".global .b32 x") ==
          "line 2, column 15: expected ';' after the declaration, not the end of the text");
    CHECK(in_module(".entry (") == "line 2, column 9: expected a state space, not the end of the text");
    CHECK(in_module(".entry k(.param .b32 a, .param .b32 a) {}") ==
          "line 2, column 37: 'a' is declared twice");
    CHECK(in_module(".entry k() ret;") ==
          "line 2, column 12: expected ';' or a body after the function's head, not 'ret'");
    CHECK(in_module(".entry k() .maxntid x {}") ==
          "line 2, column 21: expected the value of .maxntid, not 'x'");
    CHECK(in_module(".section .x { 1") == "line 2, column 13: this '{' is not closed");
}

TEST_CASE("what is no token", "[ptx]") {
    CHECK(in_module("/* never") == "line 2, column 1: this comment has no end");
    CHECK(in_module(".pragma \"open\n\";") == "line 2, column 9: this string has no end");
    CHECK(in_module("\x01") == "line 2, column 1: a byte of value 0x01 means nothing here");
    CHECK(in_module("`") == "line 2, column 1: '`' means nothing here");
    CHECK(in_kernel("mov.b32 %r1, 0f3F80;") ==
          "line 3, column 14: a number that begins with 0f has 8 hexadecimal digits");
    CHECK(in_kernel("mov.b32 %r1, 12ab;") == "line 3, column 14: this number does not end properly");
    CHECK(in_kernel("mov.b32 %r1, 0x;") == "line 3, column 14: this number does not end properly");
    CHECK(in_kernel("mov.b32 %r1, 089;") == "line 3, column 14: mov.b32: '089' is no number");
    CHECK(in_kernel("mov.b64 %d1, 18446744073709551616;") ==
          "line 3, column 14: mov.b64: '18446744073709551616' does not fit in 64 bits");
}

TEST_CASE("there is an end to depth and number", "[ptx]") {
    auto many = [](const std::string& what, int count) {
        std::string text;
        for (int i = 0; i < count; ++i) text += what;
        return text;
    };
    CHECK(in_kernel(many("{", 5000)).ends_with("scopes are nested too deeply"));
    CHECK(
        in_module(".global .b32 x = " + many("{", 5000)).ends_with("this initialiser is nested too deeply"));
    CHECK(in_module(".global .b32 x = " + many("(", 5000)).ends_with("this expression is nested too deeply"));
    CHECK(in_module(".global .b32 x = " + many("-", 5000)).ends_with("this expression is nested too deeply"));
    CHECK(in_module(".global .b32 x = " + many("1 ? 2 : ", 5000))
              .ends_with("this expression is nested too deeply"));
    CHECK(in_kernel("add" + many(".s32", 40) + " %r1, %r2, %r3;").ends_with("too many modifiers"));
    CHECK(in_kernel("mov.b32 %r1" + many(", %r1", 100) + ";").ends_with("too many operands"));
    CHECK(in_kernel("mov.b32 {%r1" + many(", %r1", 5000) + "}, %r1;").ends_with("too many elements"));
}

}  // namespace
}  // namespace smt::ptx
