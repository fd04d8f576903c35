// What a server writes of a session for the process that takes it over, in the encoding of codec.h. Both are
// of one build, so there is no older format.
//
//   StateWriter out;  out.part('MEMO'); out.scalar(x); out.list(values); out.text(name);
//   Reader in(...);   if (take_part(in, 'MEMO')) x = in.scalar<X>(), values = take_list<V>(in), ...
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/protocol/codec.h"

namespace smt::protocol {

class StateWriter {
public:
    template <typename T>
    void scalar(const T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        bytes(&value, sizeof value);
    }
    template <typename T>
    void list(const std::vector<T>& values) {
        static_assert(std::is_trivially_copyable_v<T>);
        scalar<uint64_t>(values.size());
        bytes(values.data(), values.size() * sizeof(T));
    }
    void text(std::string_view text) {
        scalar<uint64_t>(text.size());
        bytes(text.data(), text.size());
    }
    void part(uint32_t tag) { scalar(tag); }  // what follows is that part
    void reserve(size_t bytes) { all_.reserve(all_.size() + bytes); }
    const std::string& all() const { return all_; }
    std::string take() { return std::move(all_); }

private:
    void bytes(const void* from, size_t count) {
        if (count) all_.append(static_cast<const char*>(from), count);
        all_.resize((all_.size() + 7) & ~size_t{7});
    }

    std::string all_;
};

// False: another part follows, or none; the reader is bad from then on.
inline bool take_part(Reader& in, uint32_t tag) {
    if (in.scalar<uint32_t>() != tag) in.reject();
    return in.good();
}
template <typename T>
std::vector<T> take_list(Reader& in) {
    uint64_t count = 0;
    const T* from = in.array<T>(count);
    return from ? std::vector<T>(from, from + count) : std::vector<T>();
}
inline std::string take_text(Reader& in) {
    uint64_t count = 0;
    const char* from = in.array<char>(count);
    return from ? std::string(from, count) : std::string();
}

}  // namespace smt::protocol
