// The door's prologues in place of an assembler: what ptxas once made. They are for one offset of the
// parameter, which makes no difference to a fuzzer.
#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <variant>

#include "rewriter/machine_code/prologue.h"

inline std::variant<std::string, smt::machine_code::Problem> read_prologue(const std::string&,
                                                                           const std::string& architecture) {
    std::ifstream file(SMT_DOOR_CORPUS "/prologue_" + architecture.substr(3), std::ios::binary);
    if (!file) return smt::machine_code::Problem{"no prologue for " + architecture};
    return std::string(std::istreambuf_iterator<char>(file), {});
}
