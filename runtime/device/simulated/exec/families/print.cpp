// printf's formats. Each conversion is taken apart, its length modifier replaced by the one of the
// host's type, and handed to the host's snprintf: widths, flags and precision mean the same there.
#include <bit>
#include <cinttypes>
#include <cstdio>

#include "runtime/device/simulated/exec/families/builtins.h"

namespace smt::runtime::device::simulated {
namespace {

struct Conversion {
    std::string flags;  // everything between % and the length modifier
    std::string length;
    char kind = 0;
};

template <class... T>
void append(std::string* out, const std::string& format, T... values) {
    char buffer[512];
    const int length = std::snprintf(buffer, sizeof(buffer), format.c_str(), values...);
    if (length < 0) return;
    if (static_cast<size_t>(length) < sizeof(buffer)) {
        out->append(buffer, static_cast<size_t>(length));
        return;
    }
    std::string longer(static_cast<size_t>(length) + 1, '\0');
    std::snprintf(longer.data(), longer.size(), format.c_str(), values...);
    out->append(longer.data(), static_cast<size_t>(length));
}

// A width or precision beyond this is a mistake or an attack on our memory.
constexpr int kWidest = 4096;

bool read_flags(const std::string& format, size_t& at, const PrintSource& source, Conversion& c) {
    while (at < format.size()) {
        const char each = format[at];
        if (each == '*') {
            uint64_t value = 0;
            if (!source.next(4, &value)) return false;
            const auto width = static_cast<int32_t>(value);
            c.flags += std::to_string(std::min(std::max(width, -kWidest), kWidest));
        } else if (std::string_view("-+ #0123456789.").find(each) != std::string_view::npos) {
            c.flags += each;
        } else {
            break;
        }
        ++at;
    }
    for (; at < format.size() && std::string_view("hlLqjzt").find(format[at]) != std::string_view::npos; ++at)
        c.length += format[at];
    if (at < format.size()) c.kind = format[at++];
    int digits = 0;
    for (char each : c.flags) {
        digits = each >= '0' && each <= '9' ? digits + 1 : 0;
        if (digits > 5) return false;
    }
    return true;
}

bool convert(const Conversion& c, const PrintSource& source, std::string* out) {
    const std::string start = "%" + c.flags;
    uint64_t value = 0;
    const bool wide = c.length == "l" || c.length == "ll" || c.length == "j" || c.length == "z" ||
                      c.length == "t" || c.length == "q" || c.length == "L";
    switch (c.kind) {
        case 'd':
        case 'i': {
            if (!source.next(wide ? 8 : 4, &value)) return false;
            int64_t number = wide ? static_cast<int64_t>(value) : static_cast<int32_t>(value);
            if (c.length == "h") number = static_cast<int16_t>(number);
            if (c.length == "hh") number = static_cast<int8_t>(number);
            append(out, start + "lld", static_cast<long long>(number));
            return true;
        }
        case 'u':
        case 'x':
        case 'X':
        case 'o': {
            if (!source.next(wide ? 8 : 4, &value)) return false;
            if (c.length == "h") value = static_cast<uint16_t>(value);
            if (c.length == "hh") value = static_cast<uint8_t>(value);
            append(out, start + "ll" + c.kind, static_cast<unsigned long long>(value));
            return true;
        }
        case 'c':
            if (!source.next(4, &value)) return false;
            append(out, start + "c", static_cast<int>(value));
            return true;
        case 'e':
        case 'E':
        case 'f':
        case 'F':
        case 'g':
        case 'G':
        case 'a':
        case 'A':
            if (!source.next(8, &value)) return false;
            append(out, start + c.kind, std::bit_cast<double>(value));
            return true;
        case 'p':
            if (!source.next(8, &value)) return false;
            append(out, start + "p", reinterpret_cast<void*>(value));
            return true;
        case 's': {
            std::string text = "(null)";
            if (!source.next(8, &value)) return false;
            if (value != 0) {
                text.clear();
                if (!source.text_at(value, &text)) return false;
            }
            append(out, start + "s", text.c_str());
            return true;
        }
        case '%':
            *out += '%';
            return true;
        default:  // not a conversion: as it stands
            *out += start + c.length;
            if (c.kind != 0) *out += c.kind;
            return true;
    }
}

}  // namespace

bool format_print(const std::string& format, const PrintSource& source, std::string* out) {
    for (size_t at = 0; at < format.size();) {
        if (format[at] != '%') {
            *out += format[at++];
            continue;
        }
        ++at;
        Conversion c;
        if (!read_flags(format, at, source, c) || !convert(c, source, out)) return false;
    }
    return true;
}

}  // namespace smt::runtime::device::simulated
