#include "runtime/journal/printable.h"

#include <cstdint>

namespace smt::runtime::journal {

namespace {

// The bytes of the character that `text` begins with, and the character; 0: it begins with none.
size_t character_of(std::string_view text, uint32_t* character) {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
    const uint8_t first = byte(0);
    const size_t bytes = first < 0x80                    ? 1
                         : first >= 0xc2 && first < 0xe0 ? 2
                         : first >= 0xe0 && first < 0xf0 ? 3
                         : first >= 0xf0 && first < 0xf5 ? 4
                                                         : 0;
    if (bytes == 0 || bytes > text.size()) return 0;
    *character = bytes == 1 ? first : first & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return 0;
        *character = *character << 6 | (byte(i) & 0x3fu);
    }
    static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool good =
        *character >= kLeast[bytes] && *character <= 0x10ffff && (*character < 0xd800 || *character > 0xdfff);
    return good ? bytes : 0;
}

bool shows(uint32_t character) {
    if (character < 0x20 || (character >= 0x7f && character < 0xa0)) return false;
    const bool turns = (character >= 0x200e && character <= 0x200f) ||
                       (character >= 0x202a && character <= 0x202e) ||
                       (character >= 0x2066 && character <= 0x2069);
    return !turns && character != 0x2028 && character != 0x2029;
}

}  // namespace

std::string printable(std::string_view text) {
    std::string shown;
    shown.reserve(text.size());
    while (!text.empty()) {
        uint32_t character = 0;
        const size_t bytes = character_of(text, &character);
        if (character == '\n' || character == '\r' || character == '\t') {
            shown += ' ';
        } else if (bytes == 0 || !shows(character)) {
            shown += '?';
        } else {
            shown += text.substr(0, bytes);
        }
        text.remove_prefix(bytes == 0 ? 1 : bytes);
    }
    return shown;
}

}  // namespace smt::runtime::journal
