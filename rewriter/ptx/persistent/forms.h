// The persistent loop as PTX: forms.cu, as nvcc compiled it when smt was built, parsed, and renamed so that
// no name of it meets one of a program's.
//
// A form is an entry whose only parameter is smt::Launch. One of its statements is a scope that holds the
// loop's registers and, last, the place for a kernel's body:
//
//   { .reg .b32 %smt_block<3>; ... mov.b32 %smt_block0, %smt_r112; ... .pragma "smt_body"; }
//
// Where a body may be left at a check (inside.h), the scope goes on behind that place: the body's end falls
// through to there, and a thread that leaves it at a check goes to $smt_abandon.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "rewriter/ptx/syntax.h"

namespace smt::ptx::persistent {

enum class FormKind {
    kWorker,
    kFree,
    kWarp,
    kShared,
    kSingle,
    kSingleShared,
    kWorkerChecked,
    kFreeChecked,
    kSingleChecked
};

const char* name_of(FormKind kind);  // "worker"

struct Form {
    Function entry;
    size_t place = 0;               // among its statements: the scope for the body, up to the pragma
    std::vector<Statement> behind;  // what that scope has behind it
};

struct Forms {
    std::vector<Declaration> helpers;  // what the loop calls and shares
    std::array<Form, 9> forms;         // by FormKind
    std::string problem;               // why there are none

    const Form& operator[](FormKind kind) const { return forms[static_cast<size_t>(kind)]; }
};

// Read once; any thread.
const Forms& forms();

inline constexpr const char* kBlock = "%smt_block";  // 0 to 2
inline constexpr const char* kGrid = "%smt_grid";
inline constexpr const char* kLaunch = "smt_launch";  // the parameter
// Shared memory that holds the block's index and, 12 bytes on, the grid's size (kShared, kSingleShared).
inline constexpr const char* kIndexVariable = "_ZZN3smt6device5indexEvE7current";
inline constexpr int kLoopBytes = 128 + 24;  // of shared memory

}  // namespace smt::ptx::persistent
