// Puts a fence around what kernels access, so that one tenant's fault is no fault of the context that it
// shares with others (docs/design.md, Fenced tenants).
//
//   ld.global.v2.f32 {%f1, %f2}, [%rd1+8];
//
// becomes
//
//   { the check: %rd1+8 is a multiple of 8 and lies in the run, or in an open granule of the table, or
//     it is a generic address of another space; else smt_fence_end() is called }
//   ld.global.v2.f32 {%f1, %f2}, [%rd1+8];
//
// smt_fence_end() writes the record and ends the thread. It does not return, so nothing of a body has to be
// kept over the call, which would cost registers. trap, brkpt and a failed assert call it, too. A kernel that
// begins when there is a record ends at once, and so does a thread that waits for others by atomics, volatile
// loads or barrier objects. Layouts: rewriter/device/fence.h.
//
// One check is for all accesses by one register that are sure to follow it: in a basic block, without a
// guard, and no wider than the first.
//
// A kernel is refused if it has, or calls, what cannot be checked. It stays as an entry without its code.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/syntax.h"

namespace smt::ptx::fence {

struct FencedFunction {
    std::string name;
    bool kernel = false;
    std::string reason;  // why it is refused; empty: it is not
    bool operator==(const FencedFunction&) const = default;
};

struct Fenced {
    std::string text;
    std::string reason;                     // why there is no text; empty: there is one
    std::vector<FencedFunction> functions;  // with a body, in the order that FenceAccess::function counts
    uint64_t accesses = 0, checks = 0;      // of the text: how many were found, and were put in
};

// Diagnostic: the text cannot be read.
[[nodiscard]] std::variant<Fenced, Diagnostic> fence(std::string_view text);

// A function that the fence calls, of a text that is fenced.
bool is_fence_function(std::string_view name);
// What the fence put there by itself: instructions of its functions, and how a body learns where the block's
// shared memory ends.
bool is_of_fence(const Instruction& instruction, const Function& function);
// A load of the fence's in a body: of its record, or of which addresses are the tenant's.
bool is_look(const Instruction& instruction);

}  // namespace smt::ptx::fence
