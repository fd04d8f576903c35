#include "rewriter/machine_code/instruction.h"

#include "tests/machine_code/cubins.h"

namespace smt::machine_code {
namespace {

// As nvdisasm prints them.
const Instruction kSetStack = made(0x00000a00ff017b82, 0x00321e0000000800);   // sm_90: LDC R1, c[0x0][0x28]
const Instruction kClosing90 = made(0xfffffffc00fc7947, 0x000fc0000383ffff);  // sm_90: BRA to itself
const Instruction kClosing80 = made(0xfffffff000007947, 0x000fc0000383ffff);  // sm_80: BRA to itself

TEST_CASE("an instruction says what it is") {
    CHECK(kSetStack.is(Instruction::Operation::kLoadConstant));
    CHECK(kSetStack.always());
    CHECK(kSetStack.sets_stack_register());
    CHECK(kClosing90.is(Instruction::Operation::kBranch));
    CHECK(kClosing90.always());
    CHECK_FALSE(made(0x0000000000040947, 0x003fde0003800000).always());  // @P0 BRA
}

TEST_CASE("where a branch leads") {
    CHECK(kClosing90.jump(BranchForm::kSplit) == 0);
    CHECK(kClosing80.jump(BranchForm::kWhole) == 0);
    CHECK(kClosing90.jump(BranchForm::kWhole) != 0);
    CHECK(made(0x0000000000040947, 0x003fde0003800000).jump(BranchForm::kSplit) == 0x20);  // as nvdisasm says
}

TEST_CASE("a branch leads where it was told, and is the same otherwise") {
    for (const BranchForm form : {BranchForm::kSplit, BranchForm::kWhole}) {
        const Instruction& branch = form == BranchForm::kSplit ? kClosing90 : kClosing80;
        for (const int64_t bytes : {0l, 16l, 4096l, -16l, -1048576l, 16l << 30}) {
            const Instruction there = branch.with_jump(bytes, form);
            CHECK(there.jump(form) == bytes);
            CHECK(there.is(Instruction::Operation::kBranch));
            CHECK(there.always());
            CHECK(there.with_jump(0, form) == branch);
        }
    }
}

TEST_CASE("an instruction that waits for all keeps its work") {
    const Instruction waits = kSetStack.that_waits_for_all();
    CHECK(waits.sets_stack_register());
    CHECK(waits == made(0x00000a00ff017b82, 0x00321e0000000800 | 0x3full << 52));
    CHECK(waits.scheduled_as(kSetStack) == kSetStack);
    CHECK(kClosing90.scheduled_as(kSetStack).jump(BranchForm::kSplit) == 0);
}

TEST_CASE("whether sources are released") {
    CHECK_FALSE(made(0, 7ull << 49).releases_sources());
    CHECK(made(0, 0).releases_sources());
}

TEST_CASE("loads that see what other CTAs write") {
    const auto load = [](uint64_t high, uint64_t operation = 0x981) {
        return made(0x0000000402037000 | operation, 0x001eaa000c000000 | high).loads_from_others();
    };
    CHECK_FALSE(load(0x1e1900));   // LDG.E
    CHECK_FALSE(load(0x1e9900));   // .CONSTANT
    CHECK_FALSE(load(0x1eb900));   // .STRONG.SM
    CHECK_FALSE(load(0x0e1900));   // .EF
    CHECK(load(0x1ef900));         // .STRONG.GPU
    CHECK(load(0x1f5900));         // .STRONG.SYS
    CHECK(load(0x1f8900));         // .MMIO.SYS
    CHECK(load(0x10f900, 0x980));  // LD.E.STRONG.GPU
    CHECK_FALSE(load(0x101900, 0x980));
    CHECK_FALSE(load(0x1ef900, 0x984));  // of shared memory
}

TEST_CASE("instructions are written as they were read") {
    std::string code;
    kSetStack.append_to(code);
    kClosing90.append_to(code);
    REQUIRE(code.size() == 2 * kInstructionBytes);
    CHECK(Instruction::at(code, 0) == kSetStack);
    CHECK(Instruction::at(code, 1) == kClosing90);
}

}  // namespace
}  // namespace smt::machine_code
