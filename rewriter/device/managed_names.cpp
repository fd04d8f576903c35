// The name gets a prefix, and the parameters one more at the end. What symbols abbreviate by number stands
// ahead of both, or does not change by them.
#include "rewriter/device/managed_names.h"

#include <cctype>
#include <charconv>

namespace smt {

namespace {

constexpr std::string_view kLaunch = "N3smt6LaunchE";

// Where the last identifier of a mangled name begins, with its length before it: the function's own name
// is the last <source-name> before its template arguments or parameters.
struct Place {
    size_t at = std::string_view::npos;
    size_t digits = 0;
    size_t length = 0;
};

Place read_identifier(std::string_view symbol, size_t at) {
    Place place{at, 0, 0};
    while (at + place.digits < symbol.size() &&
           std::isdigit(static_cast<unsigned char>(symbol[at + place.digits])))
        ++place.digits;
    if (place.digits == 0) return {};
    std::from_chars(symbol.data() + at, symbol.data() + at + place.digits, place.length);
    if (at + place.digits + place.length > symbol.size()) return {};
    return place;
}

Place find_name(std::string_view symbol) {
    size_t at = 2;
    const bool nested = symbol.substr(at, 1) == "N";
    if (nested) ++at;
    if (symbol.substr(at, 1) == "L") ++at;  // of internal linkage
    Place last = read_identifier(symbol, at);
    if (!nested) return last;
    while (last.at != std::string_view::npos) {
        size_t next = last.at + last.digits + last.length;
        if (symbol.substr(next, 1) == "L") ++next;
        const Place place = read_identifier(symbol, next);
        if (place.at == std::string_view::npos) break;
        last = place;
    }
    return last;
}

}  // namespace

std::string managed_name(std::string_view name, Reuse reuse) {
    return std::string(prefix_of(reuse)) + std::string(name);
}

std::string managed_symbol(std::string_view symbol, Reuse reuse) {
    if (symbol.empty() || symbol.ends_with(kLaunch)) return {};
    if (!symbol.starts_with("_Z")) return managed_name(symbol, reuse);
    const Place name = find_name(symbol);
    if (name.at == std::string_view::npos) return {};
    const std::string managed = managed_name(symbol.substr(name.at + name.digits, name.length), reuse);
    std::string_view rest = symbol.substr(name.at + name.digits + name.length);
    // "v" instead of parameters: after the name, or after a template's own "v" for what it returns.
    if (rest == "v" || rest == "Ev" || rest.ends_with("Evv")) rest.remove_suffix(1);
    return std::string(symbol.substr(0, name.at)) + std::to_string(managed.size()) + managed +
           std::string(rest) + std::string(kLaunch);
}

}  // namespace smt
