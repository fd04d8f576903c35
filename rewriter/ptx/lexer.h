// PTX text to tokens. Comments and lines that begin with '#' leave no token.
#pragma once

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "rewriter/ptx/parser.h"

namespace smt::ptx {

struct Token {
    enum class Kind : unsigned char {
        kIdentifier,  // add, %r1, $L__BB0_1, _
        kWord,        // .s32, .shared::cta; text is without the dot
        kInteger,
        kDecimal,   // 1.5, 2e-3
        kHexFloat,  // 0f3F800000, 0d...
        kString,    // text is without the quotes; there are no escapes
        kSign,      // punctuation and operators
        kEnd,
    };
    Kind kind = Kind::kEnd;
    std::string_view text;  // of the input
    int line = 0, column = 0;
    size_t end = 0;  // offset of the byte behind it in the input
};

// The last token is kEnd.
std::variant<std::vector<Token>, Diagnostic> tokenize(std::string_view text);

}  // namespace smt::ptx
