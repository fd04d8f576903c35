// Whether machine code takes the address of a `__constant__` variable.
//
// Code reads constants by a bank (c[3][PLACE]), and such an access tells nothing of where the bank lies. A
// generic address is the bank's plus PLACE. The driver writes the bank's own into bank 0, at a place that
// each architecture has, so code that takes an address reads that place. No relocation says so once a cubin
// is linked. That is what ptxas' output shows, for each architecture that it has (tests/image/nvcc_test.py).
#pragma once

#include <optional>
#include <string_view>

#include "runtime/image/elf_file.h"

namespace smt::image {

// Of all executable sections of a cubin of that architecture (90: sm_90). It errs to yes: of an instruction
// that may have an operand in a bank the bits of its place count, whatever it does with them. None: the
// architecture is not known. Time: one look at each 16 bytes, of kMostBytes at most.
[[nodiscard]] std::optional<bool> takes_constant_address(const ElfFile& cubin, int architecture);

}  // namespace smt::image
