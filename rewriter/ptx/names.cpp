#include "rewriter/ptx/names.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace smt::ptx {

namespace {

struct OpcodeRow {
    const char* name;
    int fewest, most;
    const char* modifiers;
};

constexpr OpcodeRow kOpcodes[] = {
#define SMT_PTX_OPCODE(id, name, fewest, most, modifiers) {name, fewest, most, modifiers},
#include "rewriter/ptx/opcodes.def"
#undef SMT_PTX_OPCODE
};

constexpr const char* kModifiers[] = {
#define SMT_PTX_MODIFIER(id, name) name,
#include "rewriter/ptx/modifiers.def"
#undef SMT_PTX_MODIFIER
};

struct TypeRow {
    const char* name;
    int bits;
};

constexpr TypeRow kTypes[] = {
#define SMT_PTX_TYPE(id, name, bits) {name, bits},
#include "rewriter/ptx/types.def"
#undef SMT_PTX_TYPE
};

constexpr const char* kSpecials[] = {
#define SMT_PTX_SPECIAL(id, name) name,
#include "rewriter/ptx/special_registers.def"
#undef SMT_PTX_SPECIAL
};

template <typename Id>
using Index = std::unordered_map<std::string_view, Id>;

const char* name_of(const char* row) { return row; }
const char* name_of(const OpcodeRow& row) { return row.name; }
const char* name_of(const TypeRow& row) { return row.name; }

template <typename Id, typename Row, size_t N>
Index<Id> index_of(const Row (&rows)[N]) {
    Index<Id> index;
    for (size_t i = 0; i < N; ++i) index.emplace(name_of(rows[i]), static_cast<Id>(i));
    return index;
}

template <typename Id>
std::optional<Id> find(const Index<Id>& index, std::string_view name) {
    auto found = index.find(name);
    if (found == index.end()) return std::nullopt;
    return found->second;
}

struct OpcodeTable {
    std::vector<OpcodeFacts> facts;
    std::string_view unknown;
};

OpcodeTable build_opcode_table() {
    OpcodeTable table;
    for (const OpcodeRow& row : kOpcodes) {
        OpcodeFacts facts{row.name, row.fewest, row.most, {}};
        std::string_view rest = row.modifiers;
        while (!rest.empty()) {
            size_t end = std::min(rest.find(' '), rest.size());
            std::string_view word = rest.substr(0, end);
            rest.remove_prefix(std::min(end + 1, rest.size()));
            if (word.empty()) continue;
            auto modifier = word == "shape" ? std::optional(Modifier::kShape) : find_modifier(word);
            if (modifier)
                facts.modifiers.set(static_cast<size_t>(*modifier));
            else
                table.unknown = word;
        }
        table.facts.push_back(facts);
    }
    return table;
}

const OpcodeTable& opcode_table() {
    static const OpcodeTable table = build_opcode_table();
    return table;
}

}  // namespace

const OpcodeFacts& facts(Opcode opcode) { return opcode_table().facts[static_cast<size_t>(opcode)]; }
const char* name(Opcode opcode) { return kOpcodes[static_cast<size_t>(opcode)].name; }
const char* name(Modifier modifier) { return kModifiers[static_cast<size_t>(modifier)]; }
const char* name(Type type) { return kTypes[static_cast<size_t>(type)].name; }
const char* name(Special special) { return kSpecials[static_cast<size_t>(special)]; }
int bits(Type type) { return kTypes[static_cast<size_t>(type)].bits; }
std::string_view unknown_in_opcode_list() { return opcode_table().unknown; }

std::optional<Opcode> find_opcode(std::string_view name) {
    static const auto index = index_of<Opcode>(kOpcodes);
    return find(index, name);
}

std::optional<Modifier> find_modifier(std::string_view name) {
    static const auto index = index_of<Modifier>(kModifiers);
    return find(index, name);
}

std::optional<Type> find_type(std::string_view name) {
    static const auto index = index_of<Type>(kTypes);
    return find(index, name);
}

std::optional<Special> find_special(std::string_view name) {
    static const auto index = index_of<Special>(kSpecials);
    auto found = find(index, name);
    bool numbered = found == Special::kEnvreg || found == Special::kPm || found == Special::kPm64;
    return numbered ? std::nullopt : found;
}

}  // namespace smt::ptx
