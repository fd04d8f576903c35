// Names that programs choose, as terminals and logs show them.
#include "runtime/journal/printable.h"

#include <catch2/catch.hpp>
#include <string>

using smt::runtime::journal::printable;

TEST_CASE("names that are text stay as they are", "[printable]") {
    for (const char* name :
         {"", "train.py", "void saxpy<float>(int, float*)", "Zürich", "東京", "🙂 emoji", "a{}%s\\"})
        CHECK(printable(name) == name);
}

TEST_CASE("what commands a terminal is shown as '?'", "[printable]") {
    CHECK(printable("\033[31mred\033[0m") == "?[31mred?[0m");
    CHECK(printable("bell\a back\b del\x7f") == "bell? back? del?");
    CHECK(printable("two\nlines\r\tand") == "two lines  and");
    CHECK(printable("\xc2\x9b"
                    "2J") == "?2J");                        // CSI of the C1 set
    CHECK(printable("\xe2\x80\xaetxt.exe") == "?txt.exe");  // right-to-left override
    CHECK(printable(std::string_view("a\0b", 3)) == "a?b");
}

TEST_CASE("what is no UTF-8 is shown as '?'", "[printable]") {
    CHECK(printable("\x9b") == "?");
    CHECK(printable("\xc0\x80") == "??");            // overlong
    CHECK(printable("\xed\xa0\x80") == "???");       // half of a surrogate pair
    CHECK(printable("\xf4\x90\x80\x80") == "????");  // beyond Unicode
    CHECK(printable("\xe2\x82") == "??");            // cut off
    CHECK(printable("ok\xff") == "ok?");
}
