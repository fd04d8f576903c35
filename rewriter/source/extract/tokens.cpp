// A translation unit as the parser saw it: its tokens after preprocessing, and how they are written again.
#include "rewriter/source/extract/tokens.h"

#include <clang/AST/ASTContext.h>
#include <clang/Lex/Lexer.h>
#include <clang/Lex/Preprocessor.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace smt::rewriter::source {

using clang::SourceLocation;
using clang::tok::TokenKind;

namespace {

// NVIDIA's compilers define them themselves. What stands in their parentheses is the program's.
const std::set<std::string, std::less<>> kWords = {
    "__global__",  "__device__",   "__host__",        "__shared__",  "__constant__",
    "__managed__", "__noinline__", "__forceinline__", "__nv_pure__", "__grid_constant__"};
const std::set<std::string, std::less<>> kCalls = {
    "assert",         "__launch_bounds__", "__align__",  "__builtin_align__",
    "__block_size__", "__cluster_dims__",  "__maxnreg__"};

bool is_call(const std::string& name) { return kCalls.count(name) != 0; }

// Blanks and comments stay; of all else (directives, macros that say nothing) the line breaks.
std::string only_blanks(std::string_view text) {
    std::string kept, lines;
    bool blank = true;
    for (size_t at = 0; at < text.size();) {
        size_t end = at + 1;
        if (text.substr(at, 2) == "//")
            end = std::min(text.find('\n', at), text.size());
        else if (text.substr(at, 2) == "/*")
            end = std::min(text.find("*/", at + 2), text.size() - 2) + 2;
        else
            blank &= std::isspace(static_cast<unsigned char>(text[at])) != 0;
        kept += text.substr(at, end - at);
        lines.append(static_cast<size_t>(std::count(text.begin() + static_cast<long>(at),
                                                    text.begin() + static_cast<long>(end), '\n')),
                     '\n');
        at = end;
    }
    if (blank) return kept;
    return lines.empty()
               ? " "
               : lines + std::string(text.substr(std::min(text.find_last_not_of(" \t") + 1, text.size())));
}

bool is_word(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_'; }

// Whether two tokens might be read as one, or as others.
bool needs_blank(char before, char after) {
    if (is_word(before))
        return is_word(after) || std::string_view(".+-\"'").find(after) != std::string_view::npos;
    if (std::string_view(";,)]}").find(after) != std::string_view::npos ||
        std::string_view("([{").find(before) != std::string_view::npos)
        return false;
    return !is_word(after);
}

}  // namespace

namespace {

class IncludeListener : public clang::PPCallbacks {
public:
    explicit IncludeListener(std::multimap<std::string, Tokens::Include>& includes) : includes_(includes) {}
    void InclusionDirective(SourceLocation where, const clang::Token&, llvm::StringRef name, bool,
                            clang::CharSourceRange, clang::OptionalFileEntryRef file, llvm::StringRef,
                            llvm::StringRef, const clang::Module*, bool,
                            clang::SrcMgr::CharacteristicKind) override {
        if (file) includes_.emplace(file->getName().str(), Tokens::Include{where, "<" + name.str() + ">"});
    }

private:
    std::multimap<std::string, Tokens::Include>& includes_;
};

}  // namespace

void Tokens::watch(clang::Preprocessor& preprocessor) {
    preprocessor.addPPCallbacks(std::make_unique<IncludeListener>(includes_));
    preprocessor.setTokenWatcher([this](const clang::Token& token) {
        if (token.isAnnotation() || token.is(clang::tok::eof)) return;
        all_.push_back({token.getLocation(), token.getLength(), token.getKind()});
    });
}

void Tokens::finish(const clang::ASTContext& context) {
    context_ = &context;
    index_.reserve(static_cast<unsigned>(all_.size()));
    for (unsigned i = 0; i < all_.size(); ++i) index_.try_emplace(all_[i].where, i);
}

const clang::SourceManager& Tokens::sources() const { return context_->getSourceManager(); }

unsigned Tokens::find(SourceLocation place, unsigned otherwise) const {
    if (place.isInvalid()) return otherwise;
    auto found = index_.find(place);
    if (found == index_.end()) found = index_.find(place.getLocWithOffset(-1));  // the second half of >>
    return found == index_.end() ? otherwise : found->second;
}

// What stands ahead of a declaration begins behind the end of the one before.
Span Tokens::around(clang::SourceRange range) const {
    const unsigned none = static_cast<unsigned>(all_.size());
    unsigned begin = find(range.getBegin(), none), end = find(range.getEnd(), none);
    if (begin == none || end == none || end < begin) return {};
    auto ends_another = [](TokenKind kind) {
        return kind == TokenKind::semi || kind == TokenKind::l_brace || kind == TokenKind::r_brace ||
               kind == TokenKind::colon;
    };
    while (begin > 0 && !ends_another(all_[begin - 1].kind)) --begin;
    ++end;
    if (end < none && all_[end].kind == TokenKind::semi) ++end;
    return {begin, end};
}

std::string Tokens::spelling(unsigned index) const {
    const Token& token = all_[index];
    return std::string(sources().getCharacterData(sources().getSpellingLoc(token.where)), token.length);
}

std::string Tokens::line_directive(unsigned index, const std::string& main_path,
                                   const std::string& main_name) const {
    const clang::PresumedLoc shown = sources().getPresumedLoc(sources().getExpansionLoc(all_[index].where));
    if (shown.isInvalid()) return "";
    const std::string file = shown.getFilename() == main_path ? main_name : std::string(shown.getFilename());
    return fmt::format("#line {} \"{}\"\n", shown.getLine(), file);
}

// The outermost one of CUDA's macros that it comes out of.
Tokens::Macro Tokens::cuda_macro(SourceLocation place) const {
    Macro found;
    while (place.isMacroID()) {
        const bool argument = sources().isMacroArgExpansion(place);
        // Of an argument the parameter in the macro's body.
        const SourceLocation body = argument ? sources().getImmediateExpansionRange(place).getBegin() : place;
        const SourceLocation use = sources().getImmediateExpansionRange(body).getBegin(),
                             spelled = sources().getSpellingLoc(use);
        const std::string name(sources().getCharacterData(spelled),
                               clang::Lexer::MeasureTokenLength(spelled, sources(), context_->getLangOpts()));
        if (is_call(name) || kWords.count(name) != 0) found = {use, name, argument};
        place = sources().getImmediateMacroCallerLoc(place);
    }
    return found;
}

// Of two tokens that come out of one macro: as they stand in the macro, or in its parentheses.
std::string Tokens::inner_gap(const Token& before, const Token& after) const {
    const auto [file, begin] = sources().getDecomposedLoc(sources().getSpellingLoc(before.where));
    const auto [other, end] = sources().getDecomposedLoc(sources().getSpellingLoc(after.where));
    if (file != other || begin + before.length > end) return " ";
    const llvm::StringRef between =
        sources().getBufferData(file).substr(begin + before.length, end - begin - before.length);
    return between.empty() ? "" : " ";
}

std::string Tokens::gap(const Token& before, const Token& after) const {
    const auto end_of = [&](const Token& token) {
        return token.where.isMacroID()
                   ? clang::Lexer::getLocForEndOfToken(sources().getExpansionRange(token.where).getEnd(), 0,
                                                       sources(), context_->getLangOpts())
                   : token.where.getLocWithOffset(static_cast<int>(token.length));
    };
    if (before.where.isMacroID() && after.where.isMacroID() &&
        sources().getExpansionLoc(before.where) == sources().getExpansionLoc(after.where))
        return inner_gap(before, after);
    const SourceLocation from = end_of(before), to = sources().getExpansionLoc(after.where);
    const auto [file, begin] = sources().getDecomposedLoc(from);
    const auto [other, end] = sources().getDecomposedLoc(to);
    if (file != other || begin > end) return " ";
    const std::string blanks = only_blanks(sources().getBufferData(file).substr(begin, end - begin));
    if (!blanks.empty() || (before.where.isFileID() && after.where.isFileID())) return blanks;
    const auto letter = [&](const Token& token, unsigned at) {
        return sources().getCharacterData(sources().getSpellingLoc(token.where))[at];
    };
    return needs_blank(letter(before, before.length - 1), letter(after, 0)) ? " " : "";
}

std::string Tokens::write(Span span, std::vector<Change> changes,
                          const std::map<unsigned, std::string>& ahead) const {
    std::sort(changes.begin(), changes.end(),
              [](const Change& a, const Change& b) { return a.span.begin < b.span.begin; });
    auto change = changes.begin();
    std::string text;
    Macro open;  // whose parentheses are being written
    auto close = [&] {
        if (open.use.isValid() && is_call(open.name))
            text += open.argument ? ")" : "true)";  // assert() with NDEBUG
        open = {};
    };
    for (unsigned at = span.begin; at < span.end; ++at) {
        while (change != changes.end() && change->span.end <= at) ++change;
        const bool changed = change != changes.end() && change->span.contains(at);
        const Macro macro = changed ? Macro{} : cuda_macro(all_[at].where);
        const bool same = macro.use.isValid() && open.use == macro.use;
        if (same && !macro.argument) continue;
        if (same) open.argument = true;
        if (!same) close();
        std::string before = at == span.begin ? "" : gap(all_[at - 1], all_[at]);
        if (auto line = ahead.find(at); line != ahead.end()) {
            const size_t first = before.find('\n'),
                         second = first == before.npos ? first : before.find('\n', first + 1);
            before = "\n" + line->second +
                     (second == before.npos ? "\n" : before.substr(second));  // on as many lines
        }
        if (changed) {
            text +=
                at == change->span.begin
                    ? (change->text == ";" ? "" : before) + change->text
                    : std::string(static_cast<size_t>(std::count(before.begin(), before.end(), '\n')), '\n');
            continue;
        }
        if (!same && macro.use.isValid()) {
            text += before + macro.name + (is_call(macro.name) ? "(" : "");
            open = macro;
            if (macro.argument) text += spelling(at);
            continue;
        }
        text += (same && text.back() == '(' ? "" : before) + spelling(at);
    }
    close();
    return text;
}

}  // namespace smt::rewriter::source
