#include "rewriter/machine_code/elf_editor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/image/bytes.h"

namespace smt::machine_code {

namespace {

constexpr uint64_t kMostAlignment = 4096;

template <typename T>
void put(std::string& bytes, uint64_t at, const T& value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

// The offset in the new file of what stood at `at`; nothing: inside of a changed section.
template <typename Growths>
std::optional<uint64_t> moved(const Growths& growths, uint64_t at, uint64_t total) {
    auto next = std::partition_point(growths.begin(), growths.end(),
                                     [&](const auto& each) { return each.end <= at; });
    if (next == growths.end()) return at + total;
    if (next->begin < at) return std::nullopt;
    return at + next->before;
}

struct Range {
    uint64_t begin, bytes;
    bool meets(const Range& other) const {
        return bytes != 0 && other.bytes != 0 && begin < other.begin + other.bytes &&
               other.begin < begin + bytes;
    }
};

// Whether the bytes of each section are in the file: by its type, or because names are looked up there.
std::vector<bool> find_contents(const image::ElfFile& elf) {
    const std::vector<Elf64_Shdr>& sections = elf.sections();
    std::vector<bool> has(sections.size());
    const auto mark = [&](uint64_t number) {
        if (number < has.size()) has[number] = true;
    };
    for (size_t i = 0; i < sections.size(); ++i) {
        if (image::ElfFile::has_content(sections[i].sh_type)) mark(i);
        if (sections[i].sh_type == SHT_SYMTAB) mark(sections[i].sh_link);
    }
    const uint16_t names = elf.header().e_shstrndx;
    if (!sections.empty()) mark(names == SHN_XINDEX ? sections[0].sh_link : names);
    return has;
}

// The file's header and the tables of headers are written anew: nothing else may lie there.
std::optional<Problem> find_crossing(const image::ElfFile& elf) {
    const Elf64_Ehdr& header = elf.header();
    const std::vector<bool> has_content = find_contents(elf);
    const Range tables[] = {{0, sizeof header},
                            {header.e_shoff, elf.sections().size() * sizeof(Elf64_Shdr)},
                            {header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr)}};
    for (const Range& table : tables) {
        for (const Range& other : tables)
            if (&table != &other && table.meets(other)) return Problem{"headers lie across each other"};
        for (size_t i = 0; i < has_content.size(); ++i) {
            const Elf64_Shdr& section = elf.sections()[i];
            if (has_content[i] && section.sh_type != SHT_NOBITS &&
                table.meets({section.sh_offset, section.sh_size}))
                return Problem{"a section lies across headers"};
        }
    }
    return std::nullopt;
}

// How far a change moves what follows.
template <typename Growth>
uint64_t rounded(const Growth& growth) {
    const uint64_t more = growth.size - (growth.end - growth.begin);
    return (more + growth.alignment - 1) / growth.alignment * growth.alignment;
}

}  // namespace

std::variant<ElfEditor, Problem> ElfEditor::read(std::string_view bytes) {
    auto file = image::ElfFile::read(bytes);
    if (auto* problem = std::get_if<Problem>(&file)) return *problem;
    auto& elf = std::get<image::ElfFile>(file);
    if (auto problem = elf.find_lost_part()) return *problem;
    if (auto problem = find_crossing(elf)) return *problem;
    for (const Elf64_Shdr& section : elf.sections())
        if (section.sh_addralign > kMostAlignment || (section.sh_addralign & (section.sh_addralign - 1)) != 0)
            return Problem{fmt::format("a section is aligned to {}", section.sh_addralign)};
    return ElfEditor(std::move(elf), bytes);
}

std::string_view ElfEditor::content(uint32_t section) const {
    auto changed = changed_.find(section);
    return changed == changed_.end() ? file_.content(section) : std::string_view(changed->second);
}

std::string& ElfEditor::change(uint32_t section) {
    auto [found, fresh] = changed_.try_emplace(section);
    if (fresh) found->second = file_.content(section);
    return found->second;
}

std::variant<std::vector<ElfEditor::Growth>, Problem> ElfEditor::growths() const {
    uint64_t alignment = 1;
    for (const Elf64_Shdr& section : sections())
        if (section.sh_type != SHT_NOBITS) alignment = std::max(alignment, section.sh_addralign);
    std::vector<Growth> result;
    for (const auto& [number, content] : changed_) {
        const Elf64_Shdr& section = sections()[number];
        if (section.sh_size == 0 || content.size() < section.sh_size)
            return Problem{fmt::format("section {} cannot change its size", number)};
        result.push_back(
            {section.sh_offset, section.sh_offset + section.sh_size, content.size(), 0, 1, &content, number});
    }
    std::sort(result.begin(), result.end(),
              [](const Growth& a, const Growth& b) { return a.begin < b.begin; });
    uint64_t total = 0;
    for (size_t i = 0; i < result.size(); ++i) {
        Growth& growth = result[i];
        if (i > 0 && result[i - 1].end > growth.begin) return Problem{"sections lie across each other"};
        growth.before = total;
        growth.alignment = alignment;
        total += rounded(growth);
    }
    return result;
}

// Of two sections that share their bytes one cannot change alone.
std::optional<Problem> ElfEditor::find_alias(const std::vector<Growth>& growths) const {
    const std::vector<bool> has_content = find_contents(file_);
    for (uint32_t i = 0; i < sections().size(); ++i) {
        const Elf64_Shdr& section = sections()[i];
        if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL || section.sh_size == 0) continue;
        if (has_content[i]) {
            const Range range{section.sh_offset, section.sh_size};
            auto met = std::partition_point(growths.begin(), growths.end(), [&](const Growth& each) {
                return each.end <= section.sh_offset;
            });
            for (; met != growths.end() && range.meets({met->begin, met->end - met->begin}); ++met)
                if (met->section != i)
                    return Problem{fmt::format("sections {} and {} share their bytes", met->section, i)};
        }
        auto same = std::partition_point(growths.begin(), growths.end(),
                                         [&](const Growth& each) { return each.begin < section.sh_offset; });
        if (same != growths.end() && same->begin == section.sh_offset && same->section != i)
            return Problem{fmt::format("sections {} and {} share their bytes", same->section, i)};
    }
    return std::nullopt;
}

std::variant<std::string, Problem> ElfEditor::write() const {
    auto found = growths();
    if (auto* problem = std::get_if<Problem>(&found)) return *problem;
    const auto& growing = std::get<std::vector<Growth>>(found);
    if (auto problem = find_alias(growing)) return *problem;
    const Problem across{"something begins or ends inside of a section that changes"};

    std::string result;
    uint64_t copied = 0;
    for (const Growth& growth : growing) {
        result.resize(copied + growth.before, '\0');
        result += bytes_.substr(copied, growth.begin - copied);
        result += *growth.content;
        copied = growth.end;
    }
    const uint64_t total = growing.empty() ? 0 : growing.back().before + rounded(growing.back());
    result.resize(copied + total, '\0');
    result += bytes_.substr(copied);

    Elf64_Ehdr header = file_.header();
    const auto sections_at = moved(growing, header.e_shoff, total),
               segments_at = moved(growing, header.e_phoff, total);
    if (!sections_at || !segments_at) return across;
    for (uint32_t i = 0; i < sections().size(); ++i) {
        Elf64_Shdr section = sections()[i];
        const auto at =
            section.sh_type == SHT_NULL ? section.sh_offset : moved(growing, section.sh_offset, total);
        if (!at) return across;
        section.sh_offset = *at;
        if (auto changed = changed_.find(i); changed != changed_.end())
            section.sh_size = changed->second.size();
        if (auto info = infos_.find(i); info != infos_.end()) section.sh_info = info->second;
        if (auto flags = flags_.find(i); flags != flags_.end()) section.sh_flags = flags->second;
        put(result, *sections_at + i * sizeof section, section);
    }
    for (uint64_t i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr segment;
        if (!image::read_at(bytes_, header.e_phoff + i * sizeof segment, &segment)) return across;
        const auto begin = moved(growing, segment.p_offset, total);
        const auto end = moved(growing, segment.p_offset + segment.p_filesz, total);
        if (!begin || !end || *end < *begin) return across;
        const uint64_t more = *end - *begin - segment.p_filesz;
        segment.p_offset = *begin;
        segment.p_filesz += more;
        segment.p_memsz += more;
        put(result, *segments_at + i * sizeof segment, segment);
    }
    header.e_shoff = *sections_at;
    if (header.e_phoff != 0) header.e_phoff = *segments_at;
    put(result, 0, header);
    return result;
}

}  // namespace smt::machine_code
