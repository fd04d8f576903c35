#include "runtime/server/code/managed_variables.h"

#include <elf.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <random>

namespace smt::runtime::server {
namespace {

using image::ManagedPlan;

constexpr uint32_t kArchitecture = 90;

template <typename T>
void append(std::vector<char>& to, const T& value) {
    const char* bytes = reinterpret_cast<const char*>(&value);
    to.insert(to.end(), bytes, bytes + sizeof value);
}

template <typename T>
T value_at(const std::vector<char>& from, uint64_t at) {
    T value;
    std::memcpy(&value, from.data() + at, sizeof value);
    return value;
}

// A cubin with two variables, "counter" (managed, first value 5) and "plain"; a constant bank with the
// addresses of both, and code with the managed one's address in two instructions.
enum Section { kNone, kNames, kSymbols, kInit, kBank, kBankRelocations, kCode, kCodeRelocations, kSections };

struct Cubin {
    std::vector<char> bytes;
    Elf64_Shdr sections[kSections] = {};

    void add(Section section, uint32_t type, uint64_t flags, const std::vector<char>& content,
             uint32_t link = 0, uint32_t info = 0) {
        sections[section].sh_type = type;
        sections[section].sh_flags = flags;
        sections[section].sh_offset = bytes.size();
        sections[section].sh_size = content.size();
        sections[section].sh_link = link;
        sections[section].sh_info = info;
        bytes.insert(bytes.end(), content.begin(), content.end());
    }
    uint64_t at(Section section) const { return sections[section].sh_offset; }
};

std::vector<char> relocations(std::initializer_list<Elf64_Rela> entries) {
    std::vector<char> bytes;
    for (const Elf64_Rela& entry : entries) append(bytes, entry);
    return bytes;
}

std::vector<char> symbols() {
    const unsigned char object = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT);
    std::vector<char> bytes;
    append(bytes, Elf64_Sym{});
    append(bytes, Elf64_Sym{1, object, 4, kInit, 0, 4});  // counter
    append(bytes, Elf64_Sym{9, object, 0, kInit, 8, 4});  // plain
    return bytes;
}

Cubin cubin(uint32_t code_type = 0x38) {
    Cubin made;
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_machine = 190;
    header.e_flags = kArchitecture;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = kSections;
    append(made.bytes, header);
    const std::string names("\0counter\0plain\0", 15);
    made.add(kNames, SHT_STRTAB, 0, {names.begin(), names.end()});
    made.add(kSymbols, SHT_SYMTAB, 0, symbols(), kNames);
    made.add(kInit, SHT_PROGBITS, SHF_ALLOC, {5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0});
    made.add(kBank, SHT_PROGBITS, SHF_ALLOC, std::vector<char>(16));
    made.add(kBankRelocations, SHT_RELA, 0,
             relocations({{0, ELF64_R_INFO(2, 2), 0}, {8, ELF64_R_INFO(1, 2), 2}}), kSymbols, kBank);
    made.add(kCode, SHT_PROGBITS, SHF_ALLOC, std::vector<char>(32));
    made.add(kCodeRelocations, SHT_RELA, 0,
             relocations({{0, ELF64_R_INFO(1, code_type), 0}, {16, ELF64_R_INFO(1, 0x39), 0}}), kSymbols,
             kCode);
    header.e_shoff = made.bytes.size();
    std::memcpy(made.bytes.data(), &header, sizeof header);
    for (const Elf64_Shdr& section : made.sections) append(made.bytes, section);
    return made;
}

ManagedPlan plan_of(const std::vector<char>& cubin) {
    return image::managed_plan({cubin.data(), cubin.size()});
}

TEST_CASE("a managed variable's address goes where the code looks for it", "[managed]") {
    Cubin image = cubin();
    ManagedVariables managed(plan_of(image.bytes));
    REQUIRE(managed.bytes());
    std::vector<char> memory(managed.bytes());
    const uint64_t address = reinterpret_cast<uint64_t>(memory.data());
    uint64_t place = 0, bytes = 0;
    CHECK_FALSE(managed.look_up("counter", &place, &bytes));
    managed.place(image.bytes, address);
    REQUIRE(managed.look_up("counter", &place, &bytes));
    CHECK((place == address && bytes == 4 && value_at<int>(memory, 0) == 5));
    CHECK_FALSE(managed.look_up("plain", &place, &bytes));

    CHECK(value_at<uint64_t>(image.bytes, image.at(kBank)) == 0);
    CHECK(value_at<uint64_t>(image.bytes, image.at(kBank) + 8) == address + 2);
    CHECK(value_at<uint32_t>(image.bytes, image.at(kCode) + 4) == static_cast<uint32_t>(address));
    CHECK(value_at<uint32_t>(image.bytes, image.at(kCode) + 20) == static_cast<uint32_t>(address >> 32));

    // The plain variable's relocation is all that is left.
    const uint64_t headers = image.bytes.size() - sizeof image.sections;
    auto left = [&](Section section) {
        return value_at<Elf64_Shdr>(image.bytes, headers + section * sizeof(Elf64_Shdr)).sh_size;
    };
    CHECK((left(kBankRelocations) == sizeof(Elf64_Rela) && left(kCodeRelocations) == 0));
    CHECK(value_at<Elf64_Rela>(image.bytes, image.at(kBankRelocations)).r_info == ELF64_R_INFO(2, 2));
}

TEST_CASE("what cannot be redirected is left alone", "[managed]") {
    CHECK(plan_of(cubin(0x20).bytes).bytes == 0);  // a relocation of another kind
    CHECK(plan_of({'t', 'e', 'x', 't'}).bytes == 0);
}

TEST_CASE("a plan keeps to its cubin and its block", "[managed]") {
    const Cubin image = cubin();
    const ManagedPlan plan = plan_of(image.bytes);
    CHECK(plan.fits(image.bytes.size()));
    CHECK_FALSE(plan.fits(image.at(kCode)));
    ManagedPlan changed = plan;
    changed.bytes = 2;
    CHECK_FALSE(changed.fits(image.bytes.size()));
}

TEST_CASE("broken cubins are refused or survived", "[managed]") {
    std::mt19937 random(5);
    const std::vector<char> whole = cubin().bytes;
    for (int round = 0; round < 20000; ++round) {
        std::vector<char> broken = whole;
        for (int i = 0; i < 4; ++i) broken[random() % broken.size()] = static_cast<char>(random());
        broken.resize(random() % 8 ? broken.size() : random() % broken.size());
        ManagedPlan plan = plan_of(broken);
        REQUIRE(plan.fits(broken.size()));
        if (plan.bytes > 1u << 20) continue;
        std::vector<char> memory(plan.bytes);
        ManagedVariables(std::move(plan)).place(broken, reinterpret_cast<uint64_t>(memory.data()));
    }
}

}  // namespace
}  // namespace smt::runtime::server
