// See kernel_facts.h. A cubin is an ELF file. Sections .nv.info (of all functions) and .nv.info.NAME (of one)
// have attributes: a byte of form, a byte of attribute, then 8 or 16 bits that are a value, or 16 bits that
// are a length and the bytes of that length.
//
//   symbol of a function --st_shndx--> section of its code <--sh_info-- .nv.info.NAME, .nv.shared.NAME
//
// The numbers of attributes are those that cuobjdump 13.2 -elf gives names to in cubins of ptxas 13.0.
#include "runtime/image/kernel_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/image/bytes.h"
#include "runtime/image/elf_file.h"

namespace smt::image {

namespace {

constexpr uint16_t kMachine = 190;                      // EM_CUDA
constexpr unsigned char kArchitectureInSecondByte = 8;  // ABI version from which e_flags has it there
constexpr unsigned char kEntryPoint = 0x10;             // in st_other
constexpr uint32_t kInfoSection = 0x70000000;           // SHT_CUDA_INFO

// From this architecture on .nv.shared counts what the system keeps for itself (ptxas -v does not).
constexpr int kSharedCountsReserved = 90;
constexpr uint64_t kReservedShared = 1024;

// In the flags of a code section, up to ABI version 7: how many barriers. Later an attribute says it.
constexpr uint64_t kBarriersInFlags = 0x1f00000;
constexpr int kBarriersShift = 20;

enum Form : uint8_t { kByteForm = 2, kHalfForm = 3, kBytesForm = 4 };

enum Attribute : uint8_t {
    kMaxThreads = 0x05,
    kExterns = 0x0f,  // numbers of symbols; through functions and pointers that it calls, too
    kRequiredThreads = 0x10,
    kMinimumStack = 0x12,
    kParameter = 0x17,     // of at most 16 KiB
    kMaximumStack = 0x23,  // in place of the minimum in relocatable code
    kRegisterCount = 0x2f,
    kBlocksPerCluster = 0x3d,
    kExplicitCluster = 0x3e,
    kMostClusterRank = 0x3f,
    kLargeParameter = 0x45,
    kBarriers = 0x4c,
    kBlocksAreClusters = 0x5b,
};

struct Head {
    uint8_t form, kind;
    uint16_t value;  // or a length
};

struct OfSymbol {
    uint32_t symbol, value;
};

struct ParameterRecord {
    uint32_t index;
    uint16_t ordinal, offset;
    uint32_t word;
    uint32_t bytes(uint8_t kind) const { return kind == kParameter ? word >> 18 : word & 0xffff; }
};
static_assert(sizeof(ParameterRecord) == 12);

// Calls `each` with head and bytes of every attribute; false: they do not fill the section.
template <typename Each>
bool for_attributes(std::string_view info, Each&& each) {
    Head head;
    for (uint64_t at = 0; at < info.size();) {
        if (!read_at(info, at, &head)) return false;
        at += sizeof head;
        const uint64_t length = head.form == kBytesForm ? head.value : 0;
        if (length > info.size() - at) return false;
        if (!each(head, info.substr(at, length))) return false;
        at += length;
    }
    return true;
}

class Cubin {
public:
    Cubin(const ElfFile& file, std::string_view bytes)
        : file_(file),
          left_(bytes.size()),
          relocatable_(file.header().e_type == ET_REL),
          architecture_(cubin_architecture(bytes)),
          old_(file.header().e_ident[EI_ABIVERSION] < kArchitectureInSecondByte) {
        for (const Elf64_Shdr& section : file.sections())
            if (section.sh_type == SHT_SYMTAB_SHNDX) large_indices_ = file.content(section);
    }

    std::variant<std::vector<KernelFacts>, Problem> read() {
        // There is one of all functions; a second could only be there to keep us busy.
        for (const Elf64_Shdr& section : file_.sections()) {
            if (!file_.name_is(section, ".nv.info")) continue;
            if (file_.content(section).size() != section.sh_size || !read_common(section))
                return Problem{"a cubin with a broken .nv.info"};
            break;
        }
        for (const Elf64_Shdr& section : file_.sections())
            if (!read_own(section)) return Problem{"a cubin with a broken .nv.info of a function"};
        std::vector<KernelFacts> facts;
        for (auto& [symbol, function] : functions_)
            if (function.facts.registers) facts.push_back(finish(function));
        return facts;
    }

private:
    struct Function {
        KernelFacts facts;
        std::map<uint16_t, Parameter> parameters;
    };

    // Of what is read or kept there is no more than the file has, unless its parts overlap.
    bool spend(uint64_t bytes) {
        overspent_ |= bytes > left_;
        if (!overspent_) left_ -= bytes;
        return !overspent_;
    }

    // Null: the number names no function, or the names are more than the file holds.
    Function* function_of(const Elf64_Shdr& info, uint32_t number) {
        if (auto known = functions_.find(number); known != functions_.end()) return &known->second;
        if (info.sh_link >= file_.sections().size()) return nullptr;
        const Elf64_Shdr& symbols = file_.sections()[info.sh_link];
        Elf64_Sym symbol;
        if (!read_at(file_.content(symbols), uint64_t{number} * sizeof symbol, &symbol)) return nullptr;
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) return nullptr;
        std::string_view name = ElfFile::text_at(file_.content(symbols.sh_link), symbol.st_name);
        if (name.empty() || !spend(name.size())) return nullptr;
        Function& function = functions_[number];
        function.facts.name = name;
        function.facts.kernel = (symbol.st_other & kEntryPoint) != 0;
        uint32_t code = symbol.st_shndx;
        if (code == SHN_XINDEX) read_at(large_indices_, uint64_t{number} * sizeof code, &code);
        by_code_.emplace(code, &function);
        return &function;
    }

    bool read_common(const Elf64_Shdr& section) {
        return for_attributes(file_.content(section), [&](const Head& head, std::string_view bytes) {
            const bool stack = head.kind == kMinimumStack || head.kind == kMaximumStack;
            if (head.form != kBytesForm || (!stack && head.kind != kRegisterCount)) return true;
            OfSymbol value;
            if (!read_at(bytes, 0, &value)) return false;
            Function* function = function_of(section, value.symbol);
            if (function) (stack ? function->facts.stack_bytes : function->facts.registers) = value.value;
            return !overspent_;
        });
    }

    // A section of one function: its attributes, its shared memory, its code.
    bool read_own(const Elf64_Shdr& section) {
        const auto number = static_cast<uint32_t>(&section - file_.sections().data());
        if (auto own = by_code_.find(number); own != by_code_.end() && old_)
            own->second->facts.barriers =
                static_cast<uint32_t>((section.sh_flags & kBarriersInFlags) >> kBarriersShift);
        auto found = by_code_.find(section.sh_info);
        if (found == by_code_.end()) return true;
        if (file_.name_begins(section, ".nv.shared.") && !relocatable_)
            found->second->facts.shared_bytes = declared_shared(section.sh_size);
        if (section.sh_type != kInfoSection || !file_.name_begins(section, ".nv.info.")) return true;
        std::string_view info = file_.content(section);
        return info.size() == section.sh_size && spend(info.size()) &&
               read_attributes(info, *found->second) && read_externs(section, found->second->facts.externs);
    }

    bool read_externs(const Elf64_Shdr& section, std::vector<std::string>& externs) {
        if (section.sh_link >= file_.sections().size()) return true;
        const Elf64_Shdr& symbols = file_.sections()[section.sh_link];
        return for_attributes(file_.content(section), [&](const Head& head, std::string_view bytes) {
            if (head.form != kBytesForm || head.kind != kExterns) return true;
            uint32_t number = 0;
            for (uint64_t at = 0; read_at(bytes, at, &number); at += sizeof number) {
                Elf64_Sym symbol;
                if (!read_at(file_.content(symbols), uint64_t{number} * sizeof symbol, &symbol)) return false;
                const std::string_view name =
                    ElfFile::text_at(file_.content(symbols.sh_link), symbol.st_name);
                if (!spend(name.size())) return false;
                externs.emplace_back(name);
            }
            return true;
        });
    }

    uint32_t declared_shared(uint64_t bytes) const {
        if (architecture_ >= kSharedCountsReserved && bytes >= kReservedShared) bytes -= kReservedShared;
        return static_cast<uint32_t>(std::min<uint64_t>(bytes, ~0u));
    }

    static bool read_attributes(std::string_view info, Function& function) {
        KernelFacts& facts = function.facts;
        return for_attributes(info, [&](const Head& head, std::string_view bytes) {
            switch (head.kind) {
                case kMaxThreads:
                    return read_at(bytes, 0, &facts.most_threads);
                case kRequiredThreads:
                    return read_at(bytes, 0, &facts.required_block);
                case kBlocksPerCluster:
                    return read_at(bytes, 0, &facts.cluster);
                case kMostClusterRank:
                    return read_at(bytes, 0, &facts.most_cluster_blocks);
                case kExplicitCluster:
                    return facts.explicit_cluster = true;
                case kBlocksAreClusters:
                    return facts.grid_of_clusters = true;
                case kBarriers:
                    facts.barriers = head.form == kByteForm ? head.value & 0xff : head.value;
                    return true;
                case kParameter:
                case kLargeParameter: {
                    ParameterRecord record;
                    if (!read_at(bytes, 0, &record)) return false;
                    function.parameters[record.ordinal] = {record.offset, record.bytes(head.kind)};
                    return true;
                }
                default:
                    return true;
            }
        });
    }

    KernelFacts finish(Function& function) const {
        for (const auto& [ordinal, parameter] : function.parameters)
            function.facts.parameters.push_back(parameter);
        if (!relocatable_ && !function.facts.shared_bytes) function.facts.shared_bytes = 0;
        return std::move(function.facts);
    }

    const ElfFile& file_;
    std::string_view large_indices_;  // where 16 bits are too few for the number of a symbol's section
    uint64_t left_;                   // of what spend() counts
    bool overspent_ = false;
    bool relocatable_;
    int architecture_;
    bool old_;
    std::map<uint32_t, Function> functions_;  // by symbol
    std::map<uint32_t, Function*> by_code_;   // by section
};

}  // namespace

int cubin_architecture(std::string_view image) {
    Elf64_Ehdr header;
    if (!is_elf(image) || !read_at(image, 0, &header) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_machine != kMachine)
        return 0;
    bool second = header.e_ident[EI_ABIVERSION] >= kArchitectureInSecondByte;
    return static_cast<int>(second ? header.e_flags >> 8 & 0xff : header.e_flags & 0xff);
}

bool is_relocatable(std::string_view cubin) {
    Elf64_Ehdr header;
    return cubin_architecture(cubin) != 0 && read_at(cubin, 0, &header) && header.e_type == ET_REL;
}

std::variant<std::vector<KernelFacts>, Problem> kernel_facts(std::string_view cubin) {
    if (cubin_architecture(cubin) == 0) return Problem{"no cubin"};
    auto file = ElfFile::read(cubin);
    if (auto* problem = std::get_if<Problem>(&file))
        return Problem{"a cubin that cannot be read: " + problem->text};
    return Cubin(std::get<ElfFile>(file), cubin).read();
}

std::variant<std::vector<std::string>, Problem> variable_names(std::string_view cubin) {
    if (cubin_architecture(cubin) == 0) return Problem{"no cubin"};
    auto read = ElfFile::read(cubin);
    if (auto* problem = std::get_if<Problem>(&read))
        return Problem{"a cubin that cannot be read: " + problem->text};
    const ElfFile& file = std::get<ElfFile>(read);
    std::vector<std::string> names;
    for (const Elf64_Shdr& section : file.sections()) {
        if (section.sh_type != SHT_SYMTAB) continue;
        const std::string_view symbols = file.content(section), texts = file.content(section.sh_link);
        Elf64_Sym symbol;
        for (uint64_t at = 0; read_at(symbols, at, &symbol); at += sizeof symbol)
            if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT)
                names.emplace_back(ElfFile::text_at(texts, symbol.st_name));
    }
    return names;
}

}  // namespace smt::image
