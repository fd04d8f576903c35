// What a name that is none may be a typo of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace smt::settings {

// Insertions, deletions, replacements and swaps of neighbours that make one of the other.
size_t edit_distance(std::string_view from, std::string_view to);

// "; do you mean policy?" for the nearest of `names`; empty: none is near.
std::string suggestion(std::string_view name, const std::vector<std::string>& names);

}  // namespace smt::settings
