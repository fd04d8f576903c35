// What a fence knows of an image's functions.
#include "runtime/server/code/code_table.h"

namespace smt::runtime::server {

std::string CodeTable::function_in(uint64_t image, uint32_t function) const {
    const ImagePointer found = image == static_cast<uint32_t>(image) ? this->image(image) : nullptr;
    return found && function < found->fenced.size() ? found->fenced[function].name : "";
}

std::shared_ptr<const std::string> CodeTable::why_refused(const Image& image, const char* name) {
    for (const jit::FencedFunction& each : image.fenced)
        if (each.name == name && !each.reason.empty())
            return std::make_shared<const std::string>(each.name + ", which cannot be fenced (it " +
                                                       each.reason + "),");
    return nullptr;
}

}  // namespace smt::runtime::server
