// The fence's own PTX: the functions that it calls, and what stands in bodies.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rewriter/ptx/syntax.h"

namespace smt::ptx::fence {

// Names in bodies that are fenced, and of the module's own.
constexpr const char* kPrefix = "smt_fence";
constexpr const char* kRun = "%fence_run";        // of FenceBlock
constexpr const char* kBytes = "%fence_bytes";    // its run_bytes
constexpr const char* kShared = "%fence_shared";  // where the block's shared memory ends

// The oldest version of PTX that knows all of it.
constexpr int kMajor = 7, kMinor = 8;
constexpr int kFirstArchitecture = 70;
// From there on a part of shared memory in front of the block's own is the system's.
constexpr int kFirstWithReserved = 80;

// The constant and the functions, for an architecture.
std::vector<Declaration> declarations(int architecture);

// Statements in which names stand for themselves: `declared` are the registers in them that are declared
// elsewhere ("%rd1", without types). The text is the fence's own.
std::vector<Statement> statements(const std::string& text, const std::vector<std::string>& declared);

struct Beginning {
    bool kernel, global, shared;
    int architecture;
};
std::vector<Statement> beginning(const Beginning& of);
// A statement, also behind one that waits. It finds what was written since the SM last looked.
std::string leave_if_over();

// Of an access that is not in the run: the table, and for a generic address the other spaces. With the
// address in %fence_at; branches to goes_on if it is well, and falls through to `wrong`, or branches there.
struct Further {
    bool generic, reads;
    uint32_t bytes;
    int64_t spread;  // how far the last of several accesses is behind the first; less than a granule
};
std::string look_further(const Further& of);

}  // namespace smt::ptx::fence
