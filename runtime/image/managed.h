// The __managed__ variables of a cubin, and how its bytes change so that they stand elsewhere.
//
// The driver keeps them in memory that only its own process can touch, but the program reads and writes
// them like its own. So the cubin is changed before it is loaded: wherever its code has the address of
// such a variable, which is a relocation in the cubin, the address of a place in the session's arena is
// written and the relocation taken out. The variable that the driver makes stays behind, unused.
//
// A plan is plain values, since it is made in another process than the one that carries it out
// (runtime/server/code/managed_variables.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace smt::image {

struct ManagedPlan {
    static constexpr uint64_t kMostBytes = 1ull << 34;

    struct Variable {
        uint64_t offset, bytes;  // in the arena's block
    };
    struct Initial {                 // a variable's first value
        uint64_t offset, bytes, at;  // `at`: in the cubin
    };
    enum class Kind : uint32_t { kWhole, kLow, kHigh };
    struct Fixup {
        uint64_t at;     // in the cubin
        uint64_t value;  // offset in the block, and the addend
        Kind kind;
        uint32_t unused = 0;
    };
    struct Trimmed {       // a relocation section without some of its entries
        uint64_t size_at;  // of its header's sh_size
        uint64_t at, entry_bytes;
        std::vector<bool> dropped;
    };

    std::map<std::string, Variable> variables;
    std::vector<Initial> initials;
    std::vector<Fixup> fixups;
    std::vector<Trimmed> trimmed;
    uint64_t bytes = 0;  // of the block

    // Whether it keeps to a cubin of so many bytes and to its block.
    bool fits(uint64_t image_bytes) const;
};

// Trusts nothing in the cubin. Without variables: it has none, or they cannot be moved.
[[nodiscard]] ManagedPlan managed_plan(std::string_view cubin);

}  // namespace smt::image
