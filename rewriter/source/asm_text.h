// What a piece of inline PTX does, as far as it matters to a kernel that is to become persistent.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace smt::rewriter::source {

struct AsmFacts {
    std::string refusal;    // why a kernel with it cannot be managed; empty: it can
    bool wide = false;      // other threads of the warp or of the block take part in it
    bool copies = false;    // starts a copy that may still run when the block's code ends
    bool sm = false;        // reads %smid
    bool sms = false;       // reads %nsmid
    bool index = false;     // reads %ctaid or %nctaid
    struct Move {           // the whole text is `mov` of one component into operand 0
        bool grid = false;  // %nctaid
        char component = 'x';
    };
    std::optional<Move> move;  // set only with `index`
};

AsmFacts examine_asm(std::string_view text);

}  // namespace smt::rewriter::source
