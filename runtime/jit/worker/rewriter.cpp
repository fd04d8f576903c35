#include "runtime/jit/worker/rewriter.h"

namespace smt::runtime::jit {

#ifdef SMT_HAVE_SOURCE_REWRITER

const bool has_source_rewriter = true;

rewriter::source::Output rewrite_source(const rewriter::source::Input& input) {
    return rewriter::source::rewrite(input);
}

#else

const bool has_source_rewriter = false;

rewriter::source::Output rewrite_source(const rewriter::source::Input& input) {
    rewriter::source::Output output;
    output.text = input.text;
    output.error = "this build of smt has no source rewriter";
    return output;
}

#endif

}  // namespace smt::runtime::jit
