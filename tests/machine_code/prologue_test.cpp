#include "rewriter/machine_code/prologue.h"

#include <algorithm>

#include "rewriter/machine_code/prologue_text.h"
#include "tests/machine_code/cubins.h"

namespace smt::machine_code {
namespace {

TEST_CASE("a prologue ends where the kernel begins") {
    struct Row {
        const char* name;
        BranchForm form;
        uint16_t bank_at;
    };
    const Row rows[] = {{"prologue_80", BranchForm::kWhole, 0x160},
                        {"prologue_90", BranchForm::kSplit, 0x210},
                        {"prologue_100", BranchForm::kSplit, 0x380}};
    for (const Row& row : rows) {
        INFO(row.name);
        const Prologue prologue = must_be(cut_prologue(corpus_cubin(row.name)));
        CHECK(prologue.form == row.form);
        CHECK(prologue.parameter_bank_at == row.bank_at);
        CHECK(prologue.barriers == 1);
        CHECK(prologue.registers >= 8);
        CHECK(prologue.uses_cta_z == (row.form == BranchForm::kWhole));
        CHECK(prologue.branch.always());
        REQUIRE(prologue.head.size() == kHeadInstructions);
        const Instruction& enters = prologue.head.back();
        CHECK(enters.is(Instruction::Operation::kBranch));
        CHECK_FALSE(enters.always());
        // The comparison, with as many cycles until the branch as ptxas gave it: 13.
        const auto compares = std::find_if(prologue.head.begin(), prologue.head.end(), [](const auto& each) {
            return each.is(Instruction::Operation::kCompare);
        });
        REQUIRE(compares != prologue.head.end());
        CHECK(enters.is_guarded_by(*compares));
        CHECK(compares - prologue.head.begin() == (prologue.form == BranchForm::kSplit));
        unsigned cycles = 0;
        for (auto each = compares; each != prologue.head.end() - 1; ++each) {
            CHECK(each->is(Instruction::Operation::kNop) == (each != compares));
            CHECK(each->stall() > 0);
            cycles += each->stall();
        }
        CHECK(cycles == 13);
        CHECK_FALSE(prologue.exits.empty());
        for (const Instruction& each : prologue.code) {
            CHECK_FALSE(each.is(Instruction::Operation::kBreakpoint));
            CHECK_FALSE(each.is(Instruction::Operation::kNop));
            if (each.is(Instruction::Operation::kLoadConstant)) CHECK(each.releases_result());
            CHECK_FALSE(each.sets_stack_register());
        }
        for (uint32_t at : prologue.exits) {
            REQUIRE(at / kInstructionBytes < prologue.code.size());
            CHECK(static_cast<int>(prologue.code[at / kInstructionBytes].operation()) == 0x14d);  // EXIT
        }
        // No branch leads further than behind the last instruction.
        int64_t furthest = 0;
        for (size_t i = 0; i < prologue.code.size(); ++i)
            if (prologue.code[i].is(Instruction::Operation::kBranch))
                furthest = std::max(furthest, static_cast<int64_t>(i * kInstructionBytes) +
                                                  prologue.code[i].jump(prologue.form));
        CHECK(furthest > 0);
        CHECK(furthest <= static_cast<int64_t>(prologue.code.size() * kInstructionBytes));
    }
}

TEST_CASE("code that is not as the prologue's is refused") {
    CHECK(problem_of(cut_prologue(corpus_cubin("sm_90"))) == "the assembled prologue has no code");
    CHECK(problem_of(cut_prologue("")) == "no ELF file");
    const std::string whole = corpus_cubin("prologue_90");
    const image::ElfFile file = must_be(image::ElfFile::read(whole));
    const Elf64_Shdr code = file.sections()[section_of(file, ".text.door")];
    const Prologue good = must_be(cut_prologue(whole));
    const auto with_instruction = [&](size_t number, const Instruction& instruction) {
        std::string bytes = whole, text;
        instruction.append_to(text);
        bytes.replace(code.sh_offset + number * kInstructionBytes, text.size(), text);
        return problem_of(cut_prologue(bytes));
    };
    const Instruction trap = Instruction::at(file.content(code), good.code.size() + 1);
    const Instruction closing = Instruction::at(file.content(code), good.code.size() + 2);
    REQUIRE(trap.is(Instruction::Operation::kBreakpoint));
    CHECK(with_instruction(3, trap) == "the assembled prologue is of an unknown form");
    CHECK(with_instruction(good.code.size() + 2, closing.with_jump(16, good.form)) ==
          "the assembled prologue does not end with a branch to itself");
    for (const int64_t away : {int64_t{-1024}, int64_t{1 << 20}, int64_t{4}})
        CHECK(with_instruction(3, closing.with_jump(away, good.form)) ==
              "a branch of the assembled prologue is of an unknown form");
    CHECK(with_instruction(0, good.code[0]) ==
          "the assembled prologue does not begin with the stack's register");
    const Instruction sets_stack = Instruction::at(file.content(code), 0);
    REQUIRE(sets_stack.is(Instruction::Operation::kLoadConstant));
    REQUIRE_FALSE(sets_stack.releases_result());
    CHECK(with_instruction(3, sets_stack) ==
          "the assembled prologue loads a register that nothing waits for");
    CHECK(with_instruction(3, made(0x0000000402007986, 0x000fe2000c10f100)) ==
          "the assembled prologue stores a register that nothing waits for");
}

TEST_CASE("a head that is not as known is refused") {
    const std::string whole = corpus_cubin("prologue_100");
    const image::ElfFile file = must_be(image::ElfFile::read(whole));
    const Elf64_Shdr code = file.sections()[section_of(file, ".text.head")];
    const auto at = [&](size_t number) { return Instruction::at(file.content(code), number); };
    const auto with_instruction = [&](size_t number, const Instruction& instruction) {
        std::string bytes = whole, text;
        instruction.append_to(text);
        bytes.replace(code.sh_offset + number * kInstructionBytes, text.size(), text);
        return problem_of(cut_prologue(bytes));
    };
    // The stack's register, a load, its comparison, the exit, the trap, the branch to itself, padding.
    using Operation = Instruction::Operation;
    REQUIRE(at(1).is(Operation::kLoadConstantUniform));
    REQUIRE(at(2).is(Operation::kCompare));
    REQUIRE(at(3).is(Operation::kExit));
    CHECK(with_instruction(1, at(1)) == "");
    const std::string unknown = "the assembled head is of an unknown form";
    CHECK(with_instruction(0, at(1)) == unknown);
    CHECK(with_instruction(1, at(2)) == unknown);
    CHECK(with_instruction(1, made(0x00007200ff0477ac, 0x000ee40008000800)) == unknown);  // not waited for
    CHECK(with_instruction(2, at(1)) == unknown);
    CHECK(with_instruction(3, at(3).guarded_as(at(4))) == unknown);
    CHECK(with_instruction(3, made(0x000000000000194d, 0x000fea0003800000)) == unknown);  // @P1
    CHECK(with_instruction(4, at(3)) == unknown);
    CHECK(with_instruction(5, at(7)) == unknown);
}

TEST_CASE("prologues are assembled for two places of the parameter, and no more often") {
    std::vector<std::string> assembled;
    Prologues prologues([&](const std::string& ptx, const std::string& architecture) {
        CHECK(architecture == "sm_90");
        assembled.push_back(ptx);
        const bool first = ptx.find("others") == ptx.npos;
        return std::variant<std::string, Problem>(corpus_cubin(first ? "prologue_90" : "prologue_90_at_64"));
    });
    const auto& first = prologues.get(90, 32);
    CHECK(std::holds_alternative<Prologue>(first));
    REQUIRE(assembled.size() == 2);
    CHECK(assembled[0] == prologue_text(90, 0));
    CHECK(assembled[1] == prologue_text(90, kSecondPlace));
    CHECK(assembled[1].find("others[64]") != std::string::npos);
    CHECK(&prologues.get(90, 32) == &first);
    (void)prologues.get(90, 4000);
    CHECK(assembled.size() == 2);
}

TEST_CASE("a prologue is moved where two differ in the parameter's place alone") {
    const Prologue at_zero = must_be(cut_prologue(corpus_cubin("prologue_90"))),
                   at_64 = must_be(cut_prologue(corpus_cubin("prologue_90_at_64")));
    CHECK(moved_prologue(at_zero, at_64, 0)->code == at_zero.code);
    CHECK(moved_prologue(at_zero, at_64, 64)->code == at_64.code);
    const Prologue at_80 = *moved_prologue(at_zero, at_64, 80);
    int moved = 0;
    for (size_t i = 0; i < at_80.code.size(); ++i) {
        if (at_80.code[i] == at_zero.code[i]) continue;
        ++moved;
        CHECK(at_80.code[i] == at_zero.code[i].with_constant_moved(80, Instruction::ConstantForm::kAt38));
    }
    CHECK(moved > 4);
    CHECK(at_80.head[0] == at_zero.head[0].with_constant_moved(80, Instruction::ConstantForm::kAt38));
    CHECK(std::equal(at_80.head.begin() + 1, at_80.head.end(), at_zero.head.begin() + 1));
    Prologue other = at_64;
    other.code[0] = other.code[1];
    CHECK_FALSE(moved_prologue(at_zero, other, 8));
    other = at_64;
    other.head[3] = other.head[0];
    CHECK_FALSE(moved_prologue(at_zero, other, 8));
    other = at_64;
    other.code.pop_back();
    CHECK_FALSE(moved_prologue(at_zero, other, 8));
}

TEST_CASE("an assembler that fails is not asked again") {
    int asked = 0;
    Prologues prologues([&](const std::string&, const std::string&) -> std::variant<std::string, Problem> {
        ++asked;
        return Problem{"no ptxas"};
    });
    for (int i = 0; i < 3; ++i)
        CHECK(problem_of(prologues.get(90, 8)) == "the prologue cannot be assembled: no ptxas");
    CHECK(asked == 3);  // for 0, for the second place and for 8
}

TEST_CASE("clusters are asked about from sm_90 on") {
    CHECK(prologue_text(80, 0).find("%cluster") == std::string::npos);
    CHECK(prologue_text(90, 0).find("%cluster_nctarank") != std::string::npos);
    CHECK(prologue_text(100, 8).find(".target sm_100") != std::string::npos);
}

}  // namespace
}  // namespace smt::machine_code
