// Where the nodes of the syntax tree stand in the text that is rewritten.
#include "rewriter/source/text.h"

#include <clang/Basic/SourceManager.h>
#include <clang/Lex/Lexer.h>

#include <algorithm>

namespace smt::rewriter::source {

std::optional<unsigned> Text::spelled(clang::SourceLocation place) const {
    if (place.isInvalid() || place.isMacroID() || !sources().isWrittenInMainFile(place)) return std::nullopt;
    const unsigned offset = sources().getFileOffset(place);
    if (offset > text_.size()) return std::nullopt;
    return offset;
}

std::optional<unsigned> Text::used(clang::SourceLocation place) const {
    if (place.isInvalid()) return std::nullopt;
    return spelled(sources().getExpansionLoc(place));
}

std::optional<unsigned> Text::past(clang::SourceLocation token) const {
    if (token.isInvalid()) return std::nullopt;
    const clang::SourceLocation last =
        token.isMacroID() ? sources().getExpansionRange(token).getEnd() : token;
    return spelled(clang::Lexer::getLocForEndOfToken(last, 0, sources(), context_.getLangOpts()));
}

std::string Text::macro(clang::SourceLocation place) const {
    if (!place.isMacroID()) return "";
    const clang::SourceLocation use = sources().getExpansionLoc(place);
    const unsigned length = clang::Lexer::MeasureTokenLength(use, sources(), context_.getLangOpts());
    return std::string(sources().getCharacterData(use), length);
}

std::string Text::file(clang::SourceLocation place) const {
    const llvm::StringRef path = sources().getFilename(sources().getExpansionLoc(place));
    return path.rsplit('/').second.empty() ? path.str() : path.rsplit('/').second.str();
}

int Text::line(clang::SourceLocation place) const {
    return static_cast<int>(sources().getPresumedLineNumber(sources().getExpansionLoc(place)));
}

int Text::line(unsigned offset) const {
    const clang::SourceLocation start = sources().getLocForStartOfFile(sources().getMainFileID());
    return line(start.getLocWithOffset(static_cast<int>(offset)));
}

}  // namespace smt::rewriter::source
