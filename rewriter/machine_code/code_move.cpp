#include "rewriter/machine_code/code_move.h"

#include <cstddef>
#include <cstring>
#include <unordered_set>

#include "runtime/image/bytes.h"

namespace smt::machine_code {

namespace {

// Of the relocations of data: a whole word of 32 or 64 bits.
constexpr uint32_t kWord32 = 1, kWord64 = 2;

template <typename T>
void add_at(std::string& bytes, uint64_t at, uint64_t more) {
    T value;
    if (!image::read_at(bytes, at, &value)) return;
    value = static_cast<T>(value + more);
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

class Mover {
public:
    Mover(ElfEditor& cubin, uint32_t symbols, const std::unordered_map<uint32_t, uint32_t>& entries,
          uint64_t bytes)
        : cubin_(cubin), symbols_(symbols), entries_(entries), bytes_(bytes) {}

    void move() {
        move_symbols();
        for (uint32_t i = 1; i < cubin_.sections().size(); ++i)
            for_relocations(cubin_, i, [&](const CodeReference& each) { found_.push_back(each); });
        for (const CodeReference& each : found_) move_relocation(each);
    }

private:
    void move_symbols() {
        const std::string_view table = cubin_.content(symbols_);
        std::vector<uint64_t> moved;
        Elf64_Sym symbol;
        for (uint32_t i = 0; image::read_at(table, uint64_t{i} * sizeof symbol, &symbol); ++i) {
            auto entry = entries_.find(symbol.st_shndx);
            if (entry == entries_.end()) continue;
            if (is_start(symbol, entry->second == i))
                starts_.insert(i);
            else
                moved.push_back(uint64_t{i} * sizeof symbol + offsetof(Elf64_Sym, st_value));
        }
        for (const uint64_t at : moved) add_at<uint64_t>(cubin_.change(symbols_), at, bytes_);
    }

    void move_relocation(const CodeReference& each) {
        if (entries_.contains(each.target))
            add_at<uint64_t>(cubin_.change(each.record), each.record_at + offsetof(Elf64_Rela, r_offset),
                             bytes_);
        if (!starts_.contains(each.symbol)) return;
        // Without an offset it means the entry; debug information means the code.
        const bool debug = !(cubin_.sections()[each.target].sh_flags & SHF_ALLOC);
        if (each.has_addend) {
            if (debug || each.addend != 0)
                add_at<uint64_t>(cubin_.change(each.record), each.record_at + offsetof(Elf64_Rela, r_addend),
                                 bytes_);
        } else if (debug && each.type == kWord64) {
            change_word<uint64_t>(each);
        } else if (debug && each.type == kWord32) {
            change_word<uint32_t>(each);
        }
    }

    template <typename T>
    void change_word(const CodeReference& each) {
        T word;
        if (image::read_at(cubin_.content(each.target), each.offset, &word))
            add_at<T>(cubin_.change(each.target), each.offset, bytes_);
    }

    ElfEditor& cubin_;
    const uint32_t symbols_;
    const std::unordered_map<uint32_t, uint32_t>& entries_;
    const uint64_t bytes_;
    std::unordered_set<uint32_t> starts_;
    std::vector<CodeReference> found_;
};

}  // namespace

bool is_start(const Elf64_Sym& symbol, bool entry) {
    const unsigned char type = ELF64_ST_TYPE(symbol.st_info);
    return entry || (symbol.st_value == 0 && (type == STT_SECTION || type == STT_NOTYPE));
}

void for_relocations(const ElfEditor& cubin, uint32_t section,
                     const std::function<void(const CodeReference&)>& call) {
    const Elf64_Shdr& header = cubin.sections()[section];
    const bool addends = header.sh_type == SHT_RELA;
    if ((header.sh_type != SHT_REL && !addends) || header.sh_info >= cubin.sections().size()) return;
    const std::string_view bytes = cubin.content(section);
    Elf64_Rela record{};
    const uint64_t step = addends ? sizeof record : sizeof(Elf64_Rel);
    static_assert(sizeof(Elf64_Rel) == offsetof(Elf64_Rela, r_addend));
    for (uint64_t at = 0; at + step <= bytes.size(); at += step) {
        std::memcpy(&record, bytes.data() + at, step);
        call({header.sh_info, section, at, record.r_offset,
              static_cast<uint32_t>(ELF64_R_TYPE(record.r_info)),
              static_cast<uint32_t>(ELF64_R_SYM(record.r_info)), addends, addends ? record.r_addend : 0});
    }
}

void move_code(ElfEditor& cubin, uint32_t symbols, const std::unordered_map<uint32_t, uint32_t>& entries,
               uint64_t bytes) {
    Mover(cubin, symbols, entries, bytes).move();
}

}  // namespace smt::machine_code
