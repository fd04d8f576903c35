// See kernel_facts.h. A cubin is an ELF file. Section .nv.info has attributes of all functions: a byte of
// form, a byte of attribute, 16 bits that are a value or a length, and the bytes of that length. Those of
// interest hold the number of a function's symbol and a value.
#include "runtime/image/kernel_facts.h"

#include <elf.h>
#include <fmt/format.h>

#include <map>
#include <optional>

#include "runtime/image/bytes.h"

namespace smt::image {

namespace {

constexpr uint16_t kMachine = 190;                      // EM_CUDA
constexpr unsigned char kArchitectureInSecondByte = 8;  // ABI version from which e_flags has it there
constexpr unsigned char kEntryPoint = 0x10;             // in st_other

constexpr uint8_t kFormBytes = 4;  // the 16 bits are a length
constexpr uint8_t kRegisterCount = 0x2f;
constexpr uint8_t kMinimumStack = 0x12;

class Cubin {
public:
    explicit Cubin(std::string_view bytes) : bytes_(bytes) {}

    std::variant<std::vector<KernelFacts>, Problem> read() {
        if (auto problem = read_sections()) return *problem;
        for (const Elf64_Shdr& section : sections_) {
            if (name_of(section) != ".nv.info") continue;
            if (content(section).size() != section.sh_size || !read_attributes(section))
                return Problem{"a cubin with a broken .nv.info"};
            break;  // there is one; a second could only be there to keep us busy
        }
        std::vector<KernelFacts> facts;
        for (auto& [symbol, fact] : facts_)
            if (fact.registers) facts.push_back(std::move(fact));
        return facts;
    }

    std::variant<std::vector<std::string>, Problem> read_variables() {
        if (auto problem = read_sections()) return *problem;
        std::vector<std::string> names;
        for (const Elf64_Shdr& section : sections_) {
            if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections_.size()) continue;
            const std::string_view symbols = content(section), texts = content(sections_[section.sh_link]);
            Elf64_Sym symbol;
            for (uint64_t at = 0; read_at(symbols, at, &symbol); at += sizeof symbol)
                if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT) names.emplace_back(text_at(texts, symbol.st_name));
        }
        return names;
    }

private:
    std::optional<Problem> read_sections() {
        Elf64_Ehdr header;
        if (!read_at(bytes_, 0, &header) || cubin_architecture(bytes_) == 0) return Problem{"no cubin"};
        if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shstrndx >= header.e_shnum)
            return Problem{"a cubin without proper section headers"};
        for (uint64_t i = 0; i < header.e_shnum; ++i) {
            Elf64_Shdr section;
            if (header.e_shoff > bytes_.size() ||
                !read_at(bytes_, header.e_shoff + i * sizeof section, &section))
                return Problem{fmt::format("a cubin of {} sections that has only {}", header.e_shnum, i)};
            sections_.push_back(section);
        }
        names_ = content(sections_[header.e_shstrndx]);
        return std::nullopt;
    }

    // Nothing for sections that have none in the file: NOBITS is not the only type of those.
    std::string_view content(const Elf64_Shdr& section) const {
        bool within =
            section.sh_offset <= bytes_.size() && section.sh_size <= bytes_.size() - section.sh_offset;
        return within ? bytes_.substr(section.sh_offset, section.sh_size) : std::string_view();
    }

    static std::string_view text_at(std::string_view table, uint64_t at) {
        if (at >= table.size()) return {};
        return table.substr(at, std::min(table.find('\0', at), table.size()) - at);
    }

    std::string_view name_of(const Elf64_Shdr& section) const { return text_at(names_, section.sh_name); }

    // The facts of the function that symbol `number` names; null: none does.
    KernelFacts* facts_of(const Elf64_Shdr& info, uint32_t number) {
        if (auto known = facts_.find(number); known != facts_.end()) return &known->second;
        if (info.sh_link >= sections_.size()) return nullptr;
        const Elf64_Shdr& symbols = sections_[info.sh_link];
        Elf64_Sym symbol;
        if (symbols.sh_link >= sections_.size() ||
            !read_at(content(symbols), uint64_t{number} * sizeof symbol, &symbol))
            return nullptr;
        std::string_view name = text_at(content(sections_[symbols.sh_link]), symbol.st_name);
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || name.empty()) return nullptr;
        KernelFacts& facts = facts_[number];
        facts.name = name;
        facts.kernel = (symbol.st_other & kEntryPoint) != 0;
        return &facts;
    }

    bool read_attributes(const Elf64_Shdr& section) {
        struct Attribute {
            uint8_t form, kind;
            uint16_t length;
        } attribute;
        struct Value {
            uint32_t symbol, value;
        } value;
        std::string_view info = content(section);
        for (uint64_t at = 0; at < info.size();) {
            if (!read_at(info, at, &attribute)) return false;
            at += sizeof attribute;
            if (attribute.form != kFormBytes) continue;
            if (attribute.length > info.size() - at) return false;
            bool wanted = attribute.kind == kRegisterCount || attribute.kind == kMinimumStack;
            if (wanted && (attribute.length < sizeof value || !read_at(info, at, &value))) return false;
            at += attribute.length;
            KernelFacts* facts = wanted ? facts_of(section, value.symbol) : nullptr;
            if (facts)
                (attribute.kind == kRegisterCount ? facts->registers : facts->stack_bytes) = value.value;
        }
        return true;
    }

    std::string_view bytes_, names_;
    std::vector<Elf64_Shdr> sections_;
    std::map<uint32_t, KernelFacts> facts_;  // by symbol
};

}  // namespace

int cubin_architecture(std::string_view image) {
    Elf64_Ehdr header;
    if (!read_at(image, 0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine)
        return 0;
    bool second = header.e_ident[EI_ABIVERSION] >= kArchitectureInSecondByte;
    return static_cast<int>(second ? header.e_flags >> 8 & 0xff : header.e_flags & 0xff);
}

std::variant<std::vector<KernelFacts>, Problem> kernel_facts(std::string_view cubin) {
    return Cubin(cubin).read();
}

std::variant<std::vector<std::string>, Problem> variable_names(std::string_view cubin) {
    return Cubin(cubin).read_variables();
}

}  // namespace smt::image
