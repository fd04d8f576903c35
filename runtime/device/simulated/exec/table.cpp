#include "runtime/device/simulated/exec/table.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace smt::runtime::device::simulated {
namespace {

[[noreturn]] void unknown(const std::string& word) {
    std::fprintf(stderr, "instruction table: PTX has no %s\n", word.c_str());
    std::abort();
}

bool fits(const Row& row, const ptx::Instruction& source) {
    for (size_t i = 0; i < row.required.size(); ++i)
        if (row.required[i] && !source.has(static_cast<ptx::Modifier>(i))) return false;
    for (ptx::Modifier modifier : source.modifiers) {
        const auto i = static_cast<size_t>(modifier);
        if (!row.required[i] && !row.allowed[i]) return false;
    }
    const auto has = [](const TypeSet& set, ptx::Type type) { return set[static_cast<size_t>(type)]; };
    if (source.types.empty()) return row.first.none();
    if (!has(row.first, source.types[0])) return false;
    if (source.types.size() == 1) return true;  // the row's decode() asks for the second if it must
    return has(row.second, source.types[1]);
}

std::string why_not(const ptx::Instruction& source, const std::vector<const Row*>& candidates) {
    if (candidates.empty()) return "the simulated device does not execute this instruction";
    for (ptx::Modifier modifier : source.modifiers) {
        bool known = false;
        for (const Row* row : candidates)
            known |=
                row->required[static_cast<size_t>(modifier)] || row->allowed[static_cast<size_t>(modifier)];
        if (!known)
            return fmt::format("the simulated device does not execute it with .{}", ptx::name(modifier));
    }
    return "the simulated device does not execute this combination of types and modifiers";
}

template <size_t N, class Name>
std::string spelled(const std::bitset<N>& set, Name name) {
    std::string text;
    for (size_t i = 0; i < N; ++i)
        if (set[i]) text += fmt::format("{}.{}", text.empty() ? "" : " ", name(i));
    return text;
}

}  // namespace

TypeSet types(const char* names) {
    TypeSet set;
    std::istringstream words(names);
    for (std::string word; words >> word;) {
        auto type = ptx::find_type(word);
        if (!type) unknown(word);
        set.set(static_cast<size_t>(*type));
    }
    return set;
}

ModifierSet modifiers(const char* names) {
    ModifierSet set;
    std::istringstream words(names);
    for (std::string word; words >> word;) {
        auto modifier = word == "shape" ? ptx::Modifier::kShape : ptx::find_modifier(word);
        if (!modifier) unknown(word);
        set.set(static_cast<size_t>(*modifier));
    }
    return set;
}

const std::vector<Row>& instruction_table() {
    static const std::vector<Row> rows = [] {
        std::vector<Row> all;
        for (auto* add :
             {add_integer, add_extended, add_bits, add_fields, add_dot, add_floating, add_approximate,
              add_half, add_compare, add_select, add_convert, add_move, add_access, add_copy, add_atomic,
              add_control, add_synchronization, add_warp_wide, add_video})
            add(all);
        return all;
    }();
    return rows;
}

const Row* find_row(const ptx::Instruction& source, Decoder& decoder) {
    static const auto by_opcode = [] {
        std::array<std::vector<const Row*>, 256> index;
        for (const Row& row : instruction_table()) index[static_cast<size_t>(row.opcode)].push_back(&row);
        return index;
    }();
    const auto& candidates = by_opcode[static_cast<size_t>(source.opcode)];
    for (const Row* row : candidates)
        if (fits(*row, source)) return row;
    decoder.refuse(why_not(source, candidates));
    return nullptr;
}

std::string instruction_document() {
    std::string text =
        "# PTX instructions of the simulated device\n\n"
        "Printed from the table that the decoder works with: `build/bin/ptx_instructions > "
        "docs/ptx-instructions.md`. "
        "What does not stand here is refused by name when a kernel that uses it is loaded.\n";
    const char* family = "";
    for (const Row& row : instruction_table()) {
        if (std::string_view(family) != row.family) {
            family = row.family;
            text += fmt::format(
                "\n## {}\n\n| instruction | modifiers | types | source types | note "
                "|\n|---|---|---|---|---|\n",
                family);
        }
        const auto modifier = [](size_t i) {
            return i == 0 ? "shape" : ptx::name(static_cast<ptx::Modifier>(i));
        };
        const auto type = [](size_t i) { return ptx::name(static_cast<ptx::Type>(i)); };
        std::string opcode = ptx::name(row.opcode);
        const std::string always = spelled(row.required, modifier);
        if (!always.empty()) opcode += fmt::format(" {}", always);
        text += fmt::format("| `{}` | {} | {} | {} | {} |\n", opcode, spelled(row.allowed, modifier),
                            spelled(row.first, type), spelled(row.second, type), row.note);
    }
    return text;
}

}  // namespace smt::runtime::device::simulated
