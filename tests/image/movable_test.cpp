// Which variables of a cubin can stand elsewhere, and what of the rest code refers to.
#include "runtime/image/movable.h"

#include <elf.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace smt::image {
namespace movable_test {  // whose names others have, too

enum Part : uint16_t {
    kNull,
    kSectionNames,
    kNames,
    kSymbols,
    kInit,
    kZero,
    kConstants,
    kTable,
    kTableRelocations,
    kCode,
    kCodeRelocations,
    kInitRelocations,
    kParts
};

constexpr uint32_t kTableName = 36;  // among the names
constexpr unsigned kAddress = 2, kLow = 0x38, kHigh = 0x39, kGeneric = 4;
enum Symbol : uint32_t { kNone, kCounter, kBig, kPointer, kWeights, kKernel, kInitSection };

template <typename T>
void put(std::string& to, const T& value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string relocation(uint64_t at, Symbol symbol, unsigned type, int64_t addend = 0) {
    std::string bytes;
    put(bytes, Elf64_Rela{at, ELF64_R_INFO(symbol, type), addend});
    return bytes;
}

// counter (first value 5) and pointer in .nv.global.init, big in .nv.global, weights in .nv.constant3. The
// table of addresses, .nv.constant4, has two places.
struct MovableCubin {
    std::vector<Elf64_Sym> symbols;
    std::string table, code, init;  // relocations
    std::array<uint64_t, 4> instructions{};
    unsigned architecture = 90;

    MovableCubin() {
        const auto object = [](uint32_t name, Part section, uint64_t value, uint64_t bytes) {
            return Elf64_Sym{name, ELF64_ST_INFO(STB_LOCAL, STT_OBJECT), 0, section, value, bytes};
        };
        symbols = {{},
                   object(1, kInit, 0, 4),
                   object(9, kZero, 8, 4000),
                   object(13, kInit, 8, 8),
                   object(21, kConstants, 0, 64),
                   {29, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, kCode, 0, 32},
                   {0, ELF64_ST_INFO(STB_LOCAL, STT_SECTION), 0, kInit, 0, 0}};
        table = relocation(0, kCounter, kAddress) + relocation(8, kBig, kAddress, 12);
        code = relocation(0, kCounter, kLow) + relocation(16, kCounter, kHigh);
    }

    std::string bytes() const {
        const std::string names("\0counter\0big\0pointer\0weights\0kernel\0__cudart_t\0", 47);
        std::string text(sizeof(Elf64_Ehdr), '\0'), section_names(1, '\0'), list;
        Elf64_Shdr sections[kParts] = {};
        const auto add = [&](Part part, const char* name, uint32_t type, uint64_t flags,
                             const std::string& what, uint32_t link = 0, uint32_t info = 0,
                             uint64_t size = 0) {
            sections[part] = {static_cast<uint32_t>(section_names.size()),
                              type,
                              flags,
                              0,
                              text.size(),
                              size ? size : what.size(),
                              link,
                              info,
                              8,
                              0};
            section_names.append(name).push_back('\0');
            text += what;
        };
        for (const Elf64_Sym& each : symbols) put(list, each);
        std::string first(16, '\0');
        first[0] = 5;
        add(kNames, ".strtab", SHT_STRTAB, 0, names);
        add(kSymbols, ".symtab", SHT_SYMTAB, 0, list, kNames);
        add(kInit, ".nv.global.init", SHT_PROGBITS, SHF_ALLOC, first);
        add(kZero, ".nv.global", SHT_NOBITS, SHF_ALLOC, "", 0, 0, 4008);
        add(kConstants, ".nv.constant3", SHT_PROGBITS, SHF_ALLOC, std::string(64, '\0'));
        add(kTable, ".nv.constant4", SHT_PROGBITS, SHF_ALLOC, std::string(16, '\0'));
        add(kTableRelocations, ".rela.nv.constant4", SHT_RELA, 0, table, kSymbols, kTable);
        std::string text_bytes;
        put(text_bytes, instructions);
        add(kCode, ".text.kernel", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, text_bytes);
        add(kCodeRelocations, ".rela.text.kernel", SHT_RELA, 0, code, kSymbols, kCode);
        add(kInitRelocations, ".rela.nv.global.init", SHT_RELA, 0, init, kSymbols, kInit);
        add(kSectionNames, ".shstrtab", SHT_STRTAB, 0, "");
        sections[kSectionNames].sh_size = section_names.size();
        text += section_names;
        Elf64_Ehdr header{};
        std::memcpy(header.e_ident, ELFMAG, SELFMAG);
        header.e_ident[EI_CLASS] = ELFCLASS64;
        header.e_ident[EI_DATA] = ELFDATA2LSB;
        header.e_machine = 190;
        header.e_flags = architecture;
        header.e_shentsize = sizeof(Elf64_Shdr);
        header.e_shnum = kParts;
        header.e_shstrndx = kSectionNames;
        header.e_shoff = text.size();
        std::memcpy(text.data(), &header, sizeof header);
        for (const Elf64_Shdr& section : sections) put(text, section);
        return text;
    }
    MovablePlan plan() const { return movable_plan(bytes()); }
    std::string moved() const {
        std::string all;
        for (const auto& [name, variable] : plan().plan.variables) all += name + " ";
        return all;
    }
};

TEST_CASE("movable: variables stand by name, and code gets their addresses", "[movable]") {
    const MovableCubin cubin;
    const MovablePlan found = cubin.plan();
    CHECK(found.stays.empty());
    const ManagedPlan& plan = found.plan;
    CHECK(plan.fits(cubin.bytes().size()));
    CHECK(cubin.moved() == "big counter pointer ");
    CHECK((plan.variables.at("big").offset == 256 && plan.variables.at("big").bytes == 4000));
    CHECK((plan.variables.at("counter").offset == 4352 && plan.variables.at("pointer").offset == 4608));
    CHECK(plan.bytes == 4864);
    REQUIRE(plan.initials.size() == 2);  // big begins with zeros
    CHECK((plan.initials[0].offset == 4352 && cubin.bytes()[plan.initials[0].at] == 5));
    REQUIRE(plan.fixups.size() == 4);
    CHECK((plan.fixups[0].value == 4352 && plan.fixups[0].kind == ManagedPlan::Kind::kWhole));
    CHECK((plan.fixups[1].value == 256 + 12 && plan.fixups[1].at == plan.fixups[0].at + 8));
    CHECK((plan.fixups[2].value == 4352 && plan.fixups[2].kind == ManagedPlan::Kind::kLow));
    CHECK((plan.fixups[3].kind == ManagedPlan::Kind::kHigh && plan.fixups[3].at == plan.fixups[2].at + 16));
    REQUIRE(plan.trimmed.size() == 2);
    CHECK(plan.trimmed[0].dropped == std::vector<bool>{true, true});
}

TEST_CASE("movable: what has an address as its first value stays, and what points to it may be moved",
          "[movable]") {
    MovableCubin cubin;
    cubin.init = relocation(8, kCounter, kAddress);
    CHECK(cubin.moved() == "big counter ");
    CHECK(cubin.plan().stays.empty());  // code does not name it
    cubin.code += relocation(16, kPointer, kLow);
    CHECK(cubin.plan().stays == "pointer, which cannot be moved");
    // A kind of relocation for the driver alone: then neither of the two.
    cubin.init = relocation(8, kCounter, kGeneric);
    CHECK(cubin.moved() == "big ");
    CHECK(!cubin.plan().stays.empty());
    // Between two variables, it changes both.
    cubin = {};
    cubin.init = relocation(2, kKernel, kAddress);
    CHECK(cubin.moved() == "big ");
}

TEST_CASE("movable: addresses that are reached in other ways stay", "[movable]") {
    MovableCubin cubin;
    cubin.code += relocation(0, kBig, 0x11);
    CHECK(cubin.moved() == "counter pointer ");
    CHECK(cubin.plan().stays == "big, which cannot be moved");
    cubin = {};
    cubin.table += relocation(8, kInitSection, kAddress);
    CHECK(cubin.moved() == "big ");
    CHECK(!cubin.plan().stays.empty());
    cubin = {};
    cubin.table += relocation(8, kWeights, kAddress);
    CHECK(cubin.plan().stays == kConstantTaken);
    cubin = {};
    CHECK(cubin.plan().constants == std::vector<std::string>{"weights"});
    cubin = {};
    cubin.symbols[kPointer].st_value = 2;  // it shares bytes with counter
    CHECK(cubin.moved() == "big ");
    cubin = {};
    cubin.symbols[kPointer].st_name = cubin.symbols[kCounter].st_name;
    CHECK(cubin.moved() == "big ");
    cubin = {};
    cubin.symbols[kBig].st_size = 4004;  // beyond its section
    CHECK(cubin.moved() == "counter pointer ");
    CHECK(!cubin.plan().stays.empty());
    cubin = {};
    cubin.symbols[kBig].st_other = 4;  // managed: of another plan
    CHECK(cubin.moved() == "counter pointer ");
    CHECK(!cubin.plan().stays.empty());
    CHECK(!movable_plan("no cubin").stays.empty());
}

TEST_CASE("movable: code that takes a constant's address is found in each architecture", "[movable]") {
    // LDC.64 R2, c[0x0][0xd0]; ULDC.64 UR4, c[0x0][0x50]; SEL R3, R0, c[0x0][0x54]; LDCU.64 UR4,
    // c[0x0][0x120]
    constexpr uint64_t kHopper = 0x00003400ff027b82, kTuring = 0x0000140000047ab9,
                       kHigherHalf = 0x0000150000037a07, kBlackwell = 0x00002400ff0477ac;
    MovableCubin cubin;
    for (const auto& [architecture, instruction] :
         {std::pair(90u, kHopper), std::pair(75u, kTuring), std::pair(89u, kHigherHalf),
          std::pair(100u, kBlackwell)}) {
        cubin.architecture = architecture;
        cubin.instructions = {0, 0, instruction, 0};
        CHECK(cubin.plan().stays == kConstantTaken);
        cubin.instructions = {instruction | uint64_t{3} << 54, 0, 0, instruction};  // c[0x3]; no beginning
        CHECK(cubin.plan().stays.empty());
    }
    cubin.architecture = 90;
    cubin.instructions = {0x00000a00ff017b82, 0, 0x0000003404007981, 0};  // c[0x0][0x28]; LDG R0, [R4+0x34]
    CHECK(cubin.plan().stays.empty());
    cubin.instructions[2] = kTuring;
    CHECK(cubin.plan().stays.empty());
    cubin.architecture = 130;
    CHECK(cubin.plan().stays == kConstantsUnread);
    cubin.symbols[kWeights].st_shndx = kCode;  // a bank without symbols: code can name it all the same
    CHECK(cubin.plan().stays == kConstantsUnread);
}

TEST_CASE("movable: NVIDIA's tables are left alone, or are variables like others", "[movable]") {
    MovableCubin cubin;
    cubin.symbols[kBig].st_name = kTableName;
    CHECK(cubin.moved() == "counter pointer ");
    CHECK(cubin.plan().stays.empty());
    const MovablePlan found = movable_plan(cubin.bytes(), true);
    CHECK(found.stays.empty());
    CHECK((found.plan.variables.size() == 3 && found.plan.variables.contains("__cudart_t")));
    CHECK(found.plan.fixups.size() == 4);
    cubin.code += relocation(0, kBig, 0x11);
    CHECK(cubin.plan().stays.empty());
    CHECK(movable_plan(cubin.bytes(), true).stays == "__cudart_t, which cannot be moved");
    // Those in a bank, which code reads by its number, are never moved.
    cubin = {};
    cubin.symbols[kWeights].st_name = kTableName;
    cubin.table += relocation(8, kWeights, kAddress);
    CHECK((movable_plan(cubin.bytes(), true).stays.empty() && cubin.plan().constants.empty()));
}

TEST_CASE("movable: a damaged cubin has a plan that fits it, or none", "[movable]") {
    MovableCubin cubin;
    cubin.init = relocation(8, kCounter, kAddress);
    const std::string whole = cubin.bytes();
    std::mt19937 random(7);
    for (int i = 0; i < 20000; ++i) {
        std::string bytes = whole;
        for (unsigned n = 1 + random() % 3; n > 0; --n)
            bytes[random() % bytes.size()] = static_cast<char>(random() % 3 ? random() : 0xff);
        if (random() % 8 == 0) bytes.resize(random() % bytes.size());
        const MovablePlan found = movable_plan(bytes);
        REQUIRE(found.plan.fits(bytes.size()));
    }
}

}  // namespace movable_test
}  // namespace smt::image
