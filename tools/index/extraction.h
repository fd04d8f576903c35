// The source's extraction in a process of its own.
#pragma once

#include <chrono>
#include <string>

#include "rewriter/source/extract/extract.h"

namespace smt::tools::index {

// What cannot be extracted has an error, also where the child crashed or took longer than `limit`. The child
// works in `directory`.
rewriter::source::Extract extract_apart(const rewriter::source::Input& input,
                                        const rewriter::source::Wanted* wanted, const std::string& directory,
                                        std::chrono::seconds limit);

// The same here. Reads the text from the file that `input` names.
rewriter::source::Extract extract_here(rewriter::source::Input input, const rewriter::source::Wanted* wanted);

}  // namespace smt::tools::index
