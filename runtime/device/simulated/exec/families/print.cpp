// printf's formats. Each conversion is taken apart, its length modifier replaced by the one of the
// host's type, and handed to the host's snprintf: widths, flags and precision mean the same there.
#include <bit>
#include <cinttypes>
#include <cstdio>

#include "runtime/device/simulated/exec/families/builtins.h"

namespace smt::runtime::device::simulated {
namespace {

struct PrintConversion {
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

bool read_flags(const std::string& format, size_t& at, const PrintSource& source, PrintConversion& c) {
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

bool print_integer(const PrintConversion& c, const PrintSource& source, std::string* out) {
    const bool wide = c.length.find_first_of("ljztqL") != std::string::npos;
    const bool is_signed = c.kind == 'd' || c.kind == 'i';
    uint64_t value = 0;
    if (!source.next(wide ? 8 : 4, &value)) return false;
    const int bits = c.length == "hh" ? 8 : c.length == "h" ? 16 : wide ? 64 : 32;
    value <<= 64 - bits;
    const std::string format = "%" + c.flags + "ll" + c.kind;
    if (is_signed)
        append(out, format, static_cast<long long>(value) >> (64 - bits));
    else
        append(out, format, static_cast<unsigned long long>(value >> (64 - bits)));
    return true;
}

bool print_text(const PrintConversion& c, const PrintSource& source, std::string* out) {
    uint64_t address = 0;
    if (!source.next(8, &address)) return false;
    std::string text;
    if (address != 0 && !source.text_at(address, &text)) return false;
    append(out, "%" + c.flags + "s", address == 0 ? "(null)" : text.c_str());
    return true;
}

bool print_converted(const PrintConversion& c, const PrintSource& source, std::string* out) {
    const std::string format = "%" + c.flags + c.kind;
    uint64_t value = 0;
    if (c.kind != 0 && std::string_view("diuxXo").find(c.kind) != std::string_view::npos)
        return print_integer(c, source, out);
    if (c.kind != 0 && std::string_view("eEfFgGaA").find(c.kind) != std::string_view::npos) {
        if (!source.next(8, &value)) return false;
        append(out, format, std::bit_cast<double>(value));
        return true;
    }
    switch (c.kind) {
        case 'c':
            if (!source.next(4, &value)) return false;
            append(out, format, static_cast<int>(value));
            return true;
        case 'p':
            if (!source.next(8, &value)) return false;
            append(out, format, reinterpret_cast<void*>(value));
            return true;
        case 's':
            return print_text(c, source, out);
        case '%':
            *out += '%';
            return true;
        default:  // not a conversion: as it stands
            *out += "%" + c.flags + c.length;
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
        PrintConversion c;
        if (!read_flags(format, at, source, c) || !print_converted(c, source, out)) return false;
    }
    return true;
}

}  // namespace smt::runtime::device::simulated
