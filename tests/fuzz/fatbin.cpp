// The server's reader of images on broken images: entries within the image, expansions as long as they say.
#include <cstdlib>

#include "runtime/image/choice.h"
#include "runtime/image/kernel_facts.h"

namespace {

constexpr uint64_t kMostExpanded = 1 << 20;  // of what is expanded here, for the time it takes

using namespace smt::image;

void check(const Entry& entry, std::string_view image) {
    if (entry.stored.data() < image.data() ||
        entry.stored.data() + entry.stored.size() > image.data() + image.size())
        std::abort();
    if (entry.bytes > kMostExpanded) return;
    auto expanded = expand(entry);
    auto* bytes = std::get_if<std::string>(&expanded);
    if (!bytes) return;
    if (bytes->size() > entry.bytes) std::abort();
    if (entry.kind == Kind::kCubin) (void)kernel_facts(*bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
    std::string_view image(reinterpret_cast<const char*>(data), size);
    (void)kernel_facts(image);
    auto entries = read(image);
    auto* found = std::get_if<std::vector<Entry>>(&entries);
    if (!found) return std::get<Problem>(entries).text.empty() ? std::abort(), 0 : 0;
    for (const Entry& entry : *found) check(entry, image);
    for (int architecture : {0, 75, 90, 120, -1}) {
        (void)best_ptx(*found, architecture);
        (void)best_cubin(*found, architecture);
    }
    return 0;
}
