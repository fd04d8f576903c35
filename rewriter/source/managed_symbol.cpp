// From a kernel's symbol to that of its managed form: its name gets a prefix and its parameters one more at
// the end. What symbols abbreviate by number stands ahead of both, or does not change by them.
#include "rewriter/source/managed_symbol.h"

namespace smt::rewriter::source {

std::string managed_name(const std::string& name, Reuse reuse) { return std::string(prefix_of(reuse)) + name; }

std::string managed_symbol(const std::string& symbol, const std::string& name, Reuse reuse) {
    const std::string managed = managed_name(name, reuse);
    if (!symbol.starts_with("_Z")) return symbol == name ? managed : "";
    const std::string spelled = std::to_string(name.size()) + name;
    const size_t at = symbol.find(spelled);
    if (at == std::string::npos) return "";
    std::string head = symbol.substr(0, at) + std::to_string(managed.size()) + managed;
    std::string rest = symbol.substr(at + spelled.size());
    // "v" instead of parameters: after the name, or after a template's own "v" for what it returns.
    if (rest == "v" || rest == "Ev" || rest.ends_with("Evv")) rest.pop_back();
    return head + rest + "N3smt6LaunchE";
}

}  // namespace smt::rewriter::source
