// What nvcc makes of kernels.cu, before and after it has got the door.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <set>

#include "tests/machine_code/cubins.h"

namespace smt::machine_code {

constexpr uint64_t kStep = 16;    // bytes of an instruction
constexpr uint64_t kMoved = 128;  // by how much code moves

inline std::variant<std::string, Problem> assemble(const std::string& ptx, const std::string& architecture) {
    const std::string base = std::string(SMT_DOOR_CUBINS) + "/prologue." + std::to_string(getpid());
    std::ofstream(base + ".ptx") << ptx;
    const std::string command =
        SMT_PTXAS " -arch=" + architecture + " -O3 " + base + ".ptx -o " + base + ".cubin";
    const int status = std::system(command.c_str());
    std::string cubin = status == 0 ? read_cubin(base + ".cubin") : "";
    unlink((base + ".ptx").c_str());
    unlink((base + ".cubin").c_str());
    if (status != 0) return Problem{command};
    return cubin;
}

struct Halves {
    uint64_t low, high;
};
inline Halves at(std::string_view code, uint64_t offset) {
    Halves halves{};
    REQUIRE(offset + kStep <= code.size());
    std::memcpy(&halves, code.data() + offset, sizeof halves);
    return halves;
}
inline unsigned operation_at(std::string_view code, uint64_t offset) { return at(code, offset).low & 0x1ff; }
constexpr unsigned kBra = 0x147, kExit = 0x14d, kNop = 0x118, kCompare = 0x00c;
inline unsigned guard_at(std::string_view code, uint64_t offset) { return at(code, offset).low >> 12 & 15; }

// The target of the BRA at `offset`.
inline uint64_t target(std::string_view code, uint64_t offset, int architecture) {
    const Halves branch = at(code, offset);
    // Bits 34 to 81 as a signed number.
    int64_t words = static_cast<int64_t>((branch.high << 30 | branch.low >> 34) << 16) >> 16;
    if (architecture >= 90) words = words * 256 + static_cast<int64_t>(branch.low >> 16 & 0xff);
    return offset + kStep + static_cast<uint64_t>(words * 4);
}

struct Cubin {
    std::string bytes;
    image::ElfFile file;
    std::map<std::string, uint32_t> sections;

    explicit Cubin(std::string text) : bytes(std::move(text)), file(must_be(image::ElfFile::read(bytes))) {
        for (uint32_t i = 0; i < file.sections().size(); ++i)
            sections.emplace(file.name(file.sections()[i]), i);
    }
    Cubin(const Cubin&) = delete;
    std::string_view content(const std::string& name) const {
        auto found = sections.find(name);
        INFO(name);
        REQUIRE(found != sections.end());
        return file.content(found->second);
    }
    std::vector<Attribute> attributes(const std::string& entry) const {
        return must_be(read_attributes(content(".nv.info." + entry)));
    }
    std::vector<uint32_t> words(const std::string& entry, uint8_t kind) const {
        const auto all = attributes(entry);
        const Attribute* found = find(all, kind);
        return found ? found->words() : std::vector<uint32_t>{};
    }
};

struct Build {
    const char* name;
    int architecture;
};
constexpr Build kBuilds[] = {{"80", 80}, {"90", 90}, {"100", 100}, {"90-lineinfo", 90}, {"90-G", 90}};

struct Both {
    Build build;
    Cubin before, after;
    std::vector<PatchedEntry> entries;
};

inline const std::vector<std::unique_ptr<Both>>& all_builds() {
    static const auto all = [] {
        static Prologues prologues(assemble);
        std::vector<std::unique_ptr<Both>> result;
        for (const Build& build : kBuilds) {
            std::string bytes = read_cubin(std::string(SMT_DOOR_CUBINS "/") + build.name + ".cubin");
            Patched patched = must_be(patch(bytes, prologues));
            result.push_back(std::unique_ptr<Both>(
                new Both{build, Cubin(std::move(bytes)), Cubin(std::move(patched.cubin)), patched.entries}));
        }
        return result;
    }();
    return all;
}

// Up to sm_89, parameters of the large kind are in another place of the bank.
inline bool is_left_alone(const Both& both, const PatchedEntry& entry) {
    return both.build.architecture == 80 && entry.name == "huge_parameters" &&
           entry.reason == "its parameters do not fill its constant bank";
}

// Calls check(both, entry) for every entry with a door, of every build.
template <typename Check>
void for_entries(Check check) {
    for (const auto& both : all_builds())
        for (const PatchedEntry& entry : both->entries) {
            if (is_left_alone(*both, entry)) continue;
            INFO(both->build.name << ", " << entry.name);
            check(*both, entry);
        }
}

inline uint64_t old_size(const Both& both, const std::string& entry) {
    return both.before.content(".text." + entry).size();
}

}  // namespace smt::machine_code
