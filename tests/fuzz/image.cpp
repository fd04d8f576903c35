// The client's reader of image lengths on broken images. It follows headers, so the image stands at the
// start of as many readable bytes as an image may have: one byte further is a crash.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "interpose/process/image_bytes.h"

namespace {

constexpr uint64_t kMost = 4ull << 30;             // image_bytes()'s limit
constexpr uint64_t kWindow = kMost + (64u << 10);  // and one header, of at most 64 KiB, that begins at it
constexpr uint32_t kWrapperMagic = 0x466243b1;

char* window() {
    static char* place = [] {
        void* got = mmap(nullptr, kWindow + (1 << 20), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (got == MAP_FAILED || mprotect(static_cast<char*>(got) + kWindow, 1 << 20, PROT_NONE) != 0)
            std::abort();
        return static_cast<char*>(got);
    }();
    return place;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, size_t size) {
    char* image = window();
    size = std::min<size_t>(size, 64 << 10);
    if (size) std::memcpy(image, input, size);
    std::memset(image + size, 0, (64 << 10) - size);  // of the input before
    uint32_t magic = 0;
    std::memcpy(&magic, image, sizeof magic);
    if (magic == kWrapperMagic) {  // its pointer: none, itself, or into the input
        uint64_t at = 0;
        std::memcpy(&at, image + 8, sizeof at);
        const char* data = at == 0 ? nullptr : image + at % (size + 1);
        std::memcpy(image + 8, &data, sizeof data);
    }
    const smt::interpose::ImageBytes found = smt::interpose::image_bytes(image);
    if (found.bytes > kMost || (found.data == nullptr) != (found.bytes == 0)) std::abort();
    return 0;
}
