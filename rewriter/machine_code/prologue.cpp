#include "rewriter/machine_code/prologue.h"

#include <fmt/format.h>

#include <algorithm>

#include "rewriter/machine_code/prologue_text.h"
#include "runtime/image/bytes.h"
#include "runtime/image/elf_file.h"

namespace smt::machine_code {

namespace {

using image::ElfFile;
using Operation = Instruction::Operation;
using ConstantForm = Instruction::ConstantForm;

constexpr std::string_view kDoorCode = ".text.door", kHeadCode = ".text.head", kInfo = ".nv.info.door",
                           kAllInfo = ".nv.info";

struct DoorSymbolCount {
    uint32_t symbol, count;
};
struct DoorBank {
    uint32_t symbol;
    uint16_t at, bytes;
};

std::variant<std::vector<Attribute>, Problem> attributes_of(const ElfFile& file, std::string_view name) {
    const Elf64_Shdr* section = file.find(name);
    if (!section) return Problem{fmt::format("the assembled prologue has no {}", name)};
    return read_attributes(file.content(*section));
}

// The code without the padding behind it and the branch to itself that closes it.
std::vector<Instruction> instructions_of(std::string_view code) {
    std::vector<Instruction> all;
    for (size_t i = 0; i < code.size() / kInstructionBytes; ++i) all.push_back(Instruction::at(code, i));
    while (!all.empty() && all.back().is(Operation::kNop)) all.pop_back();
    return all;
}

// What we know of branches has to be true of those that were assembled: the one that closes the code leads to
// itself, and all lead to an instruction of it or to the trap. Of these, ours is made.
std::optional<Problem> learn_branch(const std::vector<Instruction>& all, size_t trap, Prologue& prologue) {
    const Instruction& closing = all.back();
    const auto closes = [&](BranchForm form) {
        return closing.always() && closing.jump(form) == 0 && closing == closing.with_jump(0, form);
    };
    if (closes(BranchForm::kWhole) == closes(BranchForm::kSplit))
        return Problem{"the assembled prologue does not end with a branch to itself"};
    const BranchForm form = closes(BranchForm::kWhole) ? BranchForm::kWhole : BranchForm::kSplit;
    bool any = false;
    for (size_t i = 1; i < trap; ++i) {
        if (!all[i].is(Operation::kBranch)) continue;
        const int64_t jump = all[i].jump(form), bytes = static_cast<int64_t>(kInstructionBytes);
        const int64_t target = static_cast<int64_t>(i) + jump / bytes;
        if (jump % bytes != 0 || target < 1 || target > static_cast<int64_t>(trap) ||
            all[i].with_jump(jump, form) != all[i])
            return Problem{"a branch of the assembled prologue is of an unknown form"};
        prologue.branch = closing.scheduled_as(all[i]);
        any = true;
    }
    if (!any) return Problem{"the assembled prologue has no branch"};
    prologue.form = form;
    return std::nullopt;
}

std::optional<Problem> cut_code(std::string_view code, Prologue& prologue) {
    const std::vector<Instruction> all = instructions_of(code);
    const auto is_trap = [](const Instruction& each) { return each.is(Operation::kBreakpoint); };
    if (all.size() < 3 || !all.back().is(Operation::kBranch) ||
        std::count_if(all.begin(), all.end(), is_trap) != 1)
        return Problem{"the assembled prologue is of an unknown form"};
    const size_t trap = static_cast<size_t>(std::find_if(all.begin(), all.end(), is_trap) - all.begin());
    if (trap + 2 != all.size()) return Problem{"the assembled prologue does not end with the kernel"};
    // The first instruction sets the stack's register, and nothing of the prologue waits for the result. It
    // would arrive after the kernel has changed the register. The prologue has no stack, and a kernel that
    // has one sets the register by itself.
    if (!all[0].sets_stack_register())
        return Problem{"the assembled prologue does not begin with the stack's register"};
    // The kernel overwrites registers of which the assembler cannot know. The branch to it waits for what
    // announces that it is over, so the rest has to announce it.
    for (size_t i = 1; i < trap; ++i) {
        if (all[i].is(Operation::kLoadConstant) && !all[i].releases_result())
            return Problem{"the assembled prologue loads a register that nothing waits for"};
        if (all[i].is(Operation::kStoreGlobal) && !all[i].releases_sources())
            return Problem{"the assembled prologue stores a register that nothing waits for"};
        prologue.code.push_back(all[i]);
    }
    return learn_branch(all, trap, prologue);
}

// Assembled, the head is: the stack's register; loads of the parameter's word; its comparison with 0; an exit
// where it is not 0; a trap; a branch to itself; padding. In the place of the exit there is a branch to the
// prologue. The padding stands before it, while the comparison's result is under way, so it costs no time.
std::optional<Problem> cut_head(std::string_view code, Prologue& prologue) {
    const std::vector<Instruction> all = instructions_of(code);
    const Problem unknown{"the assembled head is of an unknown form"};
    constexpr size_t kLeast = 5, kMost = kHeadInstructions + 2;
    if (all.size() < kLeast || all.size() > kMost || all.size() * kInstructionBytes == code.size() ||
        !all[0].sets_stack_register() || !all.back().is(Operation::kBranch) ||
        !all[all.size() - 2].is(Operation::kBreakpoint))
        return unknown;
    const size_t leaves = all.size() - 3;
    const Instruction &exit = all[leaves], &compares = all[leaves - 1];
    if (!exit.is(Operation::kExit) || exit.always() || !exit.is_guarded_by(compares) ||
        !compares.is(Operation::kCompare) || !compares.always())
        return unknown;
    for (size_t i = 1; i + 1 < leaves; ++i) {
        const bool waited = all[i].is(Operation::kLoadConstant) || all[i].is(Operation::kLoadConstantUniform);
        if (!waited && !all[i].is(Operation::kReadConstantUniform)) return unknown;
        if (waited && !compares.waits_for(all[i])) return unknown;
        prologue.head.push_back(all[i]);
    }
    const size_t padding = kHeadInstructions - 2 - prologue.head.size();
    const auto stall = static_cast<size_t>(compares.stall());
    prologue.head.push_back(
        compares.with_stall(static_cast<unsigned>(std::max<size_t>(1, stall - std::min(stall, padding)))));
    const Instruction nothing = Instruction::at(code, code.size() / kInstructionBytes - 1).with_stall(1);
    prologue.head.insert(prologue.head.end(), padding, nothing);
    prologue.head.push_back(prologue.branch.guarded_as(exit).scheduled_as(exit));
    return std::nullopt;
}

bool is_relocated(const ElfFile& file, const Elf64_Shdr& code) {
    const auto number = static_cast<uint32_t>(&code - file.sections().data());
    return std::any_of(file.sections().begin(), file.sections().end(), [&](const Elf64_Shdr& each) {
        return (each.sh_type == SHT_REL || each.sh_type == SHT_RELA) && each.sh_size != 0 &&
               each.sh_info == number;
    });
}

std::optional<Problem> take_attributes(const std::vector<Attribute>& attributes, Prologue& prologue) {
    const uint64_t end = prologue.code.size() * kInstructionBytes;
    const auto moved = [](std::vector<uint32_t> offsets) {
        for (uint32_t& each : offsets) each -= kInstructionBytes;  // the first instruction is left out
        return offsets;
    };
    for (const Attribute& each : attributes) {
        DoorBank bank;
        if (!is_known(each.kind))
            return Problem{fmt::format("the assembled prologue has attribute {:#x}", each.kind)};
        if (each.kind == kExitOffsets) prologue.exits = moved(each.words());
        if (each.kind == kWarpWideOffsets) prologue.warp_wide = moved(each.words());
        if (each.kind == kBarriers) prologue.barriers = each.value & 0xff;
        if (each.kind == kCtaIdZUsed) prologue.uses_cta_z = true;
        if (each.kind == kParameterBank && image::read_at(each.bytes, 0, &bank))
            prologue.parameter_bank_at = bank.at;
        if (each.kind == kCooperativeOffsets || each.kind == kMbarrierOffsets ||
            each.kind == kSyscallOffsets || each.kind == kIndirectBranches)
            return Problem{fmt::format("the assembled prologue has attribute {:#x}", each.kind)};
    }
    for (const auto* offsets : {&prologue.exits, &prologue.warp_wide})
        for (uint32_t offset : *offsets)
            if (offset >= end) return Problem{"an attribute of the assembled prologue leads out of it"};
    if (prologue.exits.empty() || prologue.barriers == 0 || prologue.parameter_bank_at == 0)
        return Problem{"the assembled prologue lacks an attribute"};
    return std::nullopt;
}

// Whether all differ from those at the second place in nothing but their operands in the constant bank.
bool move_constants(std::vector<Instruction>& all, const std::vector<Instruction>& at_second,
                    uint32_t offset) {
    if (all.size() != at_second.size()) return false;
    for (size_t i = 0; i < all.size(); ++i) {
        Instruction& each = all[i];
        if (each == at_second[i]) continue;
        const auto fits = [&](ConstantForm form) {
            return each.with_constant_moved(kSecondPlace, form) == at_second[i];
        };
        if (!fits(ConstantForm::kAt38) && !fits(ConstantForm::kAt37)) return false;
        each = each.with_constant_moved(
            offset, fits(ConstantForm::kAt38) ? ConstantForm::kAt38 : ConstantForm::kAt37);
    }
    return true;
}

}  // namespace

std::variant<Prologue, Problem> cut_prologue(std::string_view cubin) {
    auto read = ElfFile::read(cubin);
    if (auto* problem = std::get_if<Problem>(&read)) return *problem;
    const auto& file = std::get<ElfFile>(read);
    const Elf64_Shdr *code = file.find(kDoorCode), *head = file.find(kHeadCode);
    if (!code || !head) return Problem{"the assembled prologue has no code"};
    if (is_relocated(file, *code) || is_relocated(file, *head))
        return Problem{"the assembled prologue has relocations"};
    Prologue prologue;
    if (auto problem = cut_code(file.content(*code), prologue)) return *problem;
    if (auto problem = cut_head(file.content(*head), prologue)) return *problem;
    auto own = attributes_of(file, kInfo), all = attributes_of(file, kAllInfo);
    for (const auto* each : {&own, &all})
        if (auto* problem = std::get_if<Problem>(each)) return *problem;
    if (auto problem = take_attributes(std::get<0>(own), prologue)) return *problem;
    for (const Attribute& each : std::get<0>(all)) {
        DoorSymbolCount registers;
        if (each.kind == kRegisterCount && image::read_at(each.bytes, 0, &registers))
            prologue.registers = std::max(prologue.registers, registers.count);
    }
    if (prologue.registers == 0) return Problem{"the assembled prologue's registers are unknown"};
    return prologue;
}

std::optional<Prologue> moved_prologue(const Prologue& at_zero, const Prologue& at_second, uint32_t offset) {
    if (at_zero.exits != at_second.exits || at_zero.warp_wide != at_second.warp_wide ||
        at_zero.registers != at_second.registers)
        return std::nullopt;
    Prologue moved = at_zero;
    if (!move_constants(moved.head, at_second.head, offset) ||
        !move_constants(moved.code, at_second.code, offset))
        return std::nullopt;
    return moved;
}

const std::variant<Prologue, Problem>& Prologues::assembled(int architecture, uint32_t parameter) {
    auto [found, fresh] = known_.try_emplace({architecture, parameter}, Problem{});
    if (fresh) {
        auto cubin = assembler_(prologue_text(architecture, parameter), fmt::format("sm_{}", architecture));
        if (auto* problem = std::get_if<Problem>(&cubin))
            found->second = Problem{"the prologue cannot be assembled: " + problem->text};
        else
            found->second = cut_prologue(std::get<std::string>(cubin));
    }
    return found->second;
}

const std::variant<Prologue, Problem>& Prologues::get(int architecture, uint32_t parameter) {
    std::lock_guard lock(mutex_);
    if (auto found = known_.find({architecture, parameter}); found != known_.end()) return found->second;
    const auto *first = std::get_if<Prologue>(&assembled(architecture, 0)),
               *second = std::get_if<Prologue>(&assembled(architecture, kSecondPlace));
    if (first && second)
        if (auto moved = moved_prologue(*first, *second, parameter))
            return known_.try_emplace({architecture, parameter}, std::move(*moved)).first->second;
    return assembled(architecture, parameter);
}

}  // namespace smt::machine_code
