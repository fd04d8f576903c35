// Memory that the server has with a worker that opens images, so that no image passes through a socket. It is
// kept from image to image: its pages are there already.
//
//   [0, kImageBytes)                      the image, which the server writes
//   [kImageBytes, and kUnpackedBytes on)  what the worker unpacked
//
// The server reads and writes by descriptor and maps nothing, so whatever the worker does to the memory is no
// fault in the server. Its size is sealed. One thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/image/image.h"

namespace smt::runtime::jit {

class SharedMemory {
public:
    static constexpr uint64_t kImageBytes = 1ull << 30;  // as many as protocol::kMostImageBytes
    static constexpr uint64_t kUnpackedBytes = image::kMostBytes;
    static constexpr uint64_t kKept = 16ull << 20;  // of either part; what a larger image took is given back

    SharedMemory() = default;
    ~SharedMemory();
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;

    bool create(std::string& problem);        // again: nothing
    int descriptor() const { return file_; }  // 5 at least; -1: not created
    bool write(std::string_view image);
    bool read(uint64_t bytes, std::string& unpacked) const;
    void trim();  // to kKept

private:
    int file_ = -1;
};

// The worker's end: both parts, mapped as far as they are needed, and kept mapped.
class MappedMemory {
public:
    explicit MappedMemory(int descriptor)
        : image_{descriptor, 0}, unpacked_{descriptor, SharedMemory::kImageBytes} {}

    // std::bad_alloc: it cannot be mapped.
    std::string_view image(uint64_t bytes) { return {image_.reach(bytes), bytes}; }
    char* unpacked(uint64_t bytes) { return unpacked_.reach(bytes); }

private:
    struct Part {
        int descriptor;
        uint64_t at;
        char* data = nullptr;
        uint64_t bytes = 0;
        ~Part() { drop(); }
        char* reach(uint64_t needed);
        void drop();
    };
    Part image_, unpacked_;
};

}  // namespace smt::runtime::jit
