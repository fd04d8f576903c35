// The entries of a module image: which code it holds, for which architectures.
//
//   auto entries = image::read(bytes);                  // fatbin, cubin or PTX text
//   const Entry* ptx = image::best_ptx(entries, 90);    // the newest that an sm_90 device can run (choice.h)
//   auto text = image::expand(*ptx);                    // decompressed
//
// A fatbin is a header and entries, each a header and its bytes, as they are or compressed:
//
//   magic, version, header bytes, payload bytes | kind, header bytes, stored bytes, architecture, flags ...
//   bytes | ...
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace smt::image {

struct Problem {
    std::string text;
};

enum class Kind : uint8_t {
    kPtx,
    kCubin,
    kOther,  // link-time code and the like, which only NVIDIA's linker reads
};

enum class Compression : uint8_t { kNone, kLz4, kZstd };

struct Entry {
    Kind kind = Kind::kOther;
    int architecture = 0;  // 90 for sm_90; 0: PTX text that names no target
    // sm_90a runs on compute capability 9.0 only, sm_100f on 10.0 and later of the same family. 0: neither.
    char variant = 0;
    Compression compression = Compression::kNone;
    uint64_t bytes = 0;       // after expand(), padding included
    std::string_view stored;  // in the image
};

// An entry may be larger than this for no compiler's reason.
constexpr uint64_t kMostBytes = 512ull << 20;

// Entries in the image's order; a cubin or a text is one. An image without entries is a Problem.
[[nodiscard]] std::variant<std::vector<Entry>, Problem> read(std::string_view image);

// By its first bytes.
bool is_fatbin(std::string_view bytes);
// Of a fatbin that begins there, header and entries; 0: they are not all there.
uint64_t fatbin_bytes(std::string_view bytes);

// A fatbin without entries, which nvcc links into a program whose only code is PTX.
bool is_empty_fatbin(std::string_view bytes);

// The entry's bytes; a text without the NULs behind it.
[[nodiscard]] std::variant<std::string, Problem> expand(const Entry& entry);

// sm_90a, compute_100f
std::string target_of(const Entry& entry);

}  // namespace smt::image
