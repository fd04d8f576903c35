// What stands in the place of a relocation in a cubin whose symbol is moved (managed.h, movable.h).
#pragma once

#include <elf.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/image/managed.h"

namespace smt::image {

// `target`: the section that the entry changes, whose content lies in the image where it has one. `offset`:
// of the symbol in its block. Nothing: a kind of relocation that cannot be carried out ahead of the load.
// Without an addend of its own (SHT_REL) the addend is what stands there.
[[nodiscard]] std::optional<ManagedPlan::Fixup> redirect_to(std::string_view image, const Elf64_Shdr& target,
                                                            const Elf64_Rela& entry, bool with_addend,
                                                            uint64_t offset);

}  // namespace smt::image
