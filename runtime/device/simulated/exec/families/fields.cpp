// Counting, finding, extracting and inserting bits.
#include <algorithm>

#include "runtime/device/simulated/exec/families/lanes.h"

namespace smt::runtime::device::simulated {
namespace {

void decode_count(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    in.a = d.read(s.operands[1], s.types[0]);
    in.d = d.write(s.operands[0], Type::kU32);
    const bool zeros = s.opcode == Opcode::kClz;
    in.run = for_bits(s.types[0], [zeros]<class T>() -> Handler {
        if (zeros)
            return lanewise<uint32_t, T>([](T a) { return static_cast<uint32_t>(std::countl_zero(a)); });
        return lanewise<uint32_t, T>([](T a) { return static_cast<uint32_t>(std::popcount(a)); });
    });
}

template <class T>
uint32_t find_top(T a) {
    auto bits = static_cast<std::make_unsigned_t<T>>(a < 0 ? ~a : a);
    return bits == 0 ? ~0u : static_cast<uint32_t>(std::bit_width(bits)) - 1;
}

void decode_bfind(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    in.a = d.read(s.operands[1], s.types[0]);
    in.d = d.write(s.operands[0], Type::kU32);
    const bool amount = s.has(Modifier::kShiftamt);
    in.run = for_integers(s.types[0], [amount]<class T>() -> Handler {
        if (!amount) return lanewise<uint32_t, T>([](T a) { return find_top(a); });
        return lanewise<uint32_t, T>([](T a) {
            const uint32_t top = find_top(a);
            return top == ~0u ? top : static_cast<uint32_t>(8 * sizeof(T)) - 1 - top;
        });
    });
}

uint32_t find_nth(uint32_t mask, uint32_t base, int32_t offset) {
    if (base > 31) return ~0u;
    if (offset == 0) return (mask >> base & 1) != 0 ? base : ~0u;
    int64_t left = offset < 0 ? -static_cast<int64_t>(offset) : offset;
    const int step = offset > 0 ? 1 : -1;
    for (int at = static_cast<int>(base); at >= 0 && at < 32; at += step)
        if ((mask >> at & 1) != 0 && --left == 0) return static_cast<uint32_t>(at);
    return ~0u;
}

void decode_fns(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    read_three(d, s, in, Type::kB32);
    in.d = d.write(s.operands[0], Type::kB32);
    in.run = lanewise<uint32_t, uint32_t, uint32_t, int32_t>(
        [](uint32_t a, uint32_t b, int32_t c) { return find_nth(a, b, c); });
}

template <class T>
T reverse(T a) {
    T result = 0;
    for (size_t i = 0; i < 8 * sizeof(T); ++i)
        result |= static_cast<T>((a >> i & 1) << (8 * sizeof(T) - 1 - i));
    return result;
}

void decode_brev(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    in.a = d.read(s.operands[1], s.types[0]);
    in.d = d.write(s.operands[0], s.types[0]);
    in.run = for_bits(s.types[0], []<class T>() { return lanewise<T, T>([](T a) { return reverse(a); }); });
}

// ---- fields

template <class T>
T extract(T a, uint32_t position, uint32_t length) {
    using U = std::make_unsigned_t<T>;
    constexpr uint32_t width = 8 * sizeof(T);
    position &= 0xff;
    length &= 0xff;
    if (length == 0) return 0;
    const U sign =
        std::is_signed_v<T> ? static_cast<U>(a) >> std::min(position + length - 1, width - 1) & 1 : 0;
    const U fill = sign != 0 ? ~U{0} : U{0};
    if (position >= width) return static_cast<T>(fill);
    const U bits = static_cast<U>(a) >> position;
    const uint32_t kept = std::min(length, width - position);
    if (kept == width) return static_cast<T>(bits);
    const U mask = (U{1} << kept) - 1;
    return static_cast<T>((bits & mask) | (fill & ~mask));
}

void decode_bfe(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    in.a = d.read(s.operands[1], s.types[0]);
    in.b = d.read(s.operands[2], Type::kU32);
    in.c = d.read(s.operands[3], Type::kU32);
    in.d = d.write(s.operands[0], s.types[0]);
    in.run = for_integers(s.types[0], []<class T>() {
        return lanewise<T, T, uint32_t, uint32_t>(
            [](T a, uint32_t b, uint32_t c) { return extract(a, b, c); });
    });
}

template <class T>
T insert(T a, T into, uint32_t position, uint32_t length) {
    constexpr uint32_t width = 8 * sizeof(T);
    position &= 0xff;
    length &= 0xff;
    if (length == 0 || position >= width) return into;
    const T field = length >= width ? ~T{0} : static_cast<T>((T{1} << length) - 1);
    const T mask = static_cast<T>(field << position);
    return static_cast<T>((into & ~mask) | (static_cast<T>(a << position) & mask));
}

// Four sources: position and length are in the list.
template <class T>
void run_insert(Execution& x, const Instruction& in) {
    const T* a = x.at<T>(in.a);
    const T* b = x.at<T>(in.b);
    const uint32_t* position = x.at<uint32_t>(in.c);
    const uint32_t* length = x.at<uint32_t>(x.group->code->slots[in.list]);
    T values[kLanes];
    for (int i = 0; i < kLanes; ++i) values[i] = insert(a[i], b[i], position[i], length[i]);
    keep(x, x.at<T>(in.d), values);
}

void decode_bfi(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    read_two(d, s, in, s.types[0]);
    in.c = d.read(s.operands[3], Type::kU32);
    in.list = d.list({d.read(s.operands[4], Type::kU32)});
    in.d = d.write(s.operands[0], s.types[0]);
    in.run = ptx::bits(s.types[0]) == 32 ? run_insert<uint32_t> : run_insert<uint64_t>;
}

uint32_t make_mask(uint32_t position, uint32_t width, bool clamp) {
    if (clamp && position >= 32) return 0;
    const uint32_t from = position & 31;
    const uint32_t sum = from + (width & 31);
    const uint32_t low = ~0u << from;
    if (sum >= 32 || (clamp && width >= 32)) return low;
    if ((width & 31) == 0) return 0;
    return low & ~(~0u << sum);
}

void decode_bmsk(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    read_two(d, s, in, Type::kB32);
    in.d = d.write(s.operands[0], Type::kB32);
    in.run = s.has(Modifier::kClamp) ? lanewise<uint32_t, uint32_t, uint32_t>(
                                           [](uint32_t a, uint32_t b) { return make_mask(a, b, true); })
                                     : lanewise<uint32_t, uint32_t, uint32_t>(
                                           [](uint32_t a, uint32_t b) { return make_mask(a, b, false); });
}

uint32_t extend(uint32_t a, uint32_t width, bool clamp, bool is_signed) {
    if (clamp && width >= 32) return a;
    const uint32_t bits = width & 31;
    if (bits == 0) return 0;
    const uint32_t mask = ~0u << bits;
    return (a & ~mask) | (is_signed && (a >> (bits - 1) & 1) != 0 ? mask : 0);
}

void decode_szext(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    in.a = d.read(s.operands[1], s.types[0]);
    in.b = d.read(s.operands[2], Type::kU32);
    in.d = d.write(s.operands[0], s.types[0]);
    const bool is_signed = s.types[0] == Type::kS32;
    if (s.has(Modifier::kClamp))
        in.run = is_signed ? lanewise<uint32_t, uint32_t, uint32_t>(
                                 [](uint32_t a, uint32_t b) { return extend(a, b, true, true); })
                           : lanewise<uint32_t, uint32_t, uint32_t>(
                                 [](uint32_t a, uint32_t b) { return extend(a, b, true, false); });
    else
        in.run = is_signed ? lanewise<uint32_t, uint32_t, uint32_t>(
                                 [](uint32_t a, uint32_t b) { return extend(a, b, false, true); })
                           : lanewise<uint32_t, uint32_t, uint32_t>(
                                 [](uint32_t a, uint32_t b) { return extend(a, b, false, false); });
}

}  // namespace

void add_fields(std::vector<Row>& rows) {
    const char* family = "Bit fields";
    const auto row = [&](Opcode opcode, const char* required, const char* allowed, const char* first,
                         auto decode) {
        rows.push_back({family,
                        opcode,
                        modifiers(required),
                        modifiers(allowed),
                        types(first),
                        {},
                        Unit::kInteger,
                        decode,
                        ""});
    };
    row(Opcode::kPopc, "", "", "b32 b64", decode_count);
    row(Opcode::kClz, "", "", "b32 b64", decode_count);
    row(Opcode::kBfind, "", "shiftamt", "u32 s32 u64 s64", decode_bfind);
    row(Opcode::kFns, "", "", "b32", decode_fns);
    row(Opcode::kBrev, "", "", "b32 b64", decode_brev);
    row(Opcode::kBfe, "", "", "u32 s32 u64 s64", decode_bfe);
    row(Opcode::kBfi, "", "", "b32 b64", decode_bfi);
    row(Opcode::kBmsk, "", "clamp wrap", "b32", decode_bmsk);
    row(Opcode::kSzext, "", "clamp wrap", "u32 s32", decode_szext);
}

}  // namespace smt::runtime::device::simulated
