// Loaded code that no session has any more. A session that loads the same code gets it in place of a load,
// for which the driver would wait until the context is idle, and so would all tenants. An image is one
// session's at a time, so a fault in it is that session's.
//
//     keep(A)   keep(B)   take(A's key) = A   take(A's key): none
//
// Bounded in bytes of code and variables; what has been spare for longest leaves, and is the caller's to
// unload. Any thread.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "driver_api.gen.h"

namespace smt::runtime::server {

struct SpareImage {
    std::string key;  // of all that a load depends on
    uint64_t bytes = 0;
    CUmodule module = nullptr;           // of a library: null before its first use
    CUlibrary library = nullptr;         // null: it was loaded as a module
    std::set<std::string> kernels = {};  // that the driver has loaded
};

class SpareImages {
public:
    // A larger image would push out all others, and its key costs more than its load.
    static constexpr uint64_t kLargest = 16u << 20;

    explicit SpareImages(uint64_t most_bytes) : most_bytes_(most_bytes) {}

    bool keeps(uint64_t bytes) const { return bytes <= std::min(kLargest, most_bytes_); }
    std::optional<SpareImage> take(const std::string& key);  // the one that came last
    // Precondition: keeps(image.bytes). Returns what leaves for it.
    std::vector<SpareImage> keep(SpareImage image);
    std::vector<SpareImage> take_all();

private:
    const uint64_t most_bytes_;
    std::mutex mutex_;
    uint64_t bytes_ = 0;
    std::deque<SpareImage> images_;  // the oldest first
};

// The driver waits until the context is idle.
void unload(const DriverApi& driver, const std::vector<SpareImage>& images);

}  // namespace smt::runtime::server
