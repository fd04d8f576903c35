// The sources that `smt index` found for images that nvcc made: files beside the cache's, in its folder
// `index`.
//
// Most images are in no index, and they are large. So an image is looked for in two steps: a hash of its size
// and its ends, which costs next to nothing, names a small file that says that some such image is known; only
// then all of it is hashed. Nothing is evicted: what is compiled can be compiled again, a source cannot be
// found again.
//
// Any thread, several processes. A file that is damaged counts as absent (cache.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/jit/cache.h"
#include "runtime/jit/source.h"

namespace smt::runtime::jit {

bool is_fatbin(std::string_view image);
// What an image is known by: a hash of its bytes.
std::string identity_of(std::string_view image);

class SourceIndex {
public:
    // `cache_folder`: empty means that there is none.
    SourceIndex(const std::string& cache_folder, Cache::Say say);

    std::optional<Indexed> find(std::string_view image);
    bool has(std::string_view image);  // the first step only: false is certain
    // False: it could not be written; `say` has the reason.
    bool store(std::string_view image, const Indexed& indexed);
    void remove(std::string_view image);

    std::vector<Indexed> list();
    uint64_t clear() { return files_.clear(); }  // bytes
    const std::string& folder() const { return files_.folder(); }

private:
    Cache files_;
};

}  // namespace smt::runtime::jit
