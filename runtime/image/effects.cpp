#include "runtime/image/effects.h"

#include "runtime/image/choice.h"

namespace smt::image {

std::variant<Effects, Problem> effects(std::string_view image, int architecture) {
    const auto entries = read(image);
    if (const auto* problem = std::get_if<Problem>(&entries)) return *problem;
    const Entry* const ptx = best_ptx(std::get<std::vector<Entry>>(entries), architecture);
    if (!ptx) return Problem{"the image has no PTX for the device"};
    const Entry* const code = best_cubin(std::get<std::vector<Entry>>(entries), architecture);
    if (code && (code->architecture != ptx->architecture || code->variant != ptx->variant))
        return Problem{"its PTX is for another architecture than its machine code"};
    const auto text = expand(*ptx);
    if (const auto* problem = std::get_if<Problem>(&text)) return *problem;
    auto found = ptx::effects_in(std::get<std::string>(text));
    if (const auto* diagnostic = std::get_if<ptx::Diagnostic>(&found))
        return Problem{"its PTX cannot be read: " + ptx::to_string(*diagnostic)};
    return std::move(std::get<Effects>(found));
}

}  // namespace smt::image
