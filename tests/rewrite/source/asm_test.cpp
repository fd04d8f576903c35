// What inline PTX is taken for.
#include <catch2/catch.hpp>

#include "rewriter/source/asm_text.h"

using smt::rewriter::source::AsmFacts;
using smt::rewriter::source::examine_asm;

namespace {

bool refused(const char* text) { return !examine_asm(text).refusal.empty(); }

bool harmless(const char* text) {
    const AsmFacts facts = examine_asm(text);
    return facts.refusal.empty() && !facts.wide && !facts.copies && !facts.index && !facts.sm && !facts.sms;
}

}  // namespace

TEST_CASE("the block's index, moved", "[asm]") {
    const AsmFacts facts = examine_asm("mov.u32 %0, %%ctaid.y;");
    REQUIRE(facts.move);
    CHECK_FALSE(facts.move->grid);
    CHECK(facts.move->component == 'y');
    CHECK(examine_asm("{\n\tmov.b32 \t%0 , %%nctaid.z ;\n}").move->grid);
}

TEST_CASE("the block's index, used otherwise", "[asm]") {
    for (const char* text :
         {"add.u32 %0, %%ctaid.x, 1;", "mov.u32 %1, %%ctaid.x;", "mov.u32 %0, %%ctaid.w;",
          "mov.u32 a, %ctaid.x;", "mov.u32 %0, %%ctaid.x; add.u32 %0, %0, 1;", "mov.u16 %0, %%ctaid.x;"}) {
        INFO(text);
        CHECK(refused(text));
        CHECK_FALSE(examine_asm(text).move);
    }
}

TEST_CASE("what a worker cannot do", "[asm]") {
    for (const char* text :
         {"exit;", "@p exit;", "{ .reg .pred p; @!p ret; }", "bar.sync 0, 64;", "barrier.cta.sync 0, 32;",
          "bar.arrive 0, 64;", "bar.sync %0, %1;", "bar.red.popc.u32 %0, 0, 64, p;", "mov.u64 %0, %%gridid;",
          "barrier.cluster.arrive;", "mapa.shared::cluster.u32 %0, %1, 0;",
          "setmaxnreg.dec.sync.aligned.u32 40;"}) {
        INFO(text);
        CHECK(refused(text));
    }
}

TEST_CASE("what it can", "[asm]") {
    for (const char* text : {"bar.sync 1, 64;", "bar.sync 0;", "barrier.sync 2, %0;",
                             "bar.red.popc.u32 %0, 0, p;", "bar.warp.sync %0;", "mov.u32 %0, %%smid;",
                             "cp.async.bulk.shared::cluster.global [%0], [%1], 16, [%2];"}) {
        INFO(text);
        CHECK_FALSE(refused(text));
    }
    for (const char* text :
         {"", "add.u32 %0, %1, 1;", "// exit;\n add.u32 %0, %1, 1;", "/* bar.sync 0, 3; */ trap;",
          "LOOP: @p bra LOOP;", "ld.global.nc.f32 %0, [%1];", "mbarrier.arrive.shared.b64 _, [%0];"}) {
        INFO(text);
        CHECK(harmless(text));
    }
}

TEST_CASE("others take part", "[asm]") {
    for (const char* text : {"bar.sync 1;", "shfl.sync.down.b32 %0, %1, 1, 31, -1;",
                             "wmma.load.a.sync.aligned.m16n16k16.row.f16 {}, [%0];", "elect.sync _|p, %0;",
                             "@p vote.all.pred q, r;"}) {
        INFO(text);
        CHECK(examine_asm(text).wide);
    }
    CHECK(examine_asm("cp.async.ca.shared.global [%0], [%1], 4;").copies);
    CHECK_FALSE(examine_asm("cp.async.wait_all;").copies);
}
