// Cubins of the fuzzer's corpus, and the door in them.
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "rewriter/machine_code/elf_editor.h"
#include "rewriter/machine_code/patch.h"

namespace smt::machine_code {

inline std::string read_cubin(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(file), {});
    INFO(path);
    REQUIRE(!bytes.empty());
    return bytes;
}

template <typename T>
T must_be(std::variant<T, Problem> either) {
    if (auto* problem = std::get_if<Problem>(&either)) FAIL(problem->text);
    return std::move(std::get<T>(either));
}

template <typename T>
std::string problem_of(const std::variant<T, Problem>& either) {
    auto* problem = std::get_if<Problem>(&either);
    return problem ? problem->text : "";
}

inline Instruction made(uint64_t low, uint64_t high) {
    std::string bytes(reinterpret_cast<const char*>(&low), sizeof low);
    bytes.append(reinterpret_cast<const char*>(&high), sizeof high);
    return Instruction::at(bytes, 0);
}

inline uint32_t section_of(const image::ElfFile& file, const std::string& name) {
    const Elf64_Shdr* found = file.find(name);
    INFO(name);
    REQUIRE(found);
    return static_cast<uint32_t>(found - file.sections().data());
}

#ifdef SMT_DOOR_CORPUS
inline std::string corpus_cubin(const std::string& name) { return read_cubin(SMT_DOOR_CORPUS "/" + name); }

// What ptxas once made; it is for a parameter at 16, whatever the kernel's is.
inline Prologues corpus_prologues() {
    return Prologues([](const std::string&, const std::string& architecture) {
        return std::variant<std::string, Problem>(corpus_cubin("prologue_" + architecture.substr(3)));
    });
}
#endif

}  // namespace smt::machine_code
