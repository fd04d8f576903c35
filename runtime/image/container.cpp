#include "runtime/image/container.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <optional>

#include "runtime/image/bytes.h"
#include "runtime/image/elf_file.h"

namespace smt::image {

namespace {

constexpr uint64_t kFatbinAlignment = 8;
constexpr uint32_t kLinkedWrapper = 2;

struct Wrapper {  // fatbinary_section.h
    uint32_t magic, version;
    uint64_t data, more;
};
static_assert(sizeof(Wrapper) == 24);

constexpr std::string_view kArchive = "!<arch>\n", kThinArchive = "!<thin>\n";
constexpr size_t kMemberHeader = 60, kMemberName = 16, kMemberSizeAt = 48, kMemberSize = 10,
                 kMemberEndAt = 58;

using Problems = std::optional<Problem>;

// The fatbins in `bytes`, which begin at `offset` of the file; between them is nothing but zeros.
Problems read_fatbins(std::string_view bytes, Found found, std::vector<Found>* images) {
    const uint64_t begin = found.offset;
    for (uint64_t at = 0;;) {
        while (at < bytes.size() && bytes[at] == '\0') ++at;
        if (at >= bytes.size()) return std::nullopt;
        const uint64_t length = is_fatbin(bytes.substr(at)) ? fatbin_bytes(bytes.substr(at)) : 0;
        if (at % kFatbinAlignment != 0 || length == 0)
            return Problem{fmt::format("at {} there should be a fatbin, which there is not, or not all of it",
                                       begin + at)};
        found.offset = begin + at;
        found.bytes = bytes.substr(at, length);
        images->push_back(found);
        at += length;
    }
}

// In which fatbins nvcc's linker put its result, by address. Objects have no addresses yet.
void mark_linked(const ElfFile& file, uint64_t offset, std::vector<Found>* images, size_t from) {
    const Elf64_Shdr* segment = file.find(".nvFatBinSegment");
    const Elf64_Shdr* fatbins = file.find(".nv_fatbin");
    if (!segment || !fatbins) return;
    std::map<uint64_t, Found*> by_address;
    for (size_t i = from; i < images->size(); ++i) {
        Found& found = (*images)[i];
        if (found.place != Place::kRegistered) continue;
        by_address[found.offset - offset - fatbins->sh_offset + fatbins->sh_addr] = &found;
    }
    std::string_view bytes = file.content(*segment);
    Wrapper wrapper;
    for (uint64_t at = 0; read_at(bytes, at, &wrapper); at += sizeof wrapper) {
        auto found = by_address.find(wrapper.data);
        if (wrapper.magic == kWrapperMagic && wrapper.version == kLinkedWrapper && found != by_address.end())
            found->second->linked = true;
    }
}

// Of an ELF file that is no cubin. `found` says where it stands.
Problems read_host_file(std::string_view bytes, Found found, FileKind* kind, std::vector<Found>* images) {
    auto read = ElfFile::read(bytes);
    if (auto* problem = std::get_if<Problem>(&read)) return *problem;
    const auto& file = std::get<ElfFile>(read);
    const uint16_t type = file.header().e_type;
    *kind = type == ET_REL ? FileKind::kObject : type == ET_EXEC ? FileKind::kProgram : FileKind::kLibrary;
    for (const Elf64_Shdr& section : file.sections())
        if (section.sh_type == SHT_PROGBITS && file.name_is(section, ".interp")) *kind = FileKind::kProgram;
    const uint64_t offset = found.offset;
    const size_t from = images->size();
    uint64_t left = bytes.size();  // sections that overlap could hold the same fatbin over and over
    for (const Elf64_Shdr& section : file.sections()) {
        const bool registered = file.name_is(section, ".nv_fatbin");
        if (!registered && !file.name_is(section, "__nv_relfatbin")) continue;
        std::string_view content = file.content(section);
        if (content.size() != section.sh_size || content.size() > left)
            return Problem{fmt::format("its section {} leads out of it", file.name(section))};
        left -= content.size();
        found.place = registered ? Place::kRegistered : Place::kRelocatable;
        found.offset = offset + section.sh_offset;
        if (auto problem = read_fatbins(content, found, images))
            return Problem{fmt::format("in section {}: {}", file.name(section), problem->text)};
    }
    mark_linked(file, offset, images, from);
    return std::nullopt;
}

std::string_view without_end(std::string_view text, std::string_view ends) {
    return text.substr(0, text.find_last_not_of(ends) + 1);
}

// The name of a member of ar: itself, or a number behind a slash: where it stands among the long names.
std::string_view member_name(std::string_view field, std::string_view long_names) {
    uint64_t at = 0;
    if (field.size() > 1 && field[0] == '/' &&
        std::from_chars(field.data() + 1, field.data() + field.size(), at).ec == std::errc() &&
        at < long_names.size())
        return without_end(long_names.substr(at, long_names.find('\n', at) - at), "/");
    return without_end(without_end(field, " "), "/");
}

Problems read_archive(std::string_view file, std::vector<Found>* images) {
    std::string_view long_names;
    for (uint64_t at = kArchive.size(); at < file.size();) {
        std::string_view header = file.substr(at, kMemberHeader);
        uint64_t size = 0;
        if (header.size() < kMemberHeader || header.substr(kMemberEndAt) != "`\n" ||
            std::from_chars(&header[kMemberSizeAt], &header[kMemberSizeAt] + kMemberSize, size).ec !=
                std::errc())
            return Problem{
                fmt::format("at {} there should be the header of a member, which there is not", at)};
        at += kMemberHeader;
        if (size > file.size() - at)
            return Problem{fmt::format("the member at {} leads out of the archive", at)};
        std::string_view field = header.substr(0, kMemberName), bytes = file.substr(at, size);
        if (field.starts_with("// ")) long_names = bytes;
        Found found;
        found.offset = at;
        found.member = member_name(field, long_names);
        FileKind kind;
        if (is_elf(bytes) && cubin_architecture(bytes) == 0)
            if (auto problem = read_host_file(bytes, found, &kind, images))
                return Problem{fmt::format("member {}: {}", found.member, problem->text)};
        at += size + size % 2;
    }
    return std::nullopt;
}

std::variant<Container, Problem> none_of(FileKind kind) {
    return Problem{
        fmt::format("{} without device code: it has neither a section .nv_fatbin nor __nv_relfatbin. "
                    "Kernels may be in a library that it loads, or come to be when it runs",
                    name(kind))};
}

}  // namespace

const char* name(FileKind kind) {
    static constexpr const char* kNames[] = {"a fatbin",         "a cubin",   "a PTX text",      "a program",
                                             "a shared library", "an object", "a static library"};
    return kNames[static_cast<int>(kind)];
}

std::variant<Container, Problem> find_images(std::string_view file) {
    Container container;
    Problems problem;
    if (file.empty()) return Problem{"an empty file"};
    if (is_fatbin(file)) {
        problem = read_fatbins(file, {}, &container.images);
    } else if (file.starts_with(kThinArchive)) {
        return Problem{"a thin archive, whose members are files of their own: name one of those"};
    } else if (file.starts_with(kArchive)) {
        container.kind = FileKind::kArchive;
        problem = read_archive(file, &container.images);
    } else if (is_elf(file) && cubin_architecture(file) == 0) {
        problem = read_host_file(file, {}, &container.kind, &container.images);
    } else {
        auto entries = read(file);  // a cubin or a text
        if (std::holds_alternative<Problem>(entries))
            return Problem{"no program, library, object, fatbin, cubin or PTX text"};
        const Entry& entry = std::get<std::vector<Entry>>(entries).front();
        container.kind = entry.kind == Kind::kCubin ? FileKind::kCubin : FileKind::kPtx;
        container.images.push_back({Place::kItself, false, {}, 0, file});
    }
    if (problem)
        return Problem{fmt::format("{} that cannot be read: {}",
                                   is_elf(file) ? "a program, library or object" : name(container.kind),
                                   problem->text)};
    if (container.images.empty()) return none_of(container.kind);
    return container;
}

std::optional<Problem> check(std::string_view image) {
    if (!is_fatbin(image) && !is_elf(image)) return std::nullopt;
    if (is_elf(image)) {
        auto file = ElfFile::read(image);
        if (auto* problem = std::get_if<Problem>(&file)) return *problem;
        return std::get<ElfFile>(file).find_lost_part();
    }
    if (is_empty_fatbin(image)) return std::nullopt;  // the driver says what that is
    auto entries = read(image);
    if (auto* problem = std::get_if<Problem>(&entries)) return *problem;
    for (const Entry& entry : std::get<std::vector<Entry>>(entries)) {
        const bool plain = entry.kind == Kind::kCubin && entry.compression == Compression::kNone;
        if (!plain || !is_elf(entry.stored)) continue;
        if (auto problem = check(entry.stored)) return problem;
    }
    return std::nullopt;
}

}  // namespace smt::image
