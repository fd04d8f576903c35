// An image as its worker opens it; what the worker says of it must come through the server's checks. And
// answers that are none.
#include <cstdlib>

#include "runtime/jit/messages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace smt::runtime::jit;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    bool unpacked = false;
    for (const bool links : {false, true}) {
        const Opened opened = open_image({{90}, {90}, 1 << 20, true, links}, bytes);
        if (opened.problem.empty() && !decode_opened(encode(opened), size, &unpacked)) std::abort();
    }
    static_cast<void>(decode_opened(bytes, size, &unpacked));
    static_cast<void>(decode_image_order(bytes));
    return 0;
}
