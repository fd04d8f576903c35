// Changes to a text, collected in any order and applied at the end.
#include "rewriter/source/edits.h"

#include <algorithm>

namespace smt::rewriter::source {

void Edits::replace(unsigned begin, unsigned end, std::string text) {
    for (const Edit& known : edits_)  // several rules may want the same
        if (known.begin == begin && known.end == end && known.text == text) return;
    edits_.push_back({begin, end, std::move(text)});
}

std::optional<std::string> Edits::apply(const std::string& text) const {
    std::vector<Edit> sorted = edits_;
    std::stable_sort(sorted.begin(), sorted.end(), [](const Edit& a, const Edit& b) {
        return a.begin != b.begin ? a.begin<b.begin : (a.end == a.begin)>(b.end == b.begin);
    });
    std::string result;
    unsigned at = 0;
    for (const Edit& edit : sorted) {
        if (edit.begin < at || edit.end > text.size()) return std::nullopt;
        result.append(text, at, edit.begin - at);
        result += edit.text;
        at = edit.end;
    }
    return result.append(text, at, std::string::npos);
}

}  // namespace smt::rewriter::source
