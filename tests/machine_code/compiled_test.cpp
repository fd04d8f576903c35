// The door in what nvcc makes of kernels.cu. What is expected is worked out here from the bytes.
#include "tests/machine_code/compiled.h"

#include "rewriter/machine_code/prologue_text.h"
#include "runtime/image/kernel_facts.h"

namespace smt::machine_code {
namespace {

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

}  // namespace
}  // namespace smt::machine_code
