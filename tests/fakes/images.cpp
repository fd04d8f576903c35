// Images of the fake driver. An image is a text:
//
//   FAKE
//   kernel NAME params BYTES,BYTES,...     (or just: kernel NAME)
//   global NAME BYTES
//   texture NAME
//
// Anything else in it is ignored. A cubin is an image without kernels; what else there is, PTX too, is
// refused.
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "fake.h"

namespace fake {

namespace {

struct FakeImage final : Image {
    ~FakeImage() override {
        for (auto& [name, global] : globals) free(reinterpret_cast<void*>(global.address));
    }
};

size_t aligned(size_t at, size_t bytes) {
    const size_t alignment = bytes < 8 ? bytes : 8;
    return (at + alignment - 1) / alignment * alignment;
}

std::unique_ptr<Function> read_function(Image* image, std::istringstream& line, const std::string& name) {
    auto function = std::make_unique<Function>();
    function->image = image;
    function->name = name;
    std::string word, sizes;
    if (line >> word >> sizes && word == "params") {
        std::istringstream list(sizes);
        for (std::string size; std::getline(list, size, ',');) {
            const size_t bytes = strtoul(size.c_str(), nullptr, 10);
            const size_t offset = aligned(function->parameter_bytes, bytes);
            function->parameters.push_back({offset, bytes});
            function->parameter_bytes = offset + bytes;
        }
    }
    return function;
}

}  // namespace

CUresult load(const void* text, std::unique_ptr<Image>* loaded) {
    if (strncmp(static_cast<const char*>(text), "\177ELF", 4) == 0)
        return *loaded = std::make_unique<FakeImage>(), CUDA_SUCCESS;
    if (strncmp(static_cast<const char*>(text), "FAKE\n", 5) != 0) return CUDA_ERROR_INVALID_IMAGE;
    auto image = std::make_unique<FakeImage>();
    std::istringstream lines(static_cast<const char*>(text));
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string what, name;
        if (!(words >> what >> name)) continue;
        if (what == "kernel") {
            image->functions[name] = read_function(image.get(), words, name);
        } else if (what == "texture") {
            image->textures[name] = std::make_unique<TextureReference>();
        } else if (what == "global") {
            size_t bytes = 0;
            words >> bytes;
            const auto [global, is_new] = image->globals.try_emplace(name);
            if (is_new) global->second = {reinterpret_cast<CUdeviceptr>(calloc(1, bytes)), bytes};
        }
    }
    *loaded = std::move(image);
    return CUDA_SUCCESS;
}

}  // namespace fake
