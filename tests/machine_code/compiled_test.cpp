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

constexpr uint64_t kStep = 16;  // bytes of an instruction

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
constexpr unsigned kBra = 0x147, kExit = 0x14d;

// The target of the BRA at `offset`, which all threads take.
uint64_t target(std::string_view code, uint64_t offset, int architecture) {
    const Halves branch = at(code, offset);
    REQUIRE((branch.low & 0x1ff) == kBra);
    REQUIRE((branch.low >> 12 & 15) == 7);
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

TEST_CASE("an entry begins with a branch to what is appended, and comes back to its second instruction") {
    for_entries([](const Both& both, const PatchedEntry& entry) {
        const std::string_view before = both.before.content(".text." + entry.name);
        const std::string_view after = both.after.content(".text." + entry.name);
        REQUIRE(after.size() > before.size());
        CHECK(after.size() % 128 == 0);
        CHECK(target(after, 0, both.build.architecture) == before.size());
        CHECK(after.substr(kStep, before.size() - kStep) == before.substr(kStep));
        // The way back: the only branch for all threads that leads into the old code. Before it, the
        // displaced instruction, with the same work and waiting for all six scoreboards.
        uint64_t back = 0;
        for (uint64_t i = before.size(); i < after.size(); i += kStep) {
            if (operation_at(after, i) != kBra || (at(after, i).low >> 12 & 15) != 7) continue;
            const uint64_t to = target(after, i, both.build.architecture);
            if (to >= before.size()) continue;
            CHECK(back == 0);
            CHECK(to == kStep);
            back = i;
        }
        REQUIRE(back > before.size());
        const Halves first = at(before, 0), displaced = at(after, back - kStep);
        CHECK(displaced.low == first.low);
        CHECK(displaced.high == (first.high | 0x3full << 52));
        // Behind it, nothing that a CTA could run into.
        for (uint64_t i = back + kStep; i < after.size(); i += kStep)
            CHECK(target(after, i, both.build.architecture) == i);
    });
}

TEST_CASE("offsets of instructions stay, and the prologue's are added") {
    std::set<uint8_t> seen;
    for_entries([&](const Both& both, const PatchedEntry& entry) {
        const uint64_t size = old_size(both, entry.name);
        const std::string_view code = both.after.content(".text." + entry.name);
        for (const uint8_t kind : {kExitOffsets, kCooperativeOffsets, kWarpWideOffsets, kIndirectBranches,
                                   kMbarrierOffsets, kSyscallOffsets}) {
            const auto before = both.before.words(entry.name, kind),
                       after = both.after.words(entry.name, kind);
            if (!before.empty()) seen.insert(kind);
            REQUIRE(after.size() >= before.size());
            CHECK(std::equal(before.begin(), before.end(), after.begin()));
            if (kind != kExitOffsets && kind != kWarpWideOffsets) CHECK(after.size() == before.size());
            for (size_t i = before.size(); i < after.size(); ++i) {
                CHECK(after[i] % kStep == 0);
                CHECK(after[i] > size);
                CHECK(after[i] < code.size());
                if (kind == kExitOffsets) CHECK(operation_at(code, after[i]) == kExit);
            }
        }
        // Every exit of the prologue is named.
        size_t exits = 0;
        for (uint64_t i = size; i < code.size(); i += kStep) exits += operation_at(code, i) == kExit;
        CHECK(both.after.words(entry.name, kExitOffsets).size() ==
              both.before.words(entry.name, kExitOffsets).size() + exits);
    });
    CHECK(seen == std::set<uint8_t>{kExitOffsets, kCooperativeOffsets, kWarpWideOffsets, kIndirectBranches,
                                    kMbarrierOffsets, kSyscallOffsets});
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

TEST_CASE("symbols are as before, but for the entries' sizes") {
    for (const auto& both : all_builds()) {
        const std::string_view before = both->before.content(".symtab"),
                               after = both->after.content(".symtab");
        REQUIRE(before.size() == after.size());
        size_t changed = 0;
        for (size_t i = 0; i < before.size(); i += sizeof(Elf64_Sym)) {
            Elf64_Sym old, now;
            std::memcpy(&old, before.data() + i, sizeof old);
            std::memcpy(&now, after.data() + i, sizeof now);
            if (old.st_size != now.st_size) {
                ++changed;
                CHECK(now.st_size == both->after.file.sections()[now.st_shndx].sh_size);
                CHECK((old.st_other & 0x10) != 0);
            }
            old.st_size = now.st_size;
            CHECK(std::memcmp(&old, &now, sizeof old) == 0);
        }
        CHECK(changed == both->entries.size() - (both->build.architecture == 80));
    }
}

TEST_CASE("all other sections stay: debug information, lines, relocations, constants") {
    for (const auto& both : all_builds()) {
        INFO(both->build.name);
        std::set<std::string> touched{".symtab", ".nv.info"};
        for (const PatchedEntry& entry : both->entries)
            for (const char* prefix : {".text.", ".nv.info.", ".nv.constant0."})
                touched.insert(prefix + entry.name);
        CHECK(both->before.sections == both->after.sections);
        std::set<std::string> kept;
        for (const auto& [name, number] : both->before.sections) {
            if (touched.contains(name)) continue;
            INFO(name);
            CHECK(both->before.file.content(number) == both->after.file.content(number));
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
}

}  // namespace
}  // namespace smt::machine_code
