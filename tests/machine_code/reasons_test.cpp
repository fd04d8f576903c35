// What the door is not put in front of, and why.
#include "tests/machine_code/cubins.h"

namespace smt::machine_code {
namespace {

// A cubin of one kernel that is changed in one place.
class Changed {
public:
    explicit Changed(const char* name = "sm_90") : bytes_(corpus_cubin(name)) {}

    template <typename T>
    Changed& put(uint64_t at, T value) {
        REQUIRE(at + sizeof value <= bytes_.size());
        std::memcpy(bytes_.data() + at, &value, sizeof value);
        return *this;
    }
    template <typename T>
    Changed& in(const std::string& section, uint64_t at, T value) {
        const image::ElfFile file = must_be(image::ElfFile::read(bytes_));
        return put(file.sections()[section_of(file, section)].sh_offset + at, value);
    }
    template <typename Change>
    Changed& header(const std::string& section, Change change) {
        const image::ElfFile file = must_be(image::ElfFile::read(bytes_));
        const uint32_t number = section_of(file, section);
        Elf64_Shdr header = file.sections()[number];
        change(header);
        return put(file.header().e_shoff + number * sizeof header, header);
    }
    // In the attributes of the kernel k; `at`: from the attribute's head.
    template <typename T>
    Changed& attribute(uint8_t kind, uint64_t at, T value) {
        const image::ElfFile file = must_be(image::ElfFile::read(bytes_));
        const std::string_view info = file.content(section_of(file, ".nv.info.k"));
        uint64_t place = 0;
        for (const Attribute& each : must_be(read_attributes(info))) {
            if (each.kind == kind) return in(".nv.info.k", place + at, value);
            place += 4 + each.bytes.size();
        }
        FAIL("no attribute " << int{kind});
        return *this;
    }
    // Of the table of symbols, the one of k.
    Changed& symbol_bytes(uint64_t size) {
        const image::ElfFile file = must_be(image::ElfFile::read(bytes_));
        const std::string_view table = file.content(section_of(file, ".symtab"));
        for (uint64_t at = 0; at < table.size(); at += sizeof(Elf64_Sym)) {
            Elf64_Sym symbol;
            std::memcpy(&symbol, table.data() + at, sizeof symbol);
            if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
                return in(".symtab", at + offsetof(Elf64_Sym, st_size), size);
        }
        FAIL("no symbol");
        return *this;
    }

    // Of the only entry, or of the cubin as a whole.
    std::string reason() const {
        Prologues prologues = corpus_prologues();
        const auto patched = patch(bytes_, prologues);
        if (std::string whole = problem_of(patched); !whole.empty()) return "whole: " + whole;
        const auto& result = std::get<Patched>(patched);
        REQUIRE(result.entries.size() == 1);
        CHECK(result.cubin.empty() == !result.entries[0].reason.empty());
        return result.entries[0].reason;
    }
    const std::string& bytes() const { return bytes_; }

private:
    std::string bytes_;
};

TEST_CASE("a cubin of ptxas is patched") {
    for (const char* name : {"sm_80", "sm_90", "sm_100", "no_parameters"}) {
        INFO(name);
        CHECK(Changed(name).reason() == "");
    }
}

TEST_CASE("cubins that are left alone as a whole") {
    CHECK(Changed("relocatable").reason() == "whole: the linker still has to lay it out");
    CHECK(Changed().put<unsigned char>(EI_ABIVERSION, 6).reason() ==
          "whole: its layout is that of ABI version 6");
    CHECK(Changed().put<unsigned char>(0, 'x').reason() == "whole: no cubin");
    const auto unnamed = [](Elf64_Shdr& header) { header.sh_type = SHT_NOTE; };
    CHECK(Changed().header(".symtab", unnamed).reason() ==
          "whole: a cubin without symbols or without .nv.info");
    CHECK(Changed().header(".nv.info", unnamed).reason() ==
          "whole: a cubin without symbols or without .nv.info");
    CHECK(Changed().header(".strtab", [](Elf64_Shdr& header) { header.sh_type = SHT_SYMTAB; }).reason() ==
          "whole: a cubin with two tables of symbols or two .nv.info");
    CHECK(Changed().header(".text.k", [](Elf64_Shdr& header) { header.sh_addralign = 3; }).reason() ==
          "whole: a section is aligned to 3");
}

TEST_CASE("entries whose parts are not as ptxas lays them out") {
    CHECK(Changed().symbol_bytes(128).reason() == "it does not fill its section of code");
    CHECK(Changed().header(".text.k", [](Elf64_Shdr& header) { header.sh_flags = SHF_ALLOC; }).reason() ==
          "its code stands in an unknown kind of section");
    CHECK(Changed().header(".nv.info.k", [](Elf64_Shdr& header) { header.sh_info = 1; }).reason() ==
          "it has no attributes");
    CHECK(Changed().header(".nv.constant0.k", [](Elf64_Shdr& header) { header.sh_info = 1; }).reason() ==
          "it has no constant bank");
    CHECK(Changed().header(".nv.constant0.k", [](Elf64_Shdr& header) { header.sh_size -= 4; }).reason() ==
          "its parameters do not fill its constant bank");
}

// The relocation of .debug_frame, taken for one of the code.
Changed with_relocation(uint64_t offset, uint64_t addend) {
    Changed changed;
    changed.header(".rela.debug_frame", [](Elf64_Shdr& header) { header.sh_info = 12; })
        .in(".rela.debug_frame", offsetof(Elf64_Rela, r_offset), offset)
        .in(".rela.debug_frame", offsetof(Elf64_Rela, r_addend), addend);
    return changed;
}

TEST_CASE("relocations of an entry's code") {
    CHECK(with_relocation(0, 16).reason() == "");
    CHECK(with_relocation(0x20, 0).reason() == "device code may launch it");
    CHECK(with_relocation(0x20, 1 << 20).reason() == "a relocation leads out of its code");
    CHECK(with_relocation(1 << 20, 16).reason() == "a relocation leads out of its code");
}

TEST_CASE("entries with attributes whose offsets are none, or that are unknown") {
    CHECK(Changed().attribute(kExitOffsets, 1, uint8_t{0xee}).reason() == "attribute 0xee is unknown");
    CHECK(Changed().attribute(kExitOffsets, 4, uint32_t{0}).reason() == "");
    CHECK(Changed().attribute(kExitOffsets, 4, uint32_t{0x40000}).reason() ==
          "attribute 0x1c leads out of its code");
    CHECK(Changed().attribute(kExitOffsets, 4, uint32_t{8}).reason() ==
          "attribute 0x1c leads out of its code");
    CHECK(Changed().attribute(kExitOffsets, 2, uint16_t{60000}).reason() == "attribute 0x1c is cut");
    CHECK(Changed().attribute(kExitOffsets, 0, uint8_t{9}).reason() ==
          "attribute 0x1c has the unknown form 9");
}

TEST_CASE("entries whose parameters are not described as a whole") {
    CHECK(Changed().attribute(kParameterBank, 1, uint8_t{0x36}).reason() ==
          "its parameters are described in part");
    CHECK(Changed().attribute(kParameterBank, 10, uint16_t{8}).reason() ==
          "its parameters do not fill its constant bank");
    CHECK(Changed().attribute(kParameterBank, 8, uint16_t{0x160}).reason() ==
          "its parameters do not fill its constant bank");
    CHECK(Changed().attribute(kParameterBytes, 2, uint16_t{32760}).reason() ==
          "it has no room for a parameter");
}

TEST_CASE("an entry's first instruction may be any, and be led to") {
    CHECK(Changed().in(".text.k", 0, uint64_t{0x0000000000007918}).reason() ==  // NOP
          "");
    CHECK(Changed().in(".text.k", 0, uint64_t{0x00000a00ff027b82}).reason() ==  // LDC R2
          "");
    // The branch to itself that closes the code, led to the begin: from 0xa0 by -0xb0 = -44 words.
    const uint64_t low = 0xfffffffc00007947 | uint64_t{0xd4} << 16;
    CHECK(Changed().in(".text.k", 0xa0, low).reason() == "");
}

TEST_CASE("an entry without the prologue's architecture") {
    Prologues none([](const std::string&, const std::string&) -> std::variant<std::string, Problem> {
        return Problem{"unknown architecture"};
    });
    const Patched patched = must_be(patch(corpus_cubin("sm_90"), none));
    REQUIRE(patched.entries.size() == 1);
    CHECK(patched.cubin.empty());
    CHECK(patched.entries[0].reason == "the prologue cannot be assembled: unknown architecture");
}

TEST_CASE("before CUDA 13 the count of barriers stands in the flags of a section") {
    Prologues prologues = corpus_prologues();
    const std::string before = corpus_cubin("abi_7");
    const Patched patched = must_be(patch(before, prologues));
    REQUIRE(patched.entries.size() == 4);
    const image::ElfFile old = must_be(image::ElfFile::read(before)),
                         now = must_be(image::ElfFile::read(patched.cubin));
    const auto flags = [](const image::ElfFile& file, const std::string& entry) {
        return file.sections()[section_of(file, ".text." + entry)].sh_flags;
    };
    constexpr uint64_t kOne = 1 << 20;
    CHECK(flags(old, "none") == 6);
    CHECK(flags(now, "none") == 6 + kOne);
    CHECK(flags(now, "one") == flags(old, "one"));
    CHECK(flags(now, "five") == 6 + 5 * kOne);
    for (const PatchedEntry& entry : patched.entries) {
        CHECK(entry.reason == "");
        const auto info = now.content(section_of(now, ".nv.info." + entry.name));
        CHECK_FALSE(find(must_be(read_attributes(info)), kBarriers));
    }
}

TEST_CASE("an entry that is to be left alone is") {
    const auto leave = [](std::string_view name) -> std::string_view { return name == "k" ? "it is k" : ""; };
    Prologues prologues = corpus_prologues();
    const Patched patched = must_be(patch(corpus_cubin("sm_90"), prologues, leave));
    CHECK(patched.entries.at(0).reason == "it is k");
    CHECK(patched.cubin.empty());
}

TEST_CASE("what has a door gets no second one") {
    Prologues prologues = corpus_prologues();
    const Patched once = must_be(patch(corpus_cubin("sm_90"), prologues));
    const Patched twice = must_be(patch(once.cubin, prologues));
    CHECK(twice.cubin.empty());
    CHECK(twice.entries.at(0).reason == "it has a door");
}

TEST_CASE("a cubin that is cut anywhere is a problem or left alone") {
    for (const char* name : {"sm_80", "sm_90", "relocations"}) {
        const std::string whole = corpus_cubin(name);
        Prologues prologues = corpus_prologues();
        for (size_t size = 0; size < whole.size(); ++size) {
            const auto patched = patch(std::string_view(whole).substr(0, size), prologues);
            if (auto* problem = std::get_if<Problem>(&patched)) {
                if (problem->text.empty()) FAIL("no words at " << size);
            } else {
                FAIL("patched at " << size);
            }
        }
    }
}

}  // namespace
}  // namespace smt::machine_code
