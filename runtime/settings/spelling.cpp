#include "runtime/settings/spelling.h"

#include <algorithm>

namespace smt::settings {

namespace {

// A third of the name may be wrong, and three characters at most.
size_t farthest(std::string_view name) { return std::min<size_t>(3, name.size() / 3); }

}  // namespace

size_t edit_distance(std::string_view from, std::string_view to) {
    const size_t width = to.size() + 1;
    std::vector<size_t> table((from.size() + 1) * width);
    const auto at = [&](size_t row, size_t column) -> size_t& { return table[row * width + column]; };
    for (size_t row = 0; row <= from.size(); ++row) {
        for (size_t column = 0; column < width; ++column) {
            if (row == 0 || column == 0) {
                at(row, column) = row + column;
                continue;
            }
            const bool same = from[row - 1] == to[column - 1];
            at(row, column) =
                std::min({at(row - 1, column) + 1, at(row, column - 1) + 1, at(row - 1, column - 1) + !same});
            const bool swapped =
                row > 1 && column > 1 && from[row - 1] == to[column - 2] && from[row - 2] == to[column - 1];
            if (swapped) at(row, column) = std::min(at(row, column), at(row - 2, column - 2) + 1);
        }
    }
    return table.back();
}

std::string suggestion(std::string_view name, const std::vector<std::string>& names) {
    const std::string* nearest = nullptr;
    size_t distance = farthest(name) + 1;
    for (const std::string& each : names) {
        if (const size_t its = edit_distance(name, each); its < distance) distance = its, nearest = &each;
    }
    return nearest ? "; do you mean " + *nearest + "?" : "";
}

}  // namespace smt::settings
