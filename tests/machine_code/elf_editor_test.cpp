#include "rewriter/machine_code/elf_editor.h"

#include "tests/machine_code/cubins.h"

namespace smt::machine_code {
namespace {

const char* const kCubins[] = {"sm_80",       "sm_90",       "sm_100",      "no_parameters",
                               "relocations", "prologue_80", "prologue_100"};

template <typename T>
T part(std::string_view bytes, uint64_t at) {
    T value;
    REQUIRE(at + sizeof value <= bytes.size());
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

TEST_CASE("an unchanged file is written byte for byte") {
    for (const char* name : kCubins) {
        const std::string bytes = corpus_cubin(name);
        const ElfEditor editor = must_be(ElfEditor::read(bytes));
        CHECK(must_be(editor.write()) == bytes);
    }
}

TEST_CASE("a section that is changed in its place changes nothing else") {
    std::string bytes = corpus_cubin("sm_90");
    ElfEditor editor = must_be(ElfEditor::read(bytes));
    const uint32_t code = section_of(editor.file(), ".text.k");
    editor.change(code)[5] ^= 1;
    CHECK(editor.content(code)[5] != bytes[editor.sections()[code].sh_offset + 5]);
    const std::string written = must_be(editor.write());
    bytes[editor.sections()[code].sh_offset + 5] ^= 1;
    CHECK(written == bytes);
}

TEST_CASE("where sections grow, all contents stay and keep their alignment") {
    for (const char* name : kCubins) {
        INFO(name);
        const std::string bytes = corpus_cubin(name);
        ElfEditor editor = must_be(ElfEditor::read(bytes));
        std::vector<uint32_t> grown;
        for (uint32_t i = 0; i < editor.sections().size(); ++i)
            if (editor.file().name_begins(editor.sections()[i], ".text.") ||
                editor.file().name_begins(editor.sections()[i], ".nv.info"))
                grown.push_back(i);
        REQUIRE(grown.size() >= 3);
        for (uint32_t i : grown) editor.change(i) += "grown" + std::string(i * 7, 'x');
        const std::string written = must_be(editor.write());
        const ElfEditor after = must_be(ElfEditor::read(written));
        REQUIRE(after.sections().size() == editor.sections().size());
        for (uint32_t i = 0; i < editor.sections().size(); ++i) {
            const Elf64_Shdr &old = editor.sections()[i], &now = after.sections()[i];
            CHECK(editor.content(i) == after.content(i));
            if (old.sh_addralign > 1) CHECK(now.sh_offset % old.sh_addralign == 0);
            CHECK(now.sh_name == old.sh_name);
            CHECK(now.sh_type == old.sh_type);
            CHECK(now.sh_info == old.sh_info);
        }
    }
}

TEST_CASE("a segment grows with the sections in it") {
    const std::string bytes = corpus_cubin("sm_80");
    ElfEditor editor = must_be(ElfEditor::read(bytes));
    const uint32_t code = section_of(editor.file(), ".text.k");
    editor.change(code) += std::string(128, 'c');
    const std::string written = must_be(editor.write());
    const auto header = part<Elf64_Ehdr>(written, 0);
    const ElfEditor after = must_be(ElfEditor::read(written));
    const Elf64_Shdr& section = after.sections()[code];
    int with_code = 0;
    for (int i = 0; i < header.e_phnum; ++i) {
        const auto segment = part<Elf64_Phdr>(written, header.e_phoff + i * sizeof(Elf64_Phdr));
        if (segment.p_type == PT_PHDR) CHECK(segment.p_offset == header.e_phoff);
        if (segment.p_type != PT_LOAD || segment.p_offset > section.sh_offset) continue;
        ++with_code;
        CHECK(segment.p_offset + segment.p_filesz >= section.sh_offset + section.sh_size);
        CHECK(segment.p_memsz == segment.p_filesz);
    }
    CHECK(with_code == 1);
}

TEST_CASE("sections that share bytes cannot grow alone, and none can shrink") {
    std::string bytes = corpus_cubin("sm_90");
    const auto header = part<Elf64_Ehdr>(bytes, 0);
    const ElfEditor first = must_be(ElfEditor::read(bytes));
    const uint32_t code = section_of(first.file(), ".text.k");
    const uint32_t other = section_of(first.file(), ".nv.constant0.k");
    {
        ElfEditor editor = must_be(ElfEditor::read(bytes));
        editor.change(code).pop_back();
        CHECK(problem_of(editor.write()).find("cannot change its size") != std::string::npos);
    }
    for (const int at : {-16, 0, 16}) {
        Elf64_Shdr alias = first.sections()[other];
        alias.sh_offset = first.sections()[code].sh_offset + static_cast<uint64_t>(at);
        alias.sh_size = 32;
        std::string shared = bytes;
        std::memcpy(shared.data() + header.e_shoff + other * sizeof alias, &alias, sizeof alias);
        ElfEditor editor = must_be(ElfEditor::read(shared));
        CHECK(must_be(editor.write()) == shared);
        editor.change(code) += "more";
        CHECK(problem_of(editor.write()).find("share their bytes") != std::string::npos);
    }
}

TEST_CASE("tables of headers lie across nothing") {
    std::string bytes = corpus_cubin("sm_90");
    auto header = part<Elf64_Ehdr>(bytes, 0);
    const ElfEditor first = must_be(ElfEditor::read(bytes));
    header.e_phoff = first.sections()[section_of(first.file(), ".strtab")].sh_offset + 3;
    header.e_phnum = 1;
    std::memcpy(bytes.data(), &header, sizeof header);
    CHECK(problem_of(ElfEditor::read(bytes)) == "a section lies across headers");
    header.e_phoff = header.e_shoff + 8;
    std::memcpy(bytes.data(), &header, sizeof header);
    CHECK(problem_of(ElfEditor::read(bytes)) == "headers lie across each other");
}

}  // namespace
}  // namespace smt::machine_code
