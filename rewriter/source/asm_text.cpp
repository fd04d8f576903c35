// What a piece of inline PTX does. Instructions are told apart by their opcode; operands are not resolved,
// so what depends on one (a barrier's number) counts as the worst that it can be.
#include "rewriter/source/asm_text.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <vector>

namespace smt::rewriter::source {
namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
    return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return has(text, part); });
}

bool starts_any(std::string_view text, std::initializer_list<std::string_view> parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](std::string_view part) { return text.starts_with(part); });
}

std::string without_comments(std::string_view text) {
    std::string plain;
    for (size_t at = 0; at < text.size();) {
        if (text.substr(at).starts_with("//")) {
            at = std::min(text.find('\n', at), text.size());
        } else if (text.substr(at).starts_with("/*")) {
            const size_t end = text.find("*/", at + 2);
            at = end == std::string_view::npos ? text.size() : end + 2;
            plain += ' ';
        } else {
            plain += text[at++];
        }
    }
    return plain;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
    return text;
}

struct Instruction {
    std::string_view opcode;
    std::vector<std::string_view> operands;
};

Instruction read_instruction(std::string_view text) {
    text = trimmed(text);
    for (;;) {  // labels and guards
        size_t word = std::min(text.find_first_of(" \t\n\r"), text.size());
        std::string_view first = text.substr(0, word);
        if (first.empty() || !(first.starts_with('@') || first.ends_with(':'))) break;
        text = trimmed(text.substr(word));
    }
    Instruction instruction;
    const size_t end = std::min(text.find_first_of(" \t\n\r"), text.size());
    instruction.opcode = text.substr(0, end);
    for (std::string_view rest = text.substr(end); !trimmed(rest).empty();) {
        const size_t comma = std::min(rest.find(','), rest.size());
        instruction.operands.push_back(trimmed(rest.substr(0, comma)));
        rest = rest.substr(std::min(comma + 1, rest.size()));
    }
    return instruction;
}

// Barriers of some of the block's threads: our own barrier is number 0, with all of them.
std::string refuse_barrier(const Instruction& instruction) {
    const std::string_view opcode = instruction.opcode;
    if (!opcode.starts_with("bar.") && !opcode.starts_with("barrier.")) return "";
    if (opcode.starts_with("bar.warp")) return "";
    const bool reduces = has(opcode, ".red");
    const size_t number = reduces ? 1 : 0, most = reduces ? 3 : 1;
    if (instruction.operands.size() <= most) return "";
    const std::string_view which = instruction.operands[number];
    if (which == "0") return "uses barrier 0 with some of the block's threads (" + std::string(opcode) + ")";
    if (!std::isdigit(static_cast<unsigned char>(which[0])))
        return "uses a barrier with some of the block's threads whose number is not in the text (" +
               std::string(opcode) + ")";
    return "";
}

std::string refuse(const Instruction& instruction, std::string_view text) {
    const std::string_view opcode = instruction.opcode;
    if (has(text, "%gridid")) return "reads %gridid";
    if (has_any(text, {"%cluster", "%nclusterid"}) ||
        starts_any(opcode, {"barrier.cluster", "mapa", "getctarank"}))
        return "works with thread-block clusters (inline PTX)";
    if (opcode.starts_with("clusterlaunchcontrol")) return "takes over other blocks (clusterlaunchcontrol)";
    if (opcode == "exit" || opcode == "ret" || opcode == "ret.uni")
        return "leaves by inline PTX (" + std::string(opcode) + ")";
    if (opcode.starts_with("setmaxnreg")) return "changes its number of registers (setmaxnreg)";
    return refuse_barrier(instruction);
}

std::optional<AsmFacts::Move> read_move(const Instruction& instruction) {
    if (instruction.opcode != "mov.u32" && instruction.opcode != "mov.b32") return std::nullopt;
    if (instruction.operands.size() != 2 || instruction.operands[0] != "%0") return std::nullopt;
    std::string_view from = instruction.operands[1];
    if (!from.starts_with("%%")) return std::nullopt;
    from.remove_prefix(2);
    const bool grid = from.starts_with('n');
    if (grid) from.remove_prefix(1);
    if (!from.starts_with("ctaid.") || from.size() != 7 || from[6] < 'x' || from[6] > 'z')
        return std::nullopt;
    return AsmFacts::Move{grid, from[6]};
}

}  // namespace

AsmFacts examine_asm(std::string_view original) {
    const std::string text = without_comments(original);
    AsmFacts facts;
    facts.index = has_any(text, {"%ctaid", "%nctaid"});
    facts.sm = has(text, "%smid");
    facts.sms = has(text, "%nsmid");
    size_t instructions = 0;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find_first_of(";{}", at), text.size());
        const std::string_view part = trimmed(std::string_view(text).substr(at, end - at));
        at = end + 1;
        if (part.empty()) continue;
        const Instruction instruction = read_instruction(part);
        ++instructions;
        if (facts.refusal.empty()) facts.refusal = refuse(instruction, part);
        facts.copies |=
            instruction.opcode.starts_with("cp.async.ca") || instruction.opcode.starts_with("cp.async.cg");
        facts.wide |=
            starts_any(instruction.opcode, {"bar.", "barrier.", "vote", "shfl", "match", "redux", "elect"}) ||
            has_any(instruction.opcode, {".sync", "mma"});
        facts.move = instructions == 1 ? read_move(instruction) : std::nullopt;
    }
    if (facts.index && !facts.move && facts.refusal.empty())
        facts.refusal = "inline PTX reads %ctaid or %nctaid in another way than a plain mov of one component";
    return facts;
}

}  // namespace smt::rewriter::source
