// Constant expressions: C's operators on 64-bit integers and doubles, folded while they are read.
#pragma once

#include <cstdint>

#include "rewriter/ptx/cursor.h"

namespace smt::ptx {

struct Constant {
    enum class Kind : uint8_t { kSigned, kUnsigned, kFloat32, kFloat64 };
    Kind kind = Kind::kSigned;
    uint64_t bits = 0;

    bool is_integer() const { return kind == Kind::kSigned || kind == Kind::kUnsigned; }
};

// Whether a constant expression can begin with the next token.
bool at_constant(const Cursor& cursor);

bool parse_constant(Cursor& cursor, Constant* value);
// What stands between other operands and must not take their '+' or '|' along: a product of primaries.
bool parse_constant_term(Cursor& cursor, Constant* value);
// An integer expression within [0, most]; `what` it is, for messages.
bool parse_count(Cursor& cursor, uint64_t most, std::string_view what, uint64_t* value);
// Nothing, or + and - of terms: an offset in bytes.
bool parse_offset(Cursor& cursor, int64_t* offset);

}  // namespace smt::ptx
