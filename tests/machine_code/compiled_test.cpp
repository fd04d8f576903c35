// The door in what nvcc makes of kernels.cu. What is expected is worked out here from the bytes.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <set>

#include "rewriter/machine_code/prologue_text.h"
#include "runtime/image/kernel_facts.h"
#include "tests/machine_code/cubins.h"

namespace smt::machine_code {
namespace {

constexpr uint64_t kStep = 16;    // bytes of an instruction
constexpr uint64_t kMoved = 128;  // by how much code moves

std::variant<std::string, Problem> assemble(const std::string& ptx, const std::string& architecture) {
    const std::string base = std::string(SMT_DOOR_CUBINS) + "/prologue." + std::to_string(getpid());
    std::ofstream(base + ".ptx") << ptx;
    const std::string command =
        SMT_PTXAS " -arch=" + architecture + " -O3 " + base + ".ptx -o " + base + ".cubin";
    const int status = std::system(command.c_str());
    std::string cubin = status == 0 ? read_cubin(base + ".cubin") : "";
    unlink((base + ".ptx").c_str());
    unlink((base + ".cubin").c_str());
    if (status != 0) return Problem{command};
    return cubin;
}

struct Halves {
    uint64_t low, high;
};
Halves at(std::string_view code, uint64_t offset) {
    Halves halves{};
    REQUIRE(offset + kStep <= code.size());
    std::memcpy(&halves, code.data() + offset, sizeof halves);
    return halves;
}
unsigned operation_at(std::string_view code, uint64_t offset) { return at(code, offset).low & 0x1ff; }
constexpr unsigned kBra = 0x147, kExit = 0x14d, kNop = 0x118, kCompare = 0x00c;
unsigned guard_at(std::string_view code, uint64_t offset) { return at(code, offset).low >> 12 & 15; }

// The target of the BRA at `offset`.
uint64_t target(std::string_view code, uint64_t offset, int architecture) {
    const Halves branch = at(code, offset);
    // Bits 34 to 81 as a signed number.
    int64_t words = static_cast<int64_t>((branch.high << 30 | branch.low >> 34) << 16) >> 16;
    if (architecture >= 90) words = words * 256 + static_cast<int64_t>(branch.low >> 16 & 0xff);
    return offset + kStep + static_cast<uint64_t>(words * 4);
}

struct Cubin {
    std::string bytes;
    image::ElfFile file;
    std::map<std::string, uint32_t> sections;

    explicit Cubin(std::string text) : bytes(std::move(text)), file(must_be(image::ElfFile::read(bytes))) {
        for (uint32_t i = 0; i < file.sections().size(); ++i)
            sections.emplace(file.name(file.sections()[i]), i);
    }
    Cubin(const Cubin&) = delete;
    std::string_view content(const std::string& name) const {
        auto found = sections.find(name);
        INFO(name);
        REQUIRE(found != sections.end());
        return file.content(found->second);
    }
    std::vector<Attribute> attributes(const std::string& entry) const {
        return must_be(read_attributes(content(".nv.info." + entry)));
    }
    std::vector<uint32_t> words(const std::string& entry, uint8_t kind) const {
        const auto all = attributes(entry);
        const Attribute* found = find(all, kind);
        return found ? found->words() : std::vector<uint32_t>{};
    }
};

struct Build {
    const char* name;
    int architecture;
};
constexpr Build kBuilds[] = {{"80", 80}, {"90", 90}, {"100", 100}, {"90-lineinfo", 90}, {"90-G", 90}};

struct Both {
    Build build;
    Cubin before, after;
    std::vector<PatchedEntry> entries;
};

const std::vector<std::unique_ptr<Both>>& all_builds() {
    static const auto all = [] {
        static Prologues prologues(assemble);
        std::vector<std::unique_ptr<Both>> result;
        for (const Build& build : kBuilds) {
            std::string bytes = read_cubin(std::string(SMT_DOOR_CUBINS "/") + build.name + ".cubin");
            Patched patched = must_be(patch(bytes, prologues));
            result.push_back(std::unique_ptr<Both>(
                new Both{build, Cubin(std::move(bytes)), Cubin(std::move(patched.cubin)), patched.entries}));
        }
        return result;
    }();
    return all;
}

// Up to sm_89, parameters of the large kind are in another place of the bank.
bool is_left_alone(const Both& both, const PatchedEntry& entry) {
    return both.build.architecture == 80 && entry.name == "huge_parameters" &&
           entry.reason == "its parameters do not fill its constant bank";
}

// Calls check(both, entry) for every entry with a door, of every build.
template <typename Check>
void for_entries(Check check) {
    for (const auto& both : all_builds())
        for (const PatchedEntry& entry : both->entries) {
            if (is_left_alone(*both, entry)) continue;
            INFO(both->build.name << ", " << entry.name);
            check(*both, entry);
        }
}

uint64_t old_size(const Both& both, const std::string& entry) {
    return both.before.content(".text." + entry).size();
}

TEST_CASE("every kernel that nvcc makes gets a door, or is as it was") {
    for_entries([](const Both&, const PatchedEntry& entry) { CHECK(entry.reason == ""); });
    for (const auto& both : all_builds()) {
        CHECK(both->entries.size() == 12);
    }
}

TEST_CASE("kernels that load what other CTAs write may wait for them") {
    for_entries([](const Both&, const PatchedEntry& entry) {
        CHECK(entry.waits == (entry.name == "looks_back" || entry.name == "grid_wide"));
    });
}

TEST_CASE("kernels that device code may start are left alone") {
    Prologues prologues(assemble);
    const Patched patched = must_be(patch(read_cubin(SMT_DOOR_CUBINS "/launching.cubin"), prologues));
    std::map<std::string, std::string> reasons;
    for (const PatchedEntry& entry : patched.entries) reasons[entry.name] = entry.reason;
    CHECK(reasons.at("started") == "device code may launch it");
    CHECK(reasons.at("starts_itself") == "device code may launch it");
    CHECK(reasons.at("starts") == "");
    CHECK(reasons.at("apart") == "");
}

TEST_CASE("a prologue that is moved is the one that ptxas makes for that place") {
    Prologues prologues(assemble);
    for (const int architecture : {80, 90, 100}) {
        const Prologue first = must_be(prologues.get(architecture, 0)),
                       second = must_be(prologues.get(architecture, kSecondPlace));
        for (const uint32_t place : {16u, 32u, 112u, 1008u, 4048u}) {
            INFO(architecture << ", " << place);
            const auto moved = moved_prologue(first, second, place);
            REQUIRE(moved);
            const Prologue made = must_be(cut_prologue(
                must_be(assemble(prologue_text(architecture, place), fmt::format("sm_{}", architecture)))));
            if (architecture == 100) continue;  // there ptxas orders instructions by the place, too
            CHECK(moved->code == made.code);
            CHECK(moved->exits == made.exits);
            CHECK(moved->registers == made.registers);
        }
    }
}

TEST_CASE("an entry begins with a test that leads to what is appended, and comes back to the moved code") {
    for_entries([](const Both& both, const PatchedEntry& entry) {
        const int architecture = both.build.architecture;
        const std::string_view before = both.before.content(".text." + entry.name);
        const std::string_view after = both.after.content(".text." + entry.name);
        const uint64_t begin = kMoved + before.size();
        REQUIRE(after.size() > begin);
        CHECK(after.size() % 128 == 0);
        CHECK(after.substr(kMoved, before.size()) == before);
        // The head: what sets a predicate, and a branch for which it is the guard. No other one.
        CHECK(target(after, kMoved - kStep, architecture) == begin);
        CHECK(guard_at(after, kMoved - kStep) < 7);
        uint64_t sets = 0;
        for (uint64_t i = 0; i < kMoved - kStep; i += kStep) {
            CHECK(guard_at(after, i) == 7);
            CHECK(operation_at(after, i) != kBra);
            if (operation_at(after, i) != kCompare) continue;
            CHECK((at(after, i).high >> 17 & 7) == guard_at(after, kMoved - kStep));
            sets = i + kStep;
        }
        CHECK(sets == (architecture < 90 ? kStep : 2 * kStep));
        for (uint64_t i = sets; i < kMoved - kStep; i += kStep) CHECK(operation_at(after, i) == kNop);
        // The way back: the only branch that leads into the moved code. It waits for all six scoreboards.
        uint64_t back = 0;
        for (uint64_t i = begin; i < after.size(); i += kStep) {
            if (operation_at(after, i) != kBra) continue;
            const uint64_t to = target(after, i, architecture);
            if (to >= begin) continue;
            CHECK(back == 0);
            CHECK(to == kMoved);
            back = i;
        }
        REQUIRE(back > begin);
        CHECK(guard_at(after, back) == 7);
        CHECK((at(after, back).high >> 52 & 0x3f) == 0x3f);
        // Behind it, nothing that a CTA could run into.
        for (uint64_t i = back + kStep; i < after.size(); i += kStep)
            CHECK(target(after, i, architecture) == i);
    });
}

// Which words of an attribute are offsets: at `first` and every `step` further.
struct Offsets {
    uint8_t kind;
    size_t first, step;
};
constexpr Offsets kOffsets[] = {{kExitOffsets, 0, 1},     {kCooperativeOffsets, 0, 1},
                                {kWarpWideOffsets, 0, 1}, {kMbarrierOffsets, 0, 4},
                                {kSyscallOffsets, 0, 1},  {kUnusedBytesOffsets, 0, 2}};

std::vector<uint32_t> moved(std::vector<uint32_t> words, const Offsets& offsets) {
    for (size_t i = offsets.first; i < words.size(); i += offsets.step) words[i] += kMoved;
    return words;
}

TEST_CASE("offsets of instructions move with the code, and the prologue's are added") {
    std::set<uint8_t> seen;
    for_entries([&](const Both& both, const PatchedEntry& entry) {
        const uint64_t begin = kMoved + old_size(both, entry.name);
        const std::string_view code = both.after.content(".text." + entry.name);
        for (const Offsets& offsets : kOffsets) {
            const auto before = moved(both.before.words(entry.name, offsets.kind), offsets);
            const auto after = both.after.words(entry.name, offsets.kind);
            if (!before.empty()) seen.insert(offsets.kind);
            REQUIRE(after.size() >= before.size());
            CHECK(std::equal(before.begin(), before.end(), after.begin()));
            if (offsets.kind != kExitOffsets && offsets.kind != kWarpWideOffsets)
                CHECK(after.size() == before.size());
            for (size_t i = before.size(); i < after.size(); ++i) {
                CHECK(after[i] % kStep == 0);
                CHECK(after[i] > begin);
                CHECK(after[i] < code.size());
            }
            if (offsets.kind == kExitOffsets)
                for (const uint32_t exit : after) CHECK(operation_at(code, exit) == kExit);
        }
        // Every exit of the prologue is named.
        size_t exits = 0;
        for (uint64_t i = begin; i < code.size(); i += kStep) exits += operation_at(code, i) == kExit;
        CHECK(both.after.words(entry.name, kExitOffsets).size() ==
              both.before.words(entry.name, kExitOffsets).size() + exits);
    });
    for (const uint8_t kind :
         {kExitOffsets, kCooperativeOffsets, kWarpWideOffsets, kMbarrierOffsets, kSyscallOffsets})
        CHECK(seen.contains(kind));
}

TEST_CASE("tables of branches hold distances within the code, and attributes where their targets are now") {
    constexpr unsigned kBrx = 0x149;
    size_t seen = 0;
    for_entries([&](const Both& both, const PatchedEntry& entry) {
        const auto before = both.before.words(entry.name, kIndirectBranches),
                   after = both.after.words(entry.name, kIndirectBranches);
        REQUIRE(before.size() == after.size());
        if (before.empty()) return;
        const std::string_view code = both.after.content(".text." + entry.name),
                               table = both.after.content(".nv.constant2." + entry.name);
        CHECK(table == both.before.content(".nv.constant2." + entry.name));
        std::set<uint32_t> entries;
        for (size_t i = 0; i + sizeof(uint32_t) <= table.size(); i += sizeof(uint32_t)) {
            uint32_t word;
            std::memcpy(&word, table.data() + i, sizeof word);
            entries.insert(word);
        }
        for (size_t i = 0; i < before.size();) {
            REQUIRE(i + 3 <= before.size());
            CHECK(after[i] == before[i] + kMoved);
            CHECK(operation_at(code, after[i]) == kBrx);
            // What is added to a table's word leads to the old begin of the code, now at 128.
            const uint64_t base = target(code, after[i], both.build.architecture);
            CHECK(base == kMoved);
            const size_t end = i + 3 + before[i + 2];
            CHECK(after[i + 2] == before[i + 2]);
            for (i += 3; i < end; ++i, ++seen) {
                CHECK(after[i] == before[i] + kMoved);
                CHECK(entries.contains(static_cast<uint32_t>(after[i] - base)));
            }
        }
    });
    CHECK(seen > 10);
}

TEST_CASE("one parameter more, behind the others") {
    for_entries([](const Both& both, const PatchedEntry& entry) {
        const auto before = must_be(image::kernel_facts(both.before.bytes));
        const auto after = must_be(image::kernel_facts(both.after.bytes));
        REQUIRE(before.size() == after.size());
        for (size_t i = 0; i < before.size(); ++i) {
            if (before[i].name != entry.name) continue;
            auto parameters = before[i].parameters;
            const uint32_t end = parameters.empty() ? 0 : parameters.back().offset + parameters.back().bytes;
            parameters.push_back({(end + 15) / 16 * 16, 32});
            CHECK(after[i].parameters == parameters);
            CHECK(entry.door_offset == parameters.back().offset);
            CHECK(entry.parameters == parameters.size());
            CHECK(entry.registers == after[i].registers);
            CHECK(after[i].registers >= before[i].registers);
            CHECK(after[i].registers <= std::max(before[i].registers, 24u));
            CHECK(after[i].barriers == std::max(before[i].barriers, 1u));
            CHECK(after[i].shared_bytes == before[i].shared_bytes);
            CHECK(after[i].stack_bytes == before[i].stack_bytes);
            CHECK(after[i].most_threads == before[i].most_threads);
        }
        const auto attributes = both.after.attributes(entry.name);
        const uint32_t bytes = entry.door_offset + 32;
        const Attribute* size = find(attributes, kParameterBytes);
        REQUIRE(size);
        CHECK(size->value == bytes);
        const auto bank = both.after.words(entry.name, kParameterBank);
        REQUIRE(bank.size() == 2);
        CHECK(bank[1] >> 16 == bytes);
        CHECK(both.after.content(".nv.constant0." + entry.name).size() == (bank[1] & 0xffff) + bytes);
        if (both.build.architecture < 90) CHECK(find(attributes, kCtaIdZUsed));
    });
}

TEST_CASE("registers up to sm_89 stand in the section's header, too") {
    for_entries([](const Both& both, const PatchedEntry& entry) {
        const auto section = [&](const Cubin& cubin) {
            return cubin.file.sections()[cubin.sections.at(".text." + entry.name)];
        };
        const uint32_t before = section(both.before).sh_info, after = section(both.after).sh_info;
        CHECK((before & 0xffffff) == (after & 0xffffff));
        CHECK(after >> 24 == (both.build.architecture < 90 ? entry.registers : before >> 24));
    });
}

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
