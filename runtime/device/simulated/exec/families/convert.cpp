// cvt. Common pairs have loops of their own; everything else goes through exact numbers (numbers.h).
#include <algorithm>
#include <limits>

#include "runtime/device/simulated/exec/families/half.h"
#include "runtime/device/simulated/exec/warp.h"

namespace smt::runtime::device::simulated {
namespace {

bool is_float(Type type) {
    return type == Type::kF16 || type == Type::kBf16 || type == Type::kF32 || type == Type::kF64 ||
           type == Type::kTf32;
}
bool is_signed(Type type) {
    return type == Type::kS8 || type == Type::kS16 || type == Type::kS32 || type == Type::kS64;
}

Format format_of(Type type) {
    switch (type) {
        case Type::kF16:
            return kHalf;
        case Type::kBf16:
            return kBrain;
        case Type::kTf32:
            return kTensor;
        case Type::kF32:
            return kSingle;
        default:
            return kDouble;
    }
}

// What a conversion does, packed into Instruction::value.
struct Conversion {
    uint8_t to = 0, from = 0;              // types
    uint8_t to_width = 0, from_width = 0;  // of the registers, in bytes
    Rounding rounding = Rounding::kNearestEven;
    bool integral = false;  // round to an integer (.rni and the like)
    bool ftz : 1 = false, sat : 1 = false, relu : 1 = false, satfinite : 1 = false;
    uint8_t unused = 0;
};
static_assert(sizeof(Conversion) == 8);

uint64_t low_bits(uint64_t value, int bits) { return bits == 64 ? value : value & ((1ull << bits) - 1); }

uint64_t sign_extended(uint64_t value, int bits) {
    const int shift = 64 - bits;
    return static_cast<uint64_t>(static_cast<int64_t>(value << shift) >> shift);
}

Number zero_of(const Number& number) {
    Number zero;
    zero.negative = number.negative;
    return zero;
}

Number clamp_unit(const Number& number) {
    if (number.kind == Number::Kind::kNan || number.negative || number.kind == Number::Kind::kZero) return {};
    if (number.kind == Number::Kind::kInfinite || number.exponent >= 0) return from_integer(1, false);
    return number;
}

uint64_t float_to_float(Number number, const Conversion& c, Type to) {
    if (c.integral) number = to_integral(number, c.rounding);
    if (c.sat) number = clamp_unit(number);
    if (c.relu && number.negative && number.kind != Number::Kind::kNan) number = Number();
    const Rounding rounding = c.integral ? Rounding::kNearestEven : c.rounding;
    uint64_t bits = pack(number, format_of(to), rounding, c.satfinite);
    if (to == Type::kTf32) bits = number.kind == Number::Kind::kNan ? 0x7fff'ffff : bits << 13;
    if (c.ftz && to == Type::kF32)
        bits = std::bit_cast<uint32_t>(flush(std::bit_cast<float>(static_cast<uint32_t>(bits))));
    return bits;
}

// What a NaN becomes: 0, but the highest bit alone where 64 bits are on either side.
uint64_t integer_of_nan(Type from, int bits) {
    return from == Type::kF64 || bits == 64 ? 1ull << (bits - 1) : 0;
}

uint64_t clamp_integer(uint64_t value, bool value_signed, Type to) {
    const int bits = ptx::bits(to);
    const bool negative = value_signed && static_cast<int64_t>(value) < 0;
    const uint64_t most = is_signed(to) ? low_bits(~0ull, bits) >> 1 : low_bits(~0ull, bits);
    if (!negative) return std::min(value, most);
    if (!is_signed(to)) return 0;
    const auto least = -static_cast<int64_t>(most) - 1;
    return static_cast<uint64_t>(std::max(static_cast<int64_t>(value), least));
}

// Bits of the source's type to bits of the destination's.
uint64_t convert(uint64_t bits, const Conversion& c) {
    const auto from = static_cast<Type>(c.from);
    const auto to = static_cast<Type>(c.to);
    if (!is_float(from)) {
        const bool negative_allowed = is_signed(from);
        const uint64_t value =
            negative_allowed ? sign_extended(bits, ptx::bits(from)) : low_bits(bits, ptx::bits(from));
        if (!is_float(to)) return c.sat ? clamp_integer(value, negative_allowed, to) : value;
        const bool negative = negative_allowed && static_cast<int64_t>(value) < 0;
        return float_to_float(from_integer(negative ? 0 - value : value, negative), c, to);
    }
    Number number = unpack(low_bits(bits, ptx::bits(from)), format_of(from));
    if (c.ftz && from == Type::kF32 && number.kind == Number::Kind::kFinite && number.exponent < -126)
        number = zero_of(number);
    if (is_float(to)) return float_to_float(number, c, to);
    if (number.kind == Number::Kind::kNan) return integer_of_nan(from, ptx::bits(to));
    return to_integer(number, c.rounding, ptx::bits(to), is_signed(to));
}

uint64_t read_lane(const std::byte* lanes, size_t width, int lane) {
    uint64_t bits = 0;
    std::memcpy(&bits, lanes + width * static_cast<size_t>(lane), width);
    return bits;
}

// Integers narrower than their register fill it: with the sign, or with zeros.
uint64_t fill_register(uint64_t bits, Type to) {
    if (is_float(to)) return bits;
    return is_signed(to) ? sign_extended(bits, ptx::bits(to)) : low_bits(bits, ptx::bits(to));
}

void run_general(Execution& x, const Instruction& in) {
    const auto c = std::bit_cast<Conversion>(in.value);
    const std::byte* a = x.at<std::byte>(in.a);
    std::byte* d = x.at<std::byte>(in.d);
    uint64_t values[kLanes];
    for_lanes(x.mask, [&](int i) {
        values[i] = fill_register(convert(read_lane(a, c.from_width, i), c), static_cast<Type>(c.to));
    });
    for_lanes(x.mask, [&](int i) {
        std::memcpy(d + size_t{c.to_width} * static_cast<size_t>(i), &values[i], c.to_width);
    });
}

// ---- the common ones

template <class I, class F>
I truncate(F value) {
    constexpr auto least = static_cast<F>(std::numeric_limits<I>::min());
    constexpr auto above = static_cast<F>(std::numeric_limits<I>::max() / 2 + 1) * 2;
    if (value != value)
        return sizeof(F) == 8 || sizeof(I) == 8
                   ? static_cast<I>(std::make_unsigned_t<I>{1} << (8 * sizeof(I) - 1))
                   : I{0};
    if (value <= least) return std::numeric_limits<I>::min();
    if (value >= above) return std::numeric_limits<I>::max();
    return static_cast<I>(value);
}

Handler integer_resize(Type to, Type from) {
    const int bits = ptx::bits(to);
    const auto wide = [&](auto tag) -> Handler {
        using S = decltype(tag);
        if (bits == 64)
            return lanewise<uint64_t, S>([](S a) { return static_cast<uint64_t>(static_cast<int64_t>(a)); });
        if (bits == 32)
            return lanewise<uint32_t, S>([](S a) { return static_cast<uint32_t>(static_cast<int64_t>(a)); });
        if (bits == 16)
            return lanewise<uint16_t, S>([](S a) { return static_cast<uint16_t>(static_cast<int64_t>(a)); });
        return nullptr;
    };
    switch (from) {
        case Type::kU16:
            return wide(uint16_t{});
        case Type::kS16:
            return wide(int16_t{});
        case Type::kU32:
            return wide(uint32_t{});
        case Type::kS32:
            return wide(int32_t{});
        case Type::kU64:
            return wide(uint64_t{});
        case Type::kS64:
            return wide(int64_t{});
        default:
            return nullptr;
    }
}

template <class F>
Handler from_integers(Type from) {
    switch (from) {
        case Type::kU32:
            return lanewise<F, uint32_t>([](uint32_t a) { return static_cast<F>(a); });
        case Type::kS32:
            return lanewise<F, int32_t>([](int32_t a) { return static_cast<F>(a); });
        case Type::kU64:
            return lanewise<F, uint64_t>([](uint64_t a) { return static_cast<F>(a); });
        case Type::kS64:
            return lanewise<F, int64_t>([](int64_t a) { return static_cast<F>(a); });
        default:
            return nullptr;
    }
}

template <class F>
Handler to_integers(Type to) {
    switch (to) {
        case Type::kU32:
            return lanewise<uint32_t, F>([](F a) { return truncate<uint32_t>(a); });
        case Type::kS32:
            return lanewise<int32_t, F>([](F a) { return truncate<int32_t>(a); });
        case Type::kU64:
            return lanewise<uint64_t, F>([](F a) { return truncate<uint64_t>(a); });
        case Type::kS64:
            return lanewise<int64_t, F>([](F a) { return truncate<int64_t>(a); });
        default:
            return nullptr;
    }
}

// Null: no short cut.
Handler common(const Conversion& c) {
    const auto to = static_cast<Type>(c.to);
    const auto from = static_cast<Type>(c.from);
    if (c.ftz || c.sat || c.relu || c.satfinite) return nullptr;
    if (c.to_width * 8 != ptx::bits(to) || c.from_width * 8 != ptx::bits(from)) return nullptr;
    const bool nearest = c.rounding == Rounding::kNearestEven && !c.integral;
    if (!is_float(from)) {
        if (!is_float(to)) return integer_resize(to, from);
        if (!nearest) return nullptr;
        return to == Type::kF32   ? from_integers<float>(from)
               : to == Type::kF64 ? from_integers<double>(from)
                                  : nullptr;
    }
    if (!is_float(to)) {
        if (c.rounding != Rounding::kTowardZero) return nullptr;
        return from == Type::kF32   ? to_integers<float>(to)
               : from == Type::kF64 ? to_integers<double>(to)
                                    : nullptr;
    }
    if (!nearest) return nullptr;
    if (to == Type::kF64 && from == Type::kF32)
        return lanewise<double, float>([](float a) { return a != a ? NAN : static_cast<double>(a); });
    if (to == Type::kF32 && from == Type::kF64)
        return lanewise<float, double>([](double a) { return canonical(static_cast<float>(a)); });
    if (to == Type::kF32 && from == Type::kF16)
        return lanewise<float, uint16_t>([](uint16_t a) { return canonical(half_to_float(a)); });
    if (to == Type::kF16 && from == Type::kF32)
        return lanewise<uint16_t, float>([](float a) { return float_to_half(a); });
    if (to == Type::kF32 && from == Type::kBf16)
        return lanewise<float, uint16_t>([](uint16_t a) { return canonical(brain_to_float(a)); });
    if (to == Type::kBf16 && from == Type::kF32)
        return lanewise<uint16_t, float>([](float a) { return float_to_brain(a); });
    return nullptr;
}

// ---- decoding

bool set_rounding(const ptx::Instruction& s, Conversion& c) {
    using M = Modifier;
    const auto is = [&](M whole, M plain) { return s.has(whole) || s.has(plain); };
    c.integral = s.has(M::kRni) || s.has(M::kRzi) || s.has(M::kRmi) || s.has(M::kRpi);
    if (is(M::kRzi, M::kRz))
        c.rounding = Rounding::kTowardZero;
    else if (is(M::kRmi, M::kRm))
        c.rounding = Rounding::kDown;
    else if (is(M::kRpi, M::kRp))
        c.rounding = Rounding::kUp;
    else if (s.has(M::kRna))
        c.rounding = Rounding::kNearestAway;
    else
        return is(M::kRni, M::kRn);
    return true;
}

void modifiers_of(const ptx::Instruction& s, Conversion& c) {
    c.ftz = s.has(Modifier::kFtz);
    c.sat = s.has(Modifier::kSat);
    c.relu = s.has(Modifier::kRelu);
    c.satfinite = s.has(Modifier::kSatfinite);
}

void decode_cvt(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (s.types.size() != 2 || s.operands.size() != 2)
        return d.refuse("two types and two operands belong here");
    Conversion c;
    const Type to = s.types[0];
    const Type from = s.types[1];
    c.to = static_cast<uint8_t>(to);
    c.from = static_cast<uint8_t>(from);
    modifiers_of(s, c);
    const bool given = set_rounding(s, c);
    if (is_float(from) && !is_float(to) && !given) return d.refuse("a rounding modifier belongs here");
    int width = 0;
    in.a = d.read_any(s.operands[1], from, &width);
    c.from_width = static_cast<uint8_t>(width / 8);
    in.d = d.write_any(s.operands[0], to, &width);
    c.to_width = static_cast<uint8_t>(width / 8);
    if (d.failed()) return;
    if (c.from_width * 8 < ptx::bits(from) || c.to_width * 8 < ptx::bits(to) || c.to_width > 8)
        return d.refuse("a register is too narrow");
    in.value = std::bit_cast<uint64_t>(c);
    in.run = common(c);
    if (in.run == nullptr) in.run = run_general;
    if (from == Type::kF64 || to == Type::kF64) in.unit = Unit::kDouble;
}

// Two values into one register, a in the upper half.
void run_pair(Execution& x, const Instruction& in) {
    const auto c = std::bit_cast<Conversion>(in.value);
    const uint32_t* a = x.at<uint32_t>(in.a);
    const uint32_t* b = x.at<uint32_t>(in.b);
    uint32_t values[kLanes];
    for (int i = 0; i < kLanes; ++i)
        values[i] = static_cast<uint32_t>(convert(a[i], c) << 16 | convert(b[i], c));
    keep(x, x.at<uint32_t>(in.d), values);
}

void decode_pair(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (s.operands.size() != 3) return d.refuse("two sources belong here");
    Conversion c;
    c.to = static_cast<uint8_t>(s.types[0] == Type::kF16x2 ? Type::kF16 : Type::kBf16);
    c.from = static_cast<uint8_t>(Type::kF32);
    modifiers_of(s, c);
    set_rounding(s, c);
    read_two(d, s, in, Type::kF32);
    in.d = d.write(s.operands[0], s.types[0]);
    in.value = std::bit_cast<uint64_t>(c);
    in.run = run_pair;
}

// cvt.pack: a and b saturated and side by side, above them what c has.
void run_pack(Execution& x, const Instruction& in) {
    const auto c = std::bit_cast<Conversion>(in.value);
    const auto to = static_cast<Type>(c.to);
    const int bits = ptx::bits(to);
    const int32_t* a = x.at<int32_t>(in.a);
    const int32_t* b = x.at<int32_t>(in.b);
    const uint32_t* above = in.count == 3 ? x.at<uint32_t>(in.c) : nullptr;
    uint32_t values[kLanes];
    const auto one = [&](int32_t value) {
        return low_bits(clamp_integer(static_cast<uint64_t>(static_cast<int64_t>(value)), true, to), bits);
    };
    for (int i = 0; i < kLanes; ++i) {
        const uint64_t both = one(a[i]) << bits | one(b[i]);
        values[i] = static_cast<uint32_t>(
            above == nullptr ? both : static_cast<uint64_t>(above[i]) << (2 * bits) | both);
    }
    keep(x, x.at<uint32_t>(in.d), values);
}

void decode_pack(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    Conversion c;
    c.to = static_cast<uint8_t>(s.types[0]);
    in.value = std::bit_cast<uint64_t>(c);
    const bool third = s.types.size() == 3;
    if ((ptx::bits(s.types[0]) == 16) == third || s.operands.size() != (third ? 4u : 3u))
        return d.refuse("bytes are packed with a third source, 16-bit values without");
    read_two(d, s, in, Type::kS32);
    if (third) in.c = d.read(s.operands[3], Type::kB32);
    in.count = third ? 3 : 2;
    in.d = d.write(s.operands[0], Type::kB32);
    in.run = run_pack;
}

}  // namespace

void add_convert(std::vector<Row>& rows) {
    const char* family = "Conversion";
    const auto row = [&](const char* required, const char* allowed, const char* first, const char* second,
                         auto decode, const char* note = "") {
        rows.push_back({family, Opcode::kCvt, modifiers(required), modifiers(allowed), types(first),
                        types(second), Unit::kConvert, decode, note});
    };
    const char* integers = "u8 u16 u32 u64 s8 s16 s32 s64";
    const char* floats = "f16 bf16 f32 f64";
    row("", "sat", integers, integers, decode_cvt);
    row("", "rn rz rm rp sat ftz", floats, integers, decode_cvt);
    row("", "rni rzi rmi rpi sat ftz", integers, floats, decode_cvt,
        "NaN gives 0; the highest bit alone from .f64 or to 64 bits");
    row("", "rn rz rm rp rni rzi rmi rpi sat ftz relu satfinite", floats, floats, decode_cvt);
    row("", "rn rz relu satfinite", "f16x2 bf16x2", "f32", decode_pair);
    row("", "rn rz rna relu satfinite", "tf32", "f32", decode_cvt);
    row("pack sat", "", "u8 s8 u16 s16", "s32", decode_pack, "with .b32 for bytes");
}

}  // namespace smt::runtime::device::simulated
