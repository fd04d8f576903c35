#include "runtime/server/code/spare_images.h"

#include <iterator>
#include <utility>

namespace smt::runtime::server {

std::optional<SpareImage> SpareImages::take(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(images_.rbegin(), images_.rend(),
                                    [&](const SpareImage& each) { return each.key == key; });
    if (found == images_.rend()) return std::nullopt;
    SpareImage image = std::move(*found);
    images_.erase(std::next(found).base());
    bytes_ -= image.bytes;
    return image;
}

std::vector<SpareImage> SpareImages::keep(SpareImage image) {
    const std::lock_guard lock(mutex_);
    bytes_ += image.bytes;
    images_.push_back(std::move(image));
    std::vector<SpareImage> leave;
    for (; bytes_ > most_bytes_; images_.pop_front()) {
        bytes_ -= images_.front().bytes;
        leave.push_back(std::move(images_.front()));
    }
    return leave;
}

std::vector<SpareImage> SpareImages::take_all() {
    const std::lock_guard lock(mutex_);
    bytes_ = 0;
    std::vector<SpareImage> all(std::make_move_iterator(images_.begin()),
                                std::make_move_iterator(images_.end()));
    images_.clear();
    return all;
}

void unload(const DriverApi& driver, const std::vector<SpareImage>& images) {
    for (const SpareImage& each : images) {
        if (each.library)
            driver.cuLibraryUnload(each.library);
        else
            driver.cuModuleUnload(each.module);
    }
}

}  // namespace smt::runtime::server
