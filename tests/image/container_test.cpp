// Files that hold images, and what is said of their kernels.
#include "runtime/image/container.h"

#include <elf.h>
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "runtime/image/survey.h"
#include "tests/image/made.h"

namespace smt::image {
namespace {

struct MadeSection {
    std::string name;
    std::string content;
    uint64_t address = 0;
};

std::string host_file(uint16_t type, const std::vector<MadeSection>& made) {
    std::string names("\0", 1), contents;
    std::vector<Elf64_Shdr> sections(1);
    std::vector<MadeSection> all = made;
    all.push_back({".shstrtab", "", 0});
    for (const MadeSection& each : all) {
        contents.resize((contents.size() + 7) / 8 * 8);
        Elf64_Shdr section{};
        section.sh_name = static_cast<uint32_t>(names.size());
        section.sh_type = SHT_PROGBITS;
        section.sh_addr = each.address;
        section.sh_offset = sizeof(Elf64_Ehdr) + contents.size();
        names += each.name + '\0';
        section.sh_size = each.name == ".shstrtab" ? names.size() : each.content.size();
        contents += each.name == ".shstrtab" ? names : each.content;
        sections.push_back(section);
    }
    contents.resize((contents.size() + 7) / 8 * 8);
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = type;
    header.e_machine = EM_X86_64;
    header.e_shoff = sizeof header + contents.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<uint16_t>(sections.size());
    header.e_shstrndx = static_cast<uint16_t>(sections.size() - 1);
    std::string file(reinterpret_cast<const char*>(&header), sizeof header);
    return file + contents +
           std::string(reinterpret_cast<const char*>(sections.data()), sections.size() * sizeof(Elf64_Shdr));
}

std::string member(const std::string& name, const std::string& bytes) {
    std::string padded = bytes.size() % 2 ? bytes + '\n' : bytes;
    return fmt::format("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", name, 0, 0, 0, 644, bytes.size()) + padded;
}

std::string wrapper(uint32_t version, uint64_t address) {
    std::string bytes;
    append<uint32_t>(bytes, 0x466243b1);
    append<uint32_t>(bytes, version);
    append<uint64_t>(bytes, address);
    append<uint64_t>(bytes, 0);
    return bytes;
}

const std::string kText =
    ".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p) { ret; }\n";
const std::string kOther =
    ".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry other() { ret; }\n";

std::string with_text(const std::string& text) { return fatbin({{1, 75, 0, text}}); }
std::string with_cubin() { return fatbin({{2, 75, 0, small_cubin()}}); }

// "registered 64+88 linked | relocatable ... " of each image, or the problem
std::string found_in(const std::string& file) {
    auto container = find_images(file);
    if (auto* problem = std::get_if<Problem>(&container)) return problem->text;
    std::string text = name(std::get<Container>(container).kind);
    for (const Found& found : std::get<Container>(container).images) {
        const char* place = found.place == Place::kItself       ? "itself"
                            : found.place == Place::kRegistered ? "registered"
                                                                : "relocatable";
        CHECK(file.substr(found.offset, found.bytes.size()) == found.bytes);
        text += fmt::format(" | {} {}{}{}{}", place, found.bytes.size(), found.linked ? " linked" : "",
                            found.member.empty() ? "" : " of ", found.member);
    }
    return text;
}

TEST_CASE("images are found wherever a file has them", "[image]") {
    const std::string a = with_text(kText), b = with_text(kOther);
    CHECK(found_in(a) == fmt::format("a fatbin | itself {}", a.size()));
    CHECK(found_in(a + b) == fmt::format("a fatbin | itself {} | itself {}", a.size(), b.size()));
    CHECK(found_in(kText) == fmt::format("a PTX text | itself {}", kText.size()));
    CHECK(found_in(small_cubin()) == "a cubin | itself 2856");
    const std::string zeros(16, '\0');
    CHECK(found_in(host_file(ET_DYN, {{".text", "code"}, {".nv_fatbin", a + zeros + b + zeros}})) ==
          fmt::format("a shared library | registered {} | registered {}", a.size(), b.size()));
    CHECK(found_in(host_file(ET_REL, {{"__nv_relfatbin", a}})) ==
          fmt::format("an object | relocatable {}", a.size()));
    CHECK(found_in(host_file(ET_DYN, {{".interp", "x"}, {"__nv_relfatbin", a}, {".nv_fatbin", b}})) ==
          fmt::format("a program | relocatable {} | registered {}", a.size(), b.size()));
}

TEST_CASE("what nvcc linked is told by its wrapper", "[image]") {
    const std::string a = with_text(kText), b = with_text(kOther);
    const std::string file =
        host_file(ET_EXEC, {{".nv_fatbin", a + b, 0x1000},
                            {".nvFatBinSegment", wrapper(1, 0x1000) + wrapper(2, 0x1000 + a.size())}});
    CHECK(found_in(file) ==
          fmt::format("a program | registered {} | registered {} linked", a.size(), b.size()));
}

TEST_CASE("members of static libraries", "[image]") {
    const std::string object = host_file(ET_REL, {{".nv_fatbin", with_text(kText)}});
    const std::string longer = "a_name_of_more_than_sixteen.o/\n";
    const std::string file = "!<arch>\n" + member("/", "symbols") + member("//", longer) +
                             member("short.o/", object) + member("text.o/", "no object") +
                             member("/0", object);
    const size_t bytes = with_text(kText).size();
    CHECK(found_in(file) == fmt::format("a static library | registered {} of short.o | registered {} of "
                                        "a_name_of_more_than_sixteen.o",
                                        bytes, bytes));
    CHECK(found_in(file.substr(0, file.size() - 9))
              .starts_with("a static library that cannot be read: the member at"));
    CHECK(found_in("!<arch>\n" + std::string(60, 'x')) ==
          "a static library that cannot be read: at 8 there should be the header of a member, which there is "
          "not");
    CHECK(found_in("!<thin>\n") == "a thin archive, whose members are files of their own: name one of those");
}

TEST_CASE("files without images say what they are", "[image]") {
    CHECK(found_in("") == "an empty file");
    CHECK(found_in("hello") == "no program, library, object, fatbin, cubin or PTX text");
    CHECK(
        found_in(host_file(ET_DYN, {{".text", "x"}})).starts_with("a shared library without device code: "));
    CHECK(found_in("!<arch>\n").starts_with("a static library without device code: "));
    std::string file = host_file(ET_DYN, {{".nv_fatbin", with_text(kText).substr(8)}});
    CHECK(found_in(file) ==
          "a program, library or object that cannot be read: in section .nv_fatbin: at 64 there "
          "should be a fatbin, which there is not, or not all of it");
    file = host_file(ET_DYN, {{".nv_fatbin", with_text(kText)}});
    CHECK(found_in(file.substr(0, file.size() - 64))
              .starts_with("a program, library or object that cannot be read: an "
                           "ELF file that is cut: of 3 section headers it has 2"));
    file[EI_CLASS] = ELFCLASS32;
    CHECK(found_in(file).ends_with("an ELF file that is not of 64 bits, little-endian"));
}

TEST_CASE("an image is checked before it is trusted", "[image]") {
    auto problem = [](const std::string& image) {
        auto found = check(image);
        return found ? found->text : "";
    };
    const std::string cubin = small_cubin();
    CHECK(problem(cubin) == "");
    CHECK(problem(with_cubin()) == "");
    CHECK(problem(fatbin({})) == "");  // the driver has an error for it
    CHECK(problem("FAKE\n") == "");
    CHECK(problem(cubin.substr(0, 2000)) == "an ELF file that is cut: of 14 section headers it has 3");
    CHECK(problem(fatbin({{2, 75, 0, cubin.substr(0, 2000)}})) == problem(cubin.substr(0, 2000)));
    std::string other = with_cubin();
    other.resize(other.size() - 8);
    CHECK(problem(other).starts_with("a fatbin of "));
    Elf64_Ehdr header;
    std::memcpy(&header, cubin.data(), sizeof header);
    other = cubin;
    const uint64_t far = cubin.size();
    std::memcpy(&other[header.e_shoff + sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_offset)], &far,
                sizeof far);
    CHECK(problem(other).starts_with("an ELF file of 2856 bytes whose section 1 ends at "));
}

// "k: has PTX (PTX for compute_75)" of each kernel
std::string judged(const std::string& file, int architecture, const Judge& judge = {}) {
    auto survey = survey_file(file, {architecture}, judge);
    std::string text;
    for (const SurveyedKernel& kernel : std::get<Survey>(survey).kernels)
        text += fmt::format("{}{}: {} ({})", text.empty() ? "" : "; ", kernel.facts.name,
                            name(kernel.verdict.management), kernel.verdict.reason);
    return text;
}

TEST_CASE("how a kernel can be managed, and why", "[image]") {
    const std::string cubin = small_cubin();
    CHECK(judged(cubin, 75) == "k: unmanaged (machine code alone)");
    CHECK(judged(cubin, 90) == "");  // nothing runs there
    CHECK(judged(kText, 90) == "k: has PTX (PTX for compute_75)");
    CHECK(judged(fatbin({{2, 75, 0, cubin}, {1, 75, 0, kText}}), 75) == "k: has PTX (PTX for compute_75)");
    CHECK(judged(fatbin({{2, 75, 0, cubin}, {1, 80, 0, kText}, {1, 90, 0, kText}}), 75) ==
          "k: unmanaged (machine code alone: its PTX is for other devices (compute_80, compute_90))");
    CHECK(judged(fatbin({{2, 75, 0, cubin}, {1, 75, 0, kOther}}), 75) ==
          "k: unmanaged (machine code alone: the image's PTX does not define it)");
    CHECK(judged(fatbin({{2, 75, 0, cubin}, {8, 75, 0, "else"}}), 75) ==
          "k: unmanaged (machine code alone: beside it is link-time code, which only NVIDIA's linker reads)");
    CHECK(judged(fatbin({{2, 75, 0, cubin}, {1, 75, 0, ".version 9.0 .target sm_75 {"}}), 75)
              .starts_with("k: unmanaged (its PTX cannot be read: line 1"));
}

TEST_CASE("the PTX of linked code stands unregistered beside it", "[image]") {
    const std::string linked = host_file(
        ET_EXEC, {{"__nv_relfatbin", with_text(kText) + with_text(kOther)}, {".nv_fatbin", with_cubin()}});
    CHECK(judged(linked, 75) == "k: has PTX (PTX for compute_75, in __nv_relfatbin: 2 texts to be linked)");
    CHECK(judged(host_file(ET_REL, {{"__nv_relfatbin", with_text(kText)}}), 75) ==
          "k: has PTX (PTX for compute_75, relocatable: before a program has it, it is linked)");
    // What is loaded is the image that was linked, without the texts.
    std::string asked;
    const Judge judge = [&](std::string_view image) -> ImageVerdict {
        asked += image;
        return
            [](const std::string&) { return Verdict{Management::kUnmanaged, "it holds machine code only"}; };
    };
    CHECK(judged(linked, 75, judge) ==
          "k: unmanaged (PTX for compute_75, in __nv_relfatbin: 2 texts to be linked, but it holds machine "
          "code only)");
    CHECK(asked == with_cubin());
}

TEST_CASE("linked code of which not all has PTX", "[image]") {
    auto linked = [&](const std::string& from) {
        return judged(host_file(ET_EXEC, {{"__nv_relfatbin", from},
                                          {".nv_fatbin", with_cubin(), 0x1000},
                                          {".nvFatBinSegment", wrapper(2, 0x1000)}}),
                      75);
    };
    CHECK(linked(with_text(kText) + with_cubin()) ==
          "k: has PTX (PTX for compute_75, in __nv_relfatbin: 1 text to be linked with 1 image without PTX)");
    const std::string broken = with_text(".version 9.0\n.frob");
    CHECK(linked(with_text(kText) + broken)
              .starts_with("k: has PTX (PTX for compute_75, in __nv_relfatbin: 1 text to be linked, one of "
                           "which cannot"));
    CHECK(linked(broken).starts_with("k: unmanaged (its PTX cannot be read: line 2"));
    CHECK(linked(with_cubin()) == "k: unmanaged (machine code alone)");
}

TEST_CASE("the judge decides, once for each image that would be loaded", "[image]") {
    const std::string image =
        fatbin({{2, 75, 0, small_cubin()}, {1, 75, 0, kText + kOther.substr(kOther.find(".visible"))}});
    size_t asked = 0;
    auto judge = [&](Management management, const char* reason) -> Judge {
        return [&asked, management, reason](std::string_view) -> ImageVerdict {
            ++asked;
            return [=](const std::string& kernel) {
                return kernel == "k" ? Verdict{management, reason}
                                     : Verdict{Management::kUnmanaged, "its source is not known"};
            };
        };
    };
    CHECK(judged(image, 75, judge(Management::kUnmanaged, "reads %gridid")) ==
          "k: unmanaged (PTX for compute_75, but reads %gridid)");
    CHECK(judged(image, 75, judge(Management::kPtx, "")) == "k: managed by PTX (PTX for compute_75)");
    CHECK(judged(image, 75, judge(Management::kSource, "kernels.cu")) == "k: managed by source (kernels.cu)");
    CHECK(asked == 3);
    CHECK(judged(image + fatbin({{2, 90, 0, small_cubin()}}), 75, judge(Management::kPtx, "")) ==
          "k: managed by PTX (PTX for compute_75)");
    CHECK(asked == 4);  // nothing of the second runs there
    CHECK(judged(small_cubin(), 75, judge(Management::kUnmanaged, "it holds machine code only")) ==
          "k: unmanaged (it holds machine code only)");
    // Before a program has an object's relocatable code it is linked, and it is unknown into what.
    CHECK(judged(host_file(ET_REL, {{"__nv_relfatbin", with_text(kText)}}), 75, judge(Management::kPtx, ""))
              .starts_with("k: has PTX (PTX for compute_75, relocatable"));
}

TEST_CASE("a broken image is told apart from the others", "[image]") {
    const std::string image = with_text(kText) + fatbin({{2, 75, 0x8000, "12345678", 100}});
    auto survey = survey_file(image, {75}, {});
    auto& images = std::get<Survey>(survey).images;
    REQUIRE(images.size() == 2);
    CHECK_FALSE(images[0].problem);
    REQUIRE(images[1].problem);
    CHECK(images[1].problem->text.starts_with("the entry's Zstandard data is broken"));
    CHECK(std::get<Survey>(survey).kernels.size() == 1);
}

TEST_CASE("PTX says what a kernel needs", "[image]") {
    auto facts = ptx_facts(R"(
.version 9.0
.target sm_90a, debug
.address_size 64
.shared .align 16 .b8 common[48];
.extern .shared .align 16 .b8 dynamic[];
.func helper() { .shared .b8 own[3]; .reg .u32 %r; ld.shared.u32 %r, [common]; ret; }
.visible .entry first(.param .u64 a, .param .u8 b, .param .align 16 .b8 c[24], .param .u16 d)
.maxntid 128, 2, 1
.explicitcluster
.reqnctapercluster 2
{
    .shared .f64 pair[2];
    .reg .u32 %r;
    mov.u32 %r, %envreg2;
    mov.u32 %r, dynamic;
    call helper;
    ret;
}
.visible .entry second() .reqntid 64 .maxclusterrank 8 { .reg .u32 %r; mov.u32 %r, %envreg3; ret; }
.visible .entry declared();
)");
    if (auto* problem = std::get_if<Problem>(&facts)) FAIL(problem->text);
    const auto& all = std::get<PtxFacts>(facts);
    CHECK(all.version_major == 9);
    CHECK(all.target == std::vector<std::string>{"sm_90a", "debug"});
    REQUIRE(all.kernels.size() == 2);
    const PtxKernel& first = all.kernels[0];
    CHECK(first.facts.parameters == std::vector<Parameter>{{0, 8}, {8, 1}, {16, 24}, {40, 2}});
    CHECK(first.facts.shared_bytes == 16 + 3 + 13 + 48u);
    CHECK(first.dynamic_shared);
    CHECK(first.cooperative);
    CHECK(first.facts.most_threads == Shape{128, 2, 1});
    CHECK(first.facts.cluster == Shape{2, 1, 1});
    CHECK(first.facts.explicit_cluster);
    const PtxKernel& second = all.kernels[1];
    CHECK(second.facts.parameters.empty());
    CHECK(second.facts.shared_bytes == 0u);
    CHECK_FALSE(second.cooperative);
    CHECK_FALSE(second.dynamic_shared);
    CHECK(second.facts.required_block == Shape{64, 1, 1});
    CHECK(second.facts.most_cluster_blocks == 8);
    CHECK(std::get<Problem>(ptx_facts(".version 9.0\n.frob")).text.starts_with("line 2"));
}

}  // namespace
}  // namespace smt::image
