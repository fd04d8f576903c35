#include "runtime/dispatch/symbols.h"

#include <cctype>
#include <charconv>

namespace smt::runtime::dispatch {

namespace {

constexpr std::string_view kPrefix = "smt_";   // of all of them
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
    while (at + place.digits < symbol.size() && std::isdigit(static_cast<unsigned char>(symbol[at + place.digits]))) ++place.digits;
    if (place.digits == 0) return {};
    std::from_chars(symbol.data() + at, symbol.data() + at + place.digits, place.length);
    if (at + place.digits + place.length > symbol.size()) return {};
    return place;
}

Place find_name(std::string_view symbol) {
    size_t at = 2;
    const bool nested = symbol.substr(at, 1) == "N";
    if (nested) ++at;
    if (symbol.substr(at, 1) == "L") ++at;   // of internal linkage
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

std::string managed_symbol(std::string_view symbol, Reuse reuse) {
    const std::string_view prefix = prefix_of(reuse);
    if (symbol.empty() || symbol.starts_with(kPrefix)) return {};
    if (!symbol.starts_with("_Z")) return std::string(prefix) + std::string(symbol);
    const Place name = find_name(symbol);
    if (name.at == std::string_view::npos) return {};
    const std::string_view identifier = symbol.substr(name.at + name.digits, name.length);
    if (identifier.starts_with(kPrefix)) return {};
    std::string managed(symbol.substr(0, name.at));
    managed += std::to_string(name.length + prefix.size());
    managed += prefix;
    managed += identifier;
    std::string_view rest = symbol.substr(name.at + name.digits + name.length);
    // No parameters are written as one, void.
    if (rest.ends_with("v") && (rest == "v" || rest.ends_with("Ev") || rest.ends_with("vv"))) rest.remove_suffix(1);
    managed += rest;
    managed += kLaunch;
    return managed;
}

}  // namespace smt::runtime::dispatch
