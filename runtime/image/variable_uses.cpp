#include "runtime/image/variable_uses.h"

#include <elf.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <variant>
#include <vector>

#include "runtime/image/bytes.h"
#include "runtime/image/elf_file.h"

namespace smt::image {

namespace {

constexpr std::string_view kTables = "__cudart_";     // prefix of NVIDIA's
constexpr unsigned char kManagedVariable = 0x04;      // in st_other
constexpr unsigned kTexture = 10, kLastSampler = 12;  // symbol types: texture, surface, sampler references
constexpr std::string_view kVariables = ".nv.global", kConstants = ".nv.constant3";

// The words of a PTX text and its other characters, one by one, without blanks, comments and strings.
class Tokens {
public:
    explicit Tokens(std::string_view text) : text_(text) {}

    // Empty: the text is over.
    std::string_view next() {
        while (at_ < text_.size()) {
            const size_t begin = at_;
            if (is_word(text_[at_])) {
                while (at_ < text_.size() && is_word(text_[at_])) ++at_;
                return text_.substr(begin, at_ - begin);
            }
            if (skip("//", "\n") || skip("/*", "*/") || skip("\"", "\"")) continue;
            ++at_;
            if (static_cast<unsigned char>(text_[begin]) > ' ') return text_.substr(begin, 1);
        }
        return {};
    }

private:
    static bool is_word(char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.' || c == '%';
    }

    bool skip(std::string_view from, std::string_view to) {
        if (!text_.substr(at_).starts_with(from)) return false;
        const size_t end = text_.find(to, at_ + from.size());
        at_ = end == text_.npos ? text_.size() : end + to.size();
        return true;
    }

    std::string_view text_;
    size_t at_ = 0;
};

bool is_name(std::string_view word) {
    return std::isalpha(static_cast<unsigned char>(word[0])) || word[0] == '_' || word[0] == '$';
}

enum class Which { kAll, kNoConstants, kConstants };

bool declares_variable(std::string_view word, Which which) {
    if (word == ".const") return which != Which::kNoConstants;
    if (which == Which::kConstants) return false;
    return word == ".global" || word == ".texref" || word == ".samplerref" || word == ".surfref";
}

// A statement outside of bodies.
struct Outer {
    bool function = false, variable = false;
    bool any = false, constant = false;  // a variable, also one that is not asked for
    bool value = false;                  // of a variable, behind "="
    int parentheses = 0, braces = 0;
    std::vector<std::string_view> names;
};

// Goes through a text once. With `known` null it collects the variables' names; else it looks for them, in
// bodies and in first values.
class Scan {
public:
    Scan(Which which, bool tables, const std::set<std::string_view>* known = nullptr)
        : which_(which), tables_(tables), known_(known) {}

    void text(std::string_view text) {
        Tokens tokens(text);
        for (std::string_view token = tokens.next(); !token.empty(); token = tokens.next())
            depth_ ? inside(token) : outside(token);
    }

    std::set<std::string_view> names;
    bool used = false;
    bool in_value = false, in_constant = false;  // a first value has one of the names; that of a constant

private:
    void inside(std::string_view token) {
        if (token == "{") ++depth_;
        if (token == "}" && --depth_ == 0) outer_ = {};
        if (!outer_.function) return;  // of a section for debuggers
        if (declares_variable(token, which_)) names.insert(token);
        used |= known_ && (known_->contains(token) || declares_variable(token, which_));
    }

    void outside(std::string_view token) {
        const bool plain = !outer_.value && outer_.parentheses == 0;
        if (outer_.value && known_ && known_->contains(token))
            in_value = true, in_constant |= outer_.constant;
        if (plain && declares_variable(token, Which::kAll)) outer_.any = true;
        if (plain && token == ".const") outer_.constant = true;
        if (token == "{") {
            outer_.value ? ++outer_.braces : ++depth_;
        } else if (token == "}") {
            --outer_.braces;
        } else if (token == "(") {
            ++outer_.parentheses;
        } else if (token == ")") {
            --outer_.parentheses;
        } else if (token == "=") {
            outer_.value |= outer_.any;
        } else if (token == "," && outer_.braces == 0) {
            outer_.value = false;
        } else if (token == ";") {
            if (outer_.variable && !outer_.function) names.insert(outer_.names.begin(), outer_.names.end());
            outer_ = {};
        } else if (token == ".entry" || token == ".func") {
            outer_.function = true;
        } else if (plain && declares_variable(token, which_)) {
            outer_.variable = true;
        } else if (plain && is_name(token) && (tables_ || !token.starts_with(kTables))) {
            outer_.names.push_back(token);
        }
    }

    const Which which_;
    const bool tables_;
    const std::set<std::string_view>* known_;
    Outer outer_;
    int depth_ = 0;  // of braces, in a body
};

// Of what a relocation names.
bool is_variable(const ElfFile& file, const Elf64_Sym& symbol, std::string_view names, bool tables) {
    if (!tables && ElfFile::text_at(names, symbol.st_name).starts_with(kTables)) return false;
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    if ((type >= kTexture && type <= kLastSampler) ||
        (type == STT_OBJECT && (symbol.st_other & kManagedVariable) != 0))
        return true;
    return symbol.st_shndx < file.sections().size() &&
           file.name_begins(file.sections()[symbol.st_shndx], kVariables);
}

// A relocation section of code or constants. What stands in a variable's first value is no use of it.
bool refers_to_variable(const ElfFile& file, const Elf64_Shdr& section, bool tables) {
    const auto& sections = file.sections();
    if (section.sh_info >= sections.size() || section.sh_link >= sections.size()) return true;
    const Elf64_Shdr& target = sections[section.sh_info];
    if (!(target.sh_flags & SHF_ALLOC) || file.name_begins(target, kVariables)) return false;
    const std::string_view entries = file.content(section), symbols = file.content(section.sh_link);
    const std::string_view names = file.content(sections[section.sh_link].sh_link);
    const uint64_t entry_bytes = section.sh_type == SHT_RELA ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
    Elf64_Rel entry;
    Elf64_Sym symbol;
    for (uint64_t at = 0; read_at(entries, at, &entry); at += entry_bytes)
        if (!read_at(symbols, ELF64_R_SYM(entry.r_info) * sizeof symbol, &symbol) ||
            is_variable(file, symbol, names, tables))
            return true;
    return false;
}

}  // namespace

bool uses_variables_of_ptx(std::string_view text, bool tables) {
    Scan variables(Which::kAll, tables);
    variables.text(text);
    if (variables.names.empty()) return false;
    Scan uses(Which::kAll, tables, &variables.names);
    uses.text(text);
    return uses.used;
}

TextUses uses_of_ptx(std::string_view text, bool tables) {
    TextUses found;
    Scan others(Which::kNoConstants, tables), constants(Which::kConstants, false);
    others.text(text);
    found.within = others.names.contains(".global");
    if (!others.names.empty()) {
        Scan uses(Which::kNoConstants, tables, &others.names);
        uses.text(text);
        found.variables = uses.used || uses.in_constant;
    }
    constants.text(text);
    if (constants.names.empty()) return found;
    found.constants.assign(constants.names.begin(), constants.names.end());
    found.constant_addresses = text.find("cvta.const") != text.npos;
    Scan values(Which::kAll, false, &constants.names);
    values.text(text);
    found.constant_addresses |= values.in_value;
    return found;
}

bool uses_variables_of_cubin(std::string_view cubin, bool tables) {
    const auto read = ElfFile::read(cubin);
    const auto* file = std::get_if<ElfFile>(&read);
    if (!file) return true;
    return std::any_of(file->sections().begin(), file->sections().end(), [&](const Elf64_Shdr& section) {
        if (file->name_begins(section, kConstants)) return section.sh_size != 0;
        const bool relocates = section.sh_type == SHT_RELA || section.sh_type == SHT_REL;
        return relocates && refers_to_variable(*file, section, tables);
    });
}

}  // namespace smt::image
