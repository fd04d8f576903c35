#include "runtime/jit/index.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "runtime/jit/digest.h"
#include "runtime/jit/messages.h"

namespace smt::runtime::jit {

namespace {

constexpr uint32_t kFatbinMagic = 0xba55ed50;
constexpr size_t kEndBytes = 32 << 10;
constexpr uint64_t kNoLimit = ~0ull;
constexpr std::string_view kLayout = "1";  // of the files; another one is another key

// A text's final NULs are no part of it: callers differ in whether they count them.
std::string_view content(std::string_view image) {
    if (!is_fatbin(image) && !image.starts_with("\177ELF")) {
        while (!image.empty() && image.back() == '\0') image.remove_suffix(1);
    }
    return image;
}

std::string sketch_key(std::string_view image) {
    const size_t end = std::min(image.size(), kEndBytes);
    return digest({"sketch", kLayout, std::to_string(image.size()), image.substr(0, end),
                   image.substr(image.size() - end)});
}

std::string entry_key(std::string_view image) { return digest({"indexed", kLayout, identity_of(image)}); }

}  // namespace

bool is_fatbin(std::string_view image) {
    uint32_t magic = 0;
    if (image.size() < sizeof magic) return false;
    std::memcpy(&magic, image.data(), sizeof magic);
    return magic == kFatbinMagic;
}

std::string identity_of(std::string_view image) { return digest({"image", content(image)}); }

SourceIndex::SourceIndex(const std::string& cache_folder, Cache::Say say)
    : files_(cache_folder.empty() ? "" : cache_folder + "/index", kNoLimit, std::move(say)) {}

bool SourceIndex::has(std::string_view image) {
    if (folder().empty() || access(folder().c_str(), R_OK) != 0) return false;
    return access((folder() + "/" + sketch_key(image)).c_str(), R_OK) == 0;
}

std::optional<Indexed> SourceIndex::find(std::string_view image) {
    if (!has(image)) return std::nullopt;
    std::optional<std::string> bytes = files_.load(entry_key(image));
    return bytes ? decode_indexed(*bytes) : std::nullopt;
}

bool SourceIndex::store(std::string_view image, const Indexed& indexed) {
    files_.store(entry_key(image), encode(indexed));
    files_.store(sketch_key(image), "");
    return has(image);
}

// The sketch stays: another image may have the same, and all that it costs is a hash.
void SourceIndex::remove(std::string_view image) { unlink((folder() + "/" + entry_key(image)).c_str()); }

std::vector<Indexed> SourceIndex::list() {
    std::vector<Indexed> all;
    for (const Cache::File& file : files_.list()) {
        std::optional<std::string> bytes = files_.load(file.key);
        std::optional<Indexed> indexed = bytes && !bytes->empty() ? decode_indexed(*bytes) : std::nullopt;
        if (indexed) all.push_back(std::move(*indexed));
    }
    return all;
}

}  // namespace smt::runtime::jit
