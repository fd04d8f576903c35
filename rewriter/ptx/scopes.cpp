#include "rewriter/ptx/scopes.h"

#include <algorithm>
#include <charconv>

namespace smt::ptx {

void Scopes::drop_found(Scope& scope) {
    std::erase_if(scope.used_labels, [&](const Token& token) {
        auto found = scope.names.find(std::string(token.text));
        return found != scope.names.end() && found->second == Kind::kLabel;
    });
}

void Scopes::leave() {
    Scope inner = std::move(scopes_.back());
    scopes_.pop_back();
    drop_found(inner);
    if (scopes_.empty()) return;
    auto& outer = scopes_.back().used_labels;
    outer.insert(outer.end(), inner.used_labels.begin(), inner.used_labels.end());
}

const Token* Scopes::missing_label() {
    drop_found(scopes_.back());
    return scopes_.back().used_labels.empty() ? nullptr : &scopes_.back().used_labels.front();
}

bool Scopes::declare(const std::string& name, Kind kind) {
    if (name == "_") return true;
    return scopes_.back().names.emplace(name, kind).second;
}

bool Scopes::declare_numbered(const std::string& name, uint32_t count) {
    return scopes_.back().numbered.emplace(name, count).second;
}

namespace {

constexpr size_t kMostDigits = 10;

// %r12 under %r<20>, but not %r012: registers are numbered without leading zeros. The number may also begin
// later
// (%r1<5> declares %r10).
bool is_numbered(std::string_view name, const std::unordered_map<std::string, uint32_t>& numbered) {
    if (numbered.empty()) return false;
    size_t first = std::max<size_t>(name.find_last_not_of("0123456789") + 1, 1);
    if (name.size() > first + kMostDigits) first = name.size() - kMostDigits;
    for (size_t split = first; split < name.size(); ++split) {
        uint32_t number = 0;
        if (name[split] == '0' && split + 1 < name.size()) continue;
        if (std::from_chars(name.data() + split, name.data() + name.size(), number).ec != std::errc())
            continue;
        auto found = numbered.find(std::string(name.substr(0, split)));
        if (found != numbered.end() && number < found->second) return true;
    }
    return false;
}

}  // namespace

std::optional<Scopes::Kind> Scopes::find(std::string_view name) const {
    std::string whole(name);
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
        if (auto found = scope->names.find(whole); found != scope->names.end()) return found->second;
        if (is_numbered(name, scope->numbered)) return Kind::kRegister;
    }
    return std::nullopt;
}

}  // namespace smt::ptx
