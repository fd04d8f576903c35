// Images made by hand.
#pragma once

#include <lz4.h>
#include <zstd.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace smt::image {

constexpr uint64_t kZstd = 0x8000, kLz4 = 0x2000, kSpecific = 0x100000, kFamily = 0x200000;

template <typename T>
void append(std::string& bytes, T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

struct Made {
    uint16_t kind;
    uint32_t architecture;
    uint64_t flags;
    std::string stored;
    uint64_t bytes = 0;  // decompressed
};

inline std::string entry(const Made& made) {
    std::string stored = made.stored;
    stored.resize((stored.size() + 7) / 8 * 8);
    std::string bytes;
    append<uint16_t>(bytes, made.kind);
    append<uint16_t>(bytes, 0x101);
    append<uint32_t>(bytes, 64);
    append<uint64_t>(bytes, stored.size());
    append<uint32_t>(bytes, made.bytes ? static_cast<uint32_t>(made.stored.size()) : 0);
    append<uint32_t>(bytes, 0);
    append<uint32_t>(bytes, 8 << 16);
    append<uint32_t>(bytes, made.architecture);
    append<uint64_t>(bytes, 0);
    append<uint64_t>(bytes, made.flags | 0x11);
    append<uint64_t>(bytes, 0);
    append<uint64_t>(bytes, made.bytes);
    return bytes + stored;
}

inline std::string fatbin(const std::vector<Made>& made) {
    std::string payload, bytes;
    for (const Made& one : made) payload += entry(one);
    append<uint32_t>(bytes, 0xba55ed50);
    append<uint16_t>(bytes, 1);
    append<uint16_t>(bytes, 16);
    append<uint64_t>(bytes, payload.size());
    return bytes + payload;
}

inline std::string zstd(const std::string& text) {
    std::string out(ZSTD_compressBound(text.size()), '\0');
    out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
    return out;
}

inline std::string lz4(const std::string& text) {
    std::string out(LZ4_compressBound(static_cast<int>(text.size())), '\0');
    out.resize(LZ4_compress_default(text.data(), out.data(), static_cast<int>(text.size()),
                                    static_cast<int>(out.size())));
    return out;
}

// Compiled for sm_75: one kernel k. Its section headers are where e_shoff says.
inline std::string small_cubin() {
    std::ostringstream text;
    text << std::ifstream(SMT_SMALL_CUBIN, std::ios::binary).rdbuf();
    return text.str();
}

}  // namespace smt::image
