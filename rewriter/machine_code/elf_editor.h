// An ELF file whose sections' contents change, and with them their sizes.
//
// Where a section grows, what follows it moves by a multiple of the largest alignment in the file, so that
// everything keeps its alignment, and all that says where something is (section and program headers, the
// file's header) moves along. So nothing has to be known of sections whose types are not, and a file of which
// nothing has changed is written as it was, byte for byte.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/image/elf_file.h"
#include "runtime/image/image.h"

namespace smt::machine_code {

using image::Problem;

class ElfEditor {
public:
    // `bytes` must outlive it. Problem: what is no whole ELF file, or one whose parts lie across each other.
    [[nodiscard]] static std::variant<ElfEditor, Problem> read(std::string_view bytes);

    const image::ElfFile& file() const { return file_; }
    const std::vector<Elf64_Shdr>& sections() const { return file_.sections(); }

    // What the section holds now.
    std::string_view content(uint32_t section) const;
    // For writing. The section must have content in the file.
    std::string& change(uint32_t section);
    void set_info(uint32_t section, uint32_t info) { infos_[section] = info; }     // sh_info
    void set_flags(uint32_t section, uint64_t flags) { flags_[section] = flags; }  // sh_flags

    // Problem: something begins or ends inside of a changed section, which so cannot change its size.
    [[nodiscard]] std::variant<std::string, Problem> write() const;

private:
    struct Growth {  // of a changed section; `end`: of the old content
        uint64_t begin, end, size;
        uint64_t before;  // how far what stands at `begin` moves
        uint64_t alignment;
        const std::string* content;
        uint32_t section;
    };

    explicit ElfEditor(image::ElfFile file, std::string_view bytes) : file_(std::move(file)), bytes_(bytes) {}
    std::variant<std::vector<Growth>, Problem> growths() const;
    std::optional<Problem> find_alias(const std::vector<Growth>& growths) const;

    image::ElfFile file_;
    std::string_view bytes_;
    std::map<uint32_t, std::string> changed_;
    std::map<uint32_t, uint32_t> infos_;
    std::map<uint32_t, uint64_t> flags_;
};

}  // namespace smt::machine_code
