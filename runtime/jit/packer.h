// Values to bytes and back, for messages.cpp and opened_messages.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/protocol/codec.h"

namespace smt::runtime::jit {

// What protocol::Writer writes, into a string that grows.
class Packer {
public:
    template <typename T>
    void scalar(T value) {
        static_assert(std::is_trivially_copyable_v<T>);
        raw(&value, sizeof value);
    }
    void array(std::string_view bytes) {
        scalar<uint64_t>(bytes.size());
        raw(bytes.data(), bytes.size());
    }
    void string(const std::string& text) {
        scalar<uint64_t>(text.size() + 1);
        raw(text.c_str(), text.size() + 1);
    }
    void list(const std::vector<std::string>& texts) {
        scalar<uint64_t>(texts.size());
        for (const std::string& text : texts) string(text);
    }
    std::string take() { return std::move(bytes_); }

private:
    void raw(const void* from, size_t count) {
        bytes_.append(static_cast<const char*>(from), count);
        bytes_.append((8 - count % 8) % 8, '\0');
    }
    std::string bytes_;
};

template <typename T>
std::optional<T> if_whole(const protocol::Reader& reader, T value) {
    if (!reader.good() || reader.left() != 0) return std::nullopt;
    return value;
}

inline std::string read_array(protocol::Reader& reader) {
    uint64_t bytes = 0;
    const char* data = reader.array<char>(bytes);
    return data ? std::string(data, bytes) : "";
}

}  // namespace smt::runtime::jit
