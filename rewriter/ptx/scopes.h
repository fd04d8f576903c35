// Which names are declared where the parser stands, and what they name. Labels may be used before they
// appear, within the scope that holds them or a scope inside it; everything else is declared first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rewriter/ptx/lexer.h"

namespace smt::ptx {

class Scopes {
public:
    enum class Kind : uint8_t { kRegister, kSymbol, kLabel };

    void enter() { scopes_.emplace_back(); }
    // Labels that were used and not found so far go to the scope around.
    void leave();
    size_t depth() const { return scopes_.size(); }

    // False: the innermost scope has this name already.
    bool declare(const std::string& name, Kind kind);
    // In the scope around the innermost one; several times is well.
    void declare_outside(const std::string& name, Kind kind) {
        scopes_[scopes_.size() - 2].names.emplace(name, kind);
    }
    // name0, name1 ... count of them
    bool declare_numbered(const std::string& name, uint32_t count);
    void use_label(const Token& token) { scopes_.back().used_labels.push_back(token); }

    std::optional<Kind> find(std::string_view name) const;
    // A label that was used and is nowhere; asked before the outermost scope of a function is left.
    const Token* missing_label();

private:
    struct Scope {
        std::unordered_map<std::string, Kind> names;
        std::unordered_map<std::string, uint32_t> numbered;
        std::vector<Token> used_labels;
    };
    static void drop_found(Scope& scope);

    std::vector<Scope> scopes_;
};

}  // namespace smt::ptx
