// smCompactor, 3.3 to 3.5, tables 2 and 3.
//
// The paper's 30 SMs of 65536 registers. Table 1, with the kernels' resources, is a picture; these are chosen
// so that as many fit as table 3 shows, in registers alone. Table 3's rows cannot both be had with the same:
// where 12 BS fit beside 4 LM, as in the second row, 14 BS fit beside 2 LM, where the first has 12. So LM
// and FT differ between the rows. Of table 2 the text says how many SMs are in use: 83 % and 66 %.
#include "tests/policy/snapshots.h"

using namespace smt::tests;

namespace {

const Resources kTitan{2048, 65536, 64 << 10, 64, 32};

Kernel sized(uint64_t id, uint32_t registers, std::optional<models::Footprint> footprint,
             Duration remaining = 1ms) {
    Kernel made = kernel(id, 100000, {32, registers, 0, 1, 1});
    made.remaining = remaining;
    if (footprint) {
        Profile profile;
        profile.footprint = footprint;
        made.profile = std::make_shared<Profile>(profile);
    }
    return made;
}

enum : uint64_t { kFt = 1, kLm, kBs };
constexpr uint32_t kBsRegisters = 128 * 32;

// "1x15 0x15": one on each of 15 SMs, none on the other 15.
std::string runs_of(const Quota& table) {
    std::string text;
    for (size_t at = 0, end; at < table.size(); at = end) {
        for (end = at; end < table.size() && table[end] == table[at];) ++end;
        text += (text.empty() ? "" : " ") + std::to_string(table[at]) + "x" + std::to_string(end - at);
    }
    return text;
}

// The last table of each, as the decisions go on; a kernel that must wait has none.
class Tables {
public:
    Said take(const Decision& decision) {
        for (const Assignment& each : decision.assignments) {
            if (each.action == Action::kWait)
                tables_.erase(each.kernel);
            else
                tables_[each.kernel] = runs_of(each.quota);
        }
        return tables_;
    }

private:
    Said tables_;
};

}  // namespace

TEST_CASE("compact: tables 2 and 3, FT and LM, then BS", "[policy]") {
    const Kernel ft = sized(kFt, 512 * 112, {{15, 1, 1}}), lm = sized(kLm, 128 * 64, {{18, 2, 1}}, 9ms),
                 bs = sized(kBs, kBsRegisters, {{15, 16, 1}});
    const auto policy = make_compact();
    Tables tables;
    CHECK(tables.take(policy->decide({device(30, kTitan), {ft}}, kBegin)) == Said{{kFt, "1x15 0x15"}});
    CHECK(tables.take(policy->decide({device(30, kTitan), {ft, lm}}, kBegin)) ==
          Said{{kFt, "1x15 0x15"}, {kLm, "1x15 2x10 0x5"}});  // 25 of 30: 83 %
    CHECK(tables.take(policy->decide({device(30, kTitan), {ft, lm, bs}}, kBegin)) ==
          Said{{kFt, "1x15 0x15"}, {kLm, "1x15 2x10 0x5"}, {kBs, "0x15 12x10 16x5"}});
}

TEST_CASE("compact: tables 2 and 3, LM and BS, then FT", "[policy]") {
    const Kernel ft = sized(kFt, 512 * 120, {{15, 1, 1}}), lm = sized(kLm, 128 * 32, {{20, 4, 1}}, 9ms),
                 bs = sized(kBs, kBsRegisters, {{15, 16, 1}});
    const auto policy = make_compact();
    Tables tables;
    CHECK(tables.take(policy->decide({device(30, kTitan), {lm}}, kBegin)) == Said{{kLm, "4x20 0x10"}});
    CHECK(tables.take(policy->decide({device(30, kTitan), {lm, bs}}, kBegin)) ==
          Said{{kLm, "4x20 0x10"}, {kBs, "12x20 0x10"}});  // 20 of 30: 66 %
    // LM, which has the longest way to go, gets the room beside FT: it is "slightly tuned up".
    CHECK(tables.take(policy->decide({device(30, kTitan), {lm, bs, ft}}, kBegin)) ==
          Said{{kLm, "4x20 1x10"}, {kBs, "12x20 0x10"}, {kFt, "0x20 1x10"}});
    // FT ends: what LM got for nothing is taken back, and ten SMs are free for the next.
    CHECK(policy->decide({device(30, kTitan), {lm, bs}}, kBegin).assignments.empty());  // it may launch again
    CHECK(tables.take(policy->decide({device(30, kTitan), {lm, bs}}, kBegin + 200us))[kLm] == "4x20 0x10");
}

TEST_CASE("compact: a tenant that launches again soon finds its place", "[policy]") {
    const Kernel one = sized(1, 16384, {{5, 4, 1}}), two = sized(2, 16384, {});
    const auto policy = make_compact();
    Tables tables;
    const Said halves{{1, "4x5 0x5"}, {2, "0x5 4x5"}};
    CHECK(tables.take(policy->decide({device(10, kTitan), {one, two}}, kBegin)) == halves);
    const Decision gone = policy->decide({device(10, kTitan), {two}}, kBegin + 1ms);
    CHECK(gone.assignments.empty());
    CHECK(*gone.again == 200us);
    CHECK(*policy->decide({device(10, kTitan), {two}}, kBegin + 1150us).again == 50us);
    Kernel next = one;
    next.launch = 1;
    CHECK(tables.take(policy->decide({device(10, kTitan), {next, two}}, kBegin + 1199us)) == halves);
    policy->decide({device(10, kTitan), {two}}, kBegin + 2ms);
    CHECK(policy->decide({device(10, kTitan), {two}}, kBegin + 2300us)
              .assignments.empty());  // it took 199 us before
    CHECK(tables.take(policy->decide({device(10, kTitan), {two}}, kBegin + 2400us))[2] == "4x10");
}

TEST_CASE("compact: freed SMs go to the kernel that is short of them, then to the next", "[policy]") {
    const Kernel first = sized(1, 32768, {{6, 2, 1}}), second = sized(2, 32768, {{6, 2, 1}}),
                 third = sized(3, 32768, {{3, 2, 1}});
    const auto policy = make_compact();
    Tables tables;
    CHECK(tables.take(policy->decide({device(10, kTitan), {first, second, third}}, kBegin)) ==
          Said{{1, "2x6 0x4"}, {2, "0x6 2x4"}});
    CHECK(tables.take(policy->decide({device(10, kTitan), {first, second, waiting(third)}}, kBegin)).size() ==
          2);
    Kernel ending = first;
    ending.last_taken = true;  // its tail runs on its own
    CHECK(tables.take(policy->decide({device(10, kTitan), {ending, second, waiting(third)}}, kBegin)) ==
          Said{{1, "2x6 0x4"}, {2, "2x2 0x4 2x4"}, {3, "0x2 2x3 0x5"}});
}

TEST_CASE("compact: a stream's next launch of the same kernel stays where it is", "[policy]") {
    Kernel first = sized(1, 32768, {{6, 2, 1}}), second = sized(2, 32768, {{4, 2, 1}});
    const auto policy = make_compact();
    Tables tables;
    CHECK(tables.take(policy->decide({device(8, kTitan), {first, second}}, kBegin)) ==
          Said{{1, "2x6 0x2"}, {2, "0x6 2x2"}});
    first.launch = 1;
    CHECK(policy->decide({device(8, kTitan), {first, second}}, kBegin).assignments.empty());
    first.cta.shared_bytes = 1024;  // another kernel comes after those that are there
    CHECK(tables.take(policy->decide({device(8, kTitan), {first, second}}, kBegin)) ==
          Said{{1, "0x2 2x4 0x2"}, {2, "2x2 0x4 2x2"}});
}

TEST_CASE("compact: without footprints, all SMs; beside those with one, what they leave", "[policy]") {
    struct Row {
        std::vector<Kernel> kernels;
        Said expected;
    };
    const Kernel a = sized(1, 16384, {}), b = sized(2, 16384, {}), c = sized(3, 16384, {});
    const Kernel known = sized(4, 32768, {{6, 2, 1}}), small = sized(5, 32768, {{10, 1, 1}}),
                 nine = sized(6, 32768, {{9, 2, 1}}), all = sized(7, 32768, {{10, 2, 1}});
    const Row rows[] = {
        {{a}, {{1, "4x10"}}},
        {{a, b, c}, {{1, "4x10"}, {2, "4x10"}, {3, "4x10"}}},
        {{a, b, known}, {{1, "0x6 4x4"}, {2, "0x6 4x4"}, {4, "2x6 0x4"}}},
        {{a, small}, {{1, "2x10"}, {5, "1x10"}}},  // no whole SM is free
        {{a, b, small}, {{1, "2x10"}, {2, "2x10"}, {5, "1x10"}}},
        {{a, nine}, {{1, "0x5 4x5"}, {6, "2x5 0x5"}}},  // one SM is no part of ten for one of two
        {{a, all}, {{1, "0x5 4x5"}, {7, "2x5 0x5"}}},
        {{a, b, nine}, {{1, "0x6 4x4"}, {2, "0x6 4x4"}, {6, "2x6 0x4"}}},
    };
    for (const Row& row : rows) {
        Tables tables;
        CHECK(tables.take(make_compact()->decide({device(10, kTitan), row.kernels}, kBegin)) == row.expected);
    }
    // Where there is one SM, what is kept for others is never all of it.
    Tables on_one;
    CHECK(on_one.take(make_compact()->decide({device(1, kTitan), {a, sized(8, 32768, {{1, 1, 1}})}},
                                             kBegin)) == Said{{1, "2x1"}, {8, "1x1"}});
    // A tenant without a footprint moves over when a tenant with one comes.
    const auto policy = make_compact();
    Tables tables;
    tables.take(policy->decide({device(10, kTitan), {a, b}}, kBegin));
    CHECK(tables.take(policy->decide({device(10, kTitan), {a, b, known}}, kBegin)) == rows[2].expected);
    policy->decide({device(10, kTitan), {a, b}}, kBegin);
    CHECK(tables.take(policy->decide({device(10, kTitan), {a, b}}, kBegin + 1ms))[2] == "4x10");
}

TEST_CASE(
    "compact: what is kept for a kernel without a footprint is kept while it is away for a gap, and no other "
    "one moves for it again",
    "[policy]") {
    const Kernel unknown = sized(1, 16384, {}), all = sized(2, 32768, {{10, 2, 1}}),
                 one = sized(3, 32768, {{1, 1, 1}});
    Kernel other = sized(2, 32768, {{9, 2, 1}});  // the next one in its stream
    const auto policy = make_compact({.idle_grace = 200us});
    Tables tables;
    CHECK(tables.take(policy->decide({device(10, kTitan), {unknown, all}}, kBegin)) ==
          Said{{1, "0x5 4x5"}, {2, "2x5 0x5"}});
    tables.take(policy->decide({device(10, kTitan), {other}}, kBegin + 100us));
    CHECK(tables.take(policy->decide({device(10, kTitan), {unknown, other}}, kBegin + 150us))[2] ==
          "2x5 0x5");
    tables.take(policy->decide({device(10, kTitan), {unknown, other, one}}, kBegin + 160us));
    CHECK(tables.take(policy->decide({device(10, kTitan), {unknown, other, one}}, kBegin + 170us))[1] ==
          "0x6 4x4");
}

TEST_CASE("compact: a kernel that has waited too long is placed first", "[policy]") {
    const Kernel first = sized(1, 65536, {{8, 1, 1}}), second = sized(2, 65536, {{5, 1, 1}}),
                 third = sized(3, 65536, {{5, 1, 1}});
    const auto policy = make_compact({.aging = {.starvation_timeout = 10ms, .boost = 2ms}});
    const Device ten = device(10, kTitan);
    Tables tables;
    CHECK(tables.take(policy->decide({ten, {first, second, third}}, kBegin)) ==
          Said{{1, "1x8 0x2"}, {2, "0x8 1x2"}});
    const Decision early = policy->decide({ten, {first, second, waiting(third)}}, kBegin + 4ms);
    CHECK(early.assignments.empty());
    CHECK(*early.again == 6ms);
    const Decision turn = policy->decide({ten, {first, second, waiting(third)}}, kBegin + 10ms);
    CHECK(tables.take(turn) == Said{{3, "1x5 0x5"}, {1, "0x5 1x5"}});
    CHECK(*turn.again == 2ms);
}

TEST_CASE("compact: unmanaged work between two launches takes no quota away", "[policy]") {
    Kernel a = sized(1, 65536 / 4, {{2, 1, 1}}), b = sized(2, 65536 / 4, {{2, 1, 1}}),
           unmanaged = waiting(kernel(1, 0));
    unmanaged.managed = false;
    const auto policy = make_compact();
    CHECK(said(policy->decide({device(4, kTitan), {a, b}}, kBegin))[1] == "run 1 1 0 0");
    CHECK(said(policy->decide({device(4, kTitan), {unmanaged, b}}, kBegin + 50us))[1] == "run");
    a.launch = 2;
    CHECK(said(policy->decide({device(4, kTitan), {a, b}}, kBegin + 100us))[1] == "run 1 1 0 0");
}

TEST_CASE("compact: short kernels run without quotas while all are short", "[policy]") {
    const auto policy = make_compact({.short_kernel = 250us});
    const auto at = [&](Duration both) {
        Kernel first = kernel(1, 1000, nth_of(kSm, 4)), second = kernel(2, 1000, nth_of(kSm, 4));
        first.predicted = second.predicted = both;
        return said(policy->decide({device(4), {first, second}}, kBegin));
    };
    CHECK(at(250us).empty());
    CHECK(at(251us).size() == 2);
    const Said lifted = at(250us);
    CHECK(lifted == Said{{1, "run"}, {2, "run"}});
}
