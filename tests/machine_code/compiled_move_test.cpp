// What says where code is, in what nvcc makes of kernels.cu: it moves with the code.
#include "tests/machine_code/compiled.h"

namespace smt::machine_code {
namespace {

// By sections of code that move: the symbol of the entry.
std::map<uint32_t, uint32_t> moved_sections(const Both& both) {
    std::map<uint32_t, uint32_t> result;
    std::set<std::string> names;
    for (const PatchedEntry& entry : both.entries)
        if (entry.reason.empty()) names.insert(entry.name);
    const std::string_view symbols = both.before.content(".symtab"), strings = both.before.content(".strtab");
    for (uint32_t i = 0; i * sizeof(Elf64_Sym) < symbols.size(); ++i) {
        Elf64_Sym symbol;
        std::memcpy(&symbol, symbols.data() + i * sizeof symbol, sizeof symbol);
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && (symbol.st_other & 0x10) &&
            names.contains(strings.data() + symbol.st_name))
            result[symbol.st_shndx] = i;
    }
    CHECK(result.size() == names.size());
    return result;
}

TEST_CASE("symbols within moved code move, entries grow, all else is as before") {
    size_t inner = 0;
    for (const auto& both : all_builds()) {
        const auto moved = moved_sections(*both);
        const std::string_view before = both->before.content(".symtab"),
                               after = both->after.content(".symtab");
        REQUIRE(before.size() == after.size());
        for (uint32_t i = 0; i * sizeof(Elf64_Sym) < before.size(); ++i) {
            Elf64_Sym old, now;
            std::memcpy(&old, before.data() + i * sizeof old, sizeof old);
            std::memcpy(&now, after.data() + i * sizeof now, sizeof now);
            const auto section = moved.find(old.st_shndx);
            if (section != moved.end()) {
                if (section->second == i) {
                    CHECK(now.st_size == both->after.file.sections()[now.st_shndx].sh_size);
                    old.st_size = now.st_size;
                } else if (ELF64_ST_TYPE(old.st_info) != STT_SECTION) {
                    ++inner;
                    CHECK(old.st_value != 0);
                    old.st_value += kMoved;
                }
            }
            CHECK(std::memcmp(&old, &now, sizeof old) == 0);
        }
    }
    CHECK(inner > 0);
}

// What is relocated and by what, moved as it has to be: places in code; addends of an entry's own symbol,
// where the code refers to a place within itself, and all of debug sections. `addends`: how many have moved.
std::string moved_relocations(const Both& both, uint32_t number, std::map<bool, size_t>& addends) {
    const Elf64_Shdr& section = both.before.file.sections()[number];
    std::string bytes(both.before.file.content(number));
    if (section.sh_type != SHT_RELA) return bytes;
    const auto moved = moved_sections(both);
    const bool debug = !(both.before.file.sections()[section.sh_info].sh_flags & SHF_ALLOC);
    for (size_t i = 0; i + sizeof(Elf64_Rela) <= bytes.size(); i += sizeof(Elf64_Rela)) {
        Elf64_Rela each;
        std::memcpy(&each, bytes.data() + i, sizeof each);
        if (moved.contains(section.sh_info)) each.r_offset += kMoved;
        for (const auto& [code, symbol] : moved) {
            if (ELF64_R_SYM(each.r_info) != symbol || (!debug && each.r_addend == 0)) continue;
            each.r_addend += kMoved;
            ++addends[debug];
        }
        std::memcpy(bytes.data() + i, &each, sizeof each);
    }
    return bytes;
}

// Up to sm_89, relocations of debug sections have their addends in these.
void check_frame_of_80(const Both& both) {
    const std::string_view records = both.before.content(".rel.debug_frame");
    std::string frame(both.before.content(".debug_frame"));
    size_t changed = 0;
    for (const auto& [code, symbol] : moved_sections(both))
        for (size_t i = 0; i + sizeof(Elf64_Rel) <= records.size(); i += sizeof(Elf64_Rel)) {
            Elf64_Rel each;
            std::memcpy(&each, records.data() + i, sizeof each);
            if (ELF64_R_SYM(each.r_info) != symbol) continue;
            uint64_t word;
            std::memcpy(&word, frame.data() + each.r_offset, sizeof word);
            word += kMoved;
            std::memcpy(frame.data() + each.r_offset, &word, sizeof word);
            ++changed;
        }
    CHECK(changed > 10);
    CHECK(both.after.content(".debug_frame") == frame);
}

TEST_CASE("relocations move with the code, and all other sections stay") {
    std::map<bool, size_t> addends;
    for (const auto& both : all_builds()) {
        INFO(both->build.name);
        std::set<std::string> touched{".symtab", ".nv.info"};
        for (const PatchedEntry& entry : both->entries)
            for (const char* prefix : {".text.", ".nv.info.", ".nv.constant0."})
                touched.insert(prefix + entry.name);
        CHECK(both->before.sections == both->after.sections);
        if (both->build.architecture == 80) {
            touched.insert(".debug_frame");
            check_frame_of_80(*both);
        }
        std::set<std::string> kept;
        for (const auto& [name, number] : both->before.sections) {
            if (touched.contains(name)) continue;
            INFO(name);
            CHECK(moved_relocations(*both, number, addends) == both->after.file.content(number));
            const Elf64_Shdr &old = both->before.file.sections()[number],
                             &now = both->after.file.sections()[number];
            CHECK(old.sh_info == now.sh_info);
            CHECK(old.sh_link == now.sh_link);
            CHECK(old.sh_size == now.sh_size);
            for (const char* prefix : {".debug_line", ".debug_info", ".rel"})
                if (name.starts_with(prefix) && old.sh_size != 0) kept.insert(prefix);
        }
        CHECK(kept.contains(".rel"));
        const std::string name = both->build.name;
        CHECK(kept.contains(".debug_line") == (name == "90-lineinfo" || name == "90-G"));
        CHECK(kept.contains(".debug_info") == (name == "90-G"));
    }
    CHECK(addends[true] > 100);
    CHECK(addends[false] > 10);  // what calls leave as the place to come back to
}

}  // namespace
}  // namespace smt::machine_code
