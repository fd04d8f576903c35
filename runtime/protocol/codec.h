// Encoding of a generated call's parameters. Both ends use it.
//
//   scalar  := its bytes, each parameter aligned to 8
//   array   := u64 count (kNull for a null pointer), then count elements, padded to 8
//   string  := array of char, with its NUL
//
// Writer does not write past the end of its buffer, and Reader does not read past the end of its data: good()
// becomes false instead. The caller checks it once, at the end. A Reader's data must be such that no client
// can write to it: a private copy of a record, or a file that clients do not have.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace smt::protocol {

inline constexpr uint64_t kNull = ~0ull;

class Writer {
public:
    Writer(void* data, size_t capacity) : data_(static_cast<char*>(data)), capacity_(capacity) {}

    template <typename T>
    void scalar(const T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        bytes(&value, sizeof(T));
    }
    template <typename T>
    void array(const T* values, uint64_t count) {
        static_assert(std::is_trivially_copyable_v<T>);
        scalar<uint64_t>(values ? count : kNull);
        if (values) bytes(values, count * sizeof(T));
    }
    void string(const char* text) { array(text, text ? std::strlen(text) + 1 : 0); }

    // `count` raw bytes, padded to 8.
    void bytes(const void* from, uint64_t count) {
        uint64_t padded = (count + 7) & ~7ull;
        if (count > capacity_ || padded > capacity_ - used_) {
            good_ = false;
            return;
        }
        if (count) std::memcpy(data_ + used_, from, count);
        if (padded != count) std::memset(data_ + used_ + count, 0, padded - count);
        used_ += padded;
    }

    // Space for `count` bytes that the caller fills, or nullptr. The padding is zeroed.
    char* space(uint64_t count) {
        uint64_t padded = (count + 7) & ~7ull;
        if (count > capacity_ || padded > capacity_ - used_) return good_ = false, nullptr;
        char* room = data_ + used_;
        if (padded != count) std::memset(room + count, 0, padded - count);
        used_ += padded;
        return room;
    }

    bool good() const { return good_; }
    size_t used() const { return used_; }

private:
    char* data_;
    size_t capacity_;
    size_t used_ = 0;
    bool good_ = true;
};

class Reader {
public:
    Reader(const void* data, size_t size) : data_(static_cast<const char*>(data)), size_(size) {}

    template <typename T>
    T scalar() {
        static_assert(std::is_trivially_copyable_v<T>);
        T value{};
        if (const char* from = take(sizeof(T))) std::memcpy(&value, from, sizeof(T));
        return value;
    }
    // The elements in place, or nullptr with count 0 for a null pointer or bad data. Elements are aligned to
    // 8 if the data is.
    template <typename T>
    const T* array(uint64_t& count) {
        static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 8);
        count = scalar<uint64_t>();
        if (!good_ || count == kNull) return count = 0, nullptr;
        if (count > size_ / sizeof(T)) return count = 0, good_ = false, nullptr;
        const T* from = reinterpret_cast<const T*>(take(count * sizeof(T)));
        if (!from) count = 0;
        return from;
    }
    // A NUL-terminated string in place, or nullptr.
    const char* string() {
        uint64_t count = 0;
        const char* text = array<char>(count);
        if (text && (count == 0 || text[count - 1] != 0)) return good_ = false, nullptr;
        return text;
    }
    // `count` raw bytes with their padding, or nullptr if fewer are left.
    const char* take(uint64_t count) {
        uint64_t padded = (count + 7) & ~7ull;
        if (!good_ || padded < count || padded > size_ - used_) return good_ = false, nullptr;
        const char* from = data_ + used_;
        used_ += padded;
        return from;
    }

    // For a caller that finds the values invalid.
    void reject() { good_ = false; }

    bool good() const { return good_; }
    size_t left() const { return size_ - used_; }

private:
    const char* data_;
    size_t size_;
    size_t used_ = 0;
    bool good_ = true;
};

}  // namespace smt::protocol
