// A GPU core dump made by hand: two kernels of two modules at work, of which one has faulted.
#pragma once

#include <elf.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace smt::image {

struct MadeDump {
    enum class Sign { kNone, kException, kErrorPc, kBreakpoint, kEnded };
    Sign sign = Sign::kException;
    std::string kernel = "culprit";
    uint64_t module = 0x5000;
    std::array<uint32_t, 3> cta{2, 0, 1};
};

class MadeElf {
public:
    struct Header {
        uint16_t type, machine;
    };

    // Its number.
    uint32_t add(uint32_t type, const std::string& content, uint64_t row_bytes = 0, uint32_t link = 0,
                 uint32_t info = 0, const std::string& name = "", uint64_t address = 0) {
        Elf64_Shdr section{};
        section.sh_name = static_cast<uint32_t>(names_.size());
        names_ += name + '\0';
        section.sh_type = type;
        section.sh_addr = address;
        section.sh_offset = sizeof(Elf64_Ehdr) + contents_.size();
        section.sh_size = content.size();
        section.sh_link = link;
        section.sh_info = info;
        section.sh_entsize = row_bytes;
        contents_ += content;
        sections_.push_back(section);
        return static_cast<uint32_t>(sections_.size() - 1);
    }

    std::string bytes(Header what) {
        const uint32_t names = add(SHT_STRTAB, "", 0, 0, 0, ".shstrtab");
        sections_[names].sh_size = names_.size();
        contents_ += names_;
        Elf64_Ehdr header{};
        std::memcpy(header.e_ident, ELFMAG, SELFMAG);
        header.e_ident[EI_CLASS] = ELFCLASS64;
        header.e_ident[EI_DATA] = ELFDATA2LSB;
        header.e_type = what.type;
        header.e_machine = what.machine;
        header.e_shoff = sizeof header + contents_.size();
        header.e_shentsize = sizeof(Elf64_Shdr);
        header.e_shnum = static_cast<uint16_t>(sections_.size());
        header.e_shstrndx = static_cast<uint16_t>(names);
        return std::string(reinterpret_cast<const char*>(&header), sizeof header) + contents_ +
               std::string(reinterpret_cast<const char*>(sections_.data()),
                           sections_.size() * sizeof(Elf64_Shdr));
    }

private:
    std::string names_ = std::string("\0", 1), contents_;
    std::vector<Elf64_Shdr> sections_ = std::vector<Elf64_Shdr>(1);
};

// Rows as driver 580 writes them: fields in order, zeros up to the size.
class MadeRow {
public:
    explicit MadeRow(size_t bytes) : bytes_(bytes, '\0') {}
    template <typename Value>
    MadeRow& at(size_t offset, Value value) {
        std::memcpy(bytes_.data() + offset, &value, sizeof value);
        return *this;
    }
    operator std::string() const { return bytes_; }  // NOLINT: a row is its bytes

private:
    std::string bytes_;
};

inline std::string made_core_dump(const MadeDump& made) {
    constexpr uint32_t kUser = SHT_LOUSER;
    constexpr uint64_t kCulpritCode = 0x7f0000001000, kOtherCode = 0x7f0000009000;
    const bool ended = made.sign == MadeDump::Sign::kEnded;
    const auto cubin = [](const std::string& kernel, uint64_t address) {
        MadeElf elf;
        elf.add(SHT_PROGBITS, std::string(0x200, '\0'), 0, 0, 0, ".text." + kernel, address);
        return elf.bytes({ET_EXEC, 0xbe});
    };
    const auto grid = [](uint64_t number, uint64_t entry, uint64_t module, uint32_t ctas) {
        return MadeRow(136)
            .at(0, number)
            .at(24, entry)
            .at(32, module)
            .at(72, ctas)
            .at(76, 1u)
            .at(80, 4u)
            .at(84, 64u)
            .at(88, 1u)
            .at(92, 1u);
    };

    MadeElf elf;
    const uint32_t devices = elf.add(kUser + 9, MadeRow(88), 88);
    const uint32_t contexts = elf.add(kUser + 10, MadeRow(40), 40, devices);
    const uint32_t modules =
        elf.add(kUser + 16,
                std::string(MadeRow(8).at(0, made.module)) + std::string(MadeRow(8).at(0, uint64_t{0x6000})),
                8, contexts);
    elf.add(kUser + 7, cubin(made.kernel, kCulpritCode), 0, modules, 0);
    elf.add(kUser + 7, cubin("bystander", kOtherCode), 0, modules, 1);
    std::string grids = grid(71, kOtherCode, 0x6000, 40);
    if (!ended) grids += grid(72, kCulpritCode, made.module, 7);
    elf.add(kUser + 12, grids, 136, devices);
    MadeRow multiprocessor = MadeRow(48).at(0, 1u);
    if (ended) multiprocessor.at(8, 14u).at(12, 1u).at(16, kCulpritCode + 0x90);
    const uint32_t multiprocessors =
        elf.add(kUser + 11, std::string(MadeRow(48)) + std::string(multiprocessor), 48, devices);
    for (uint32_t sm = 0; sm < 2; ++sm) {
        const bool faults = sm == 1 && !ended;
        std::string ctas = MadeRow(56).at(0, uint64_t{71}).at(8, sm);
        if (faults)
            ctas += std::string(
                MadeRow(56).at(0, uint64_t{72}).at(8, made.cta[0]).at(12, made.cta[1]).at(16, made.cta[2]));
        const uint32_t table = elf.add(kUser + 13, ctas, 56, multiprocessors, sm);
        for (uint32_t cta = 0; cta < (faults ? 2u : 1u); ++cta) {
            const bool bad = cta == 1;
            MadeRow warp(64);
            if (bad && made.sign == MadeDump::Sign::kBreakpoint) warp.at(20, 1u);
            if (bad && made.sign == MadeDump::Sign::kErrorPc) warp.at(24, 1u);
            const uint32_t warps = elf.add(kUser + 14, warp, 64, table, cta);
            MadeRow thread(56);
            if (bad && made.sign == MadeDump::Sign::kException) thread.at(32, 14u);
            elf.add(kUser + 15, std::string(MadeRow(56)) + std::string(thread), 56, warps, 0);
        }
    }
    return elf.bytes({ET_CORE, 0xbe});
}

}  // namespace smt::image
