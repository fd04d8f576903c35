// Changes to a text, collected in any order and applied at the end.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace smt::rewriter::source {

class Edits {
public:
    // Insertions at one place appear in the order in which they were made.
    void insert(unsigned at, std::string text) { replace(at, at, std::move(text)); }
    void replace(unsigned begin, unsigned end, std::string text);
    bool empty() const { return edits_.empty(); }

    // Nothing, if two changes overlap.
    std::optional<std::string> apply(const std::string& text) const;

private:
    struct Edit {
        unsigned begin, end;
        std::string text;
    };
    std::vector<Edit> edits_;
};

}  // namespace smt::rewriter::source
