// Comparison.
//
// The comparison proper gives 32 bits, one a lane, and is a function by itself, held in
// Instruction::value; set and setp combine its result with a predicate and write it in their ways.
#include "runtime/device/simulated/exec/families/half.h"

namespace smt::runtime::device::simulated {
namespace {

using Compare = uint32_t (*)(Execution&, const Instruction&);

enum class Boolean : uint8_t { kNone, kAnd, kOr, kXor };

Boolean boolean_of(const ptx::Instruction& s) {
    if (s.operands.size() < 4) return Boolean::kNone;
    return s.has(Modifier::kAnd) ? Boolean::kAnd : s.has(Modifier::kOr) ? Boolean::kOr : Boolean::kXor;
}

uint32_t combine(uint32_t bits, uint32_t with, uint8_t how) {
    switch (static_cast<Boolean>(how)) {
        case Boolean::kAnd:
            return bits & with;
        case Boolean::kOr:
            return bits | with;
        case Boolean::kXor:
            return bits ^ with;
        case Boolean::kNone:
            break;
    }
    return bits;
}

template <class F, class... S>
Compare lanes_where(F) {
    return [](Execution& x, const Instruction& in) {
        return detail::lane_mask<F, S...>(x, in, std::index_sequence_for<S...>{});
    };
}

// T is how lanes are stored, Up makes a value that compares out of one.
template <class T, class Up>
Compare compare_as(Modifier how, Up) {
    switch (how) {
        case Modifier::kEq:
            return lanes_where<decltype([](T a, T b) { return Up{}(a) == Up{}(b); }), T, T>({});
        case Modifier::kLt:
        case Modifier::kLo:
            return lanes_where<decltype([](T a, T b) { return Up{}(a) < Up{}(b); }), T, T>({});
        case Modifier::kLe:
        case Modifier::kLs:
            return lanes_where<decltype([](T a, T b) { return Up{}(a) <= Up{}(b); }), T, T>({});
        case Modifier::kGt:
        case Modifier::kHi:
            return lanes_where<decltype([](T a, T b) { return Up{}(a) > Up{}(b); }), T, T>({});
        case Modifier::kGe:
        case Modifier::kHs:
            return lanes_where<decltype([](T a, T b) { return Up{}(a) >= Up{}(b); }), T, T>({});
        default:
            return nullptr;
    }
}

template <class T>
Compare compare_integers(Modifier how) {
    if (how == Modifier::kNe) return lanes_where<decltype([](T a, T b) { return a != b; }), T, T>({});
    return compare_as<T>(how, [](T a) { return a; });
}

// NaN makes the ordered comparisons false (ne, too) and those that end in u true.
template <class T, class Up>
Compare compare_floats(Modifier how, Up up) {
    const auto unordered = [](T a, T b) { return Up{}(a) != Up{}(a) || Up{}(b) != Up{}(b); };
    using U = decltype(unordered);
    switch (how) {
        case Modifier::kNe:
            return lanes_where<decltype([](T a, T b) { return !U{}(a, b) && Up{}(a) != Up{}(b); }), T, T>({});
        case Modifier::kEqu:
            return lanes_where<decltype([](T a, T b) { return U{}(a, b) || Up{}(a) == Up{}(b); }), T, T>({});
        case Modifier::kNeu:
            return lanes_where<decltype([](T a, T b) { return Up{}(a) != Up{}(b); }), T, T>({});
        case Modifier::kLtu:
            return lanes_where<decltype([](T a, T b) { return !(Up{}(a) >= Up{}(b)); }), T, T>({});
        case Modifier::kLeu:
            return lanes_where<decltype([](T a, T b) { return !(Up{}(a) > Up{}(b)); }), T, T>({});
        case Modifier::kGtu:
            return lanes_where<decltype([](T a, T b) { return !(Up{}(a) <= Up{}(b)); }), T, T>({});
        case Modifier::kGeu:
            return lanes_where<decltype([](T a, T b) { return !(Up{}(a) < Up{}(b)); }), T, T>({});
        case Modifier::kIsNum:
            return lanes_where<decltype([](T a, T b) { return !U{}(a, b); }), T, T>({});
        case Modifier::kIsNan:
            return lanes_where<U, T, T>({});
        default:
            return compare_as<T>(how, up);
    }
}

bool compare_one(Modifier how, float a, float b) {
    const bool unordered = a != a || b != b;
    switch (how) {
        case Modifier::kEq:
            return a == b;
        case Modifier::kNe:
            return !unordered && a != b;
        case Modifier::kLt:
            return a < b;
        case Modifier::kLe:
            return a <= b;
        case Modifier::kGt:
            return a > b;
        case Modifier::kGe:
            return a >= b;
        case Modifier::kEqu:
            return unordered || a == b;
        case Modifier::kNeu:
            return a != b;
        case Modifier::kLtu:
            return !(a >= b);
        case Modifier::kLeu:
            return !(a > b);
        case Modifier::kGtu:
            return !(a <= b);
        case Modifier::kGeu:
            return !(a < b);
        case Modifier::kIsNum:
            return !unordered;
        default:
            return unordered;
    }
}

constexpr uint32_t kFlushes = 1 << 16;  // of Instruction::target, beside the comparison

// 16-bit values, alone or in the lower or upper half of 32 bits.
template <class H, int Shift, class T>
uint32_t compare_halves(Execution& x, const Instruction& in) {
    const T* a = x.at<T>(in.a);
    const T* b = x.at<T>(in.b);
    const bool ftz = (in.target & kFlushes) != 0;
    const auto value = [ftz](T bits) {
        const auto half = static_cast<uint16_t>(bits >> Shift);
        return H::up(ftz ? flush_half<H>(half) : half);
    };
    uint32_t mask = 0;
    for (int i = 0; i < kLanes; ++i)
        mask |=
            compare_one(static_cast<Modifier>(in.target & 0xffff), value(a[i]), value(b[i])) ? 1u << i : 0;
    return mask;
}

template <int Shift, class T>
Compare compare_16(Type type) {
    return is_half(type) ? compare_halves<HalfFormat, Shift, T> : compare_halves<BrainFormat, Shift, T>;
}

Compare pick_compare(Type type, Modifier how, bool ftz) {
    switch (type) {
        case Type::kB16:
        case Type::kU16:
            return compare_integers<uint16_t>(how);
        case Type::kS16:
            return compare_integers<int16_t>(how);
        case Type::kB32:
        case Type::kU32:
            return compare_integers<uint32_t>(how);
        case Type::kS32:
            return compare_integers<int32_t>(how);
        case Type::kB64:
        case Type::kU64:
            return compare_integers<uint64_t>(how);
        case Type::kS64:
            return compare_integers<int64_t>(how);
        case Type::kF32:
            if (ftz) return compare_floats<float>(how, [](float a) { return flush(a); });
            return compare_floats<float>(how, [](float a) { return a; });
        case Type::kF64:
            return compare_floats<double>(how, [](double a) { return a; });
        case Type::kF16:
        case Type::kBf16:
            return compare_16<0, uint16_t>(type);
        default:
            return nullptr;
    }
}

Modifier comparison_of(const ptx::Instruction& s) {
    for (Modifier each : s.modifiers)
        if (each != Modifier::kFtz && each != Modifier::kAnd && each != Modifier::kOr &&
            each != Modifier::kXor)
            return each;
    return Modifier::kFtz;
}

uint32_t comparison_word(const ptx::Instruction& s) {
    return static_cast<uint32_t>(comparison_of(s)) | (s.has(Modifier::kFtz) ? kFlushes : 0);
}

// Operands and the comparison; false after refusing.
bool prepare(Decoder& d, const ptx::Instruction& s, Instruction& in, Type type) {
    read_two(d, s, in, type);
    in.count = static_cast<uint8_t>(boolean_of(s));
    if (s.operands.size() == 4) in.c = d.read_predicate(s.operands[3]);
    Compare compare = pick_compare(type, comparison_of(s), s.has(Modifier::kFtz));
    if (compare == nullptr) d.refuse("this comparison is not defined for the type");
    in.value = reinterpret_cast<uint64_t>(compare);
    in.target = comparison_word(s);
    if (type == Type::kF64)
        in.unit = Unit::kDouble;
    else if (type == Type::kF32)
        in.unit = Unit::kFloat;
    return compare != nullptr;
}

uint32_t compared(Execution& x, const Instruction& in) { return reinterpret_cast<Compare>(in.value)(x, in); }

// ---- setp

void run_setp(Execution& x, const Instruction& in) {
    const uint32_t bits = compared(x, in);
    if (in.count == 0) return x.set_predicate(in.d, bits);
    x.set_predicate(in.d, combine(bits, x.predicate(in.c), in.count));
}

// With a second result, of the complement.
void run_setp_two(Execution& x, const Instruction& in) {
    const uint32_t bits = compared(x, in);
    const uint32_t with = in.count == 0 ? 0 : x.predicate(in.c);
    x.set_predicate(in.d, combine(bits, with, in.count));
    x.set_predicate(x.group->code->slots[in.list], combine(~bits, with, in.count));
}

void decode_setp(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (!prepare(d, s, in, s.types[0])) return;
    auto [p, q] = d.write_pair(s.operands[0], s.types[0], true);
    in.d = p;
    in.list = d.list({q});
    in.run = q == kSink ? run_setp : run_setp_two;
}

// ---- packed halves: an instruction of its own compares the upper ones, into a temporary predicate

Slot compare_upper(Decoder& d, const ptx::Instruction& s, const Instruction& in) {
    Instruction upper;
    upper.unit = in.unit;
    upper.a = in.a;
    upper.b = in.b;
    upper.d = d.temporary(1);
    upper.target = in.target;
    upper.value = reinterpret_cast<uint64_t>(compare_16<16, uint32_t>(s.types.back()));
    upper.run = run_setp;
    d.prepare(upper, {upper.a, upper.b}, {upper.d});
    d.reads(upper.d);
    return upper.d;
}

bool prepare_packed(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    const Type type = s.types.back();
    read_two(d, s, in, type);
    in.count = static_cast<uint8_t>(boolean_of(s));
    if (s.operands.size() == 4) in.c = d.read_predicate(s.operands[3]);
    in.target = comparison_word(s);
    in.value = reinterpret_cast<uint64_t>(compare_16<0, uint32_t>(type));
    return !d.failed();
}

// p from the lower halves, q from the upper ones.
void run_setp_packed(Execution& x, const Instruction& in) {
    const Slot* slots = &x.group->code->slots[in.list];
    const uint32_t low = compared(x, in);
    const uint32_t high = x.predicate(slots[1]);
    const uint32_t with = in.count == 0 ? 0 : x.predicate(in.c);
    x.set_predicate(in.d, combine(low, with, in.count));
    x.set_predicate(slots[0], combine(high, with, in.count));
}

void decode_setp_packed(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (!prepare_packed(d, s, in)) return;
    const Slot upper = compare_upper(d, s, in);
    auto [p, q] = d.write_pair(s.operands[0], s.types[0], true);
    in.d = p;
    in.list = d.list({q, upper});
    in.run = run_setp_packed;
}

// ---- set: what is written where the comparison holds is a constant in the list

template <class T>
void run_set(Execution& x, const Instruction& in) {
    const uint32_t bits = combine(compared(x, in), in.count == 0 ? 0 : x.predicate(in.c), in.count);
    const T on = *x.at<T>(x.group->code->slots[in.list]);
    T values[kLanes];
    for (int i = 0; i < kLanes; ++i) values[i] = (bits >> i & 1) != 0 ? on : T{0};
    keep(x, x.at<T>(in.d), values);
}

uint32_t value_when_true(Type type) {
    switch (type) {
        case Type::kF32:
            return std::bit_cast<uint32_t>(1.0f);
        case Type::kF16:
        case Type::kF16x2:
            return float_to_half(1.0f);
        case Type::kBf16:
        case Type::kBf16x2:
            return float_to_brain(1.0f);
        default:
            return ~0u;
    }
}

void decode_set(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (s.types.size() != 2) return d.refuse("two types belong here");
    if (!prepare(d, s, in, s.types[1])) return;
    in.d = d.write(s.operands[0], s.types[0]);
    in.list = d.list({d.constant(value_when_true(s.types[0]), std::max(16, ptx::bits(s.types[0])))});
    in.run = ptx::bits(s.types[0]) == 16 ? run_set<uint16_t> : run_set<uint32_t>;
}

void run_set_packed(Execution& x, const Instruction& in) {
    const uint32_t with = in.count == 0 ? 0 : x.predicate(in.c);
    const uint32_t low = combine(compared(x, in), with, in.count);
    const Slot* slots = &x.group->code->slots[in.list];
    const uint32_t high = combine(x.predicate(slots[0]), with, in.count);
    const uint32_t on = *x.at<uint32_t>(slots[1]) & 0xffff;
    uint32_t values[kLanes];
    for (int i = 0; i < kLanes; ++i)
        values[i] = ((low >> i & 1) != 0 ? on : 0) | ((high >> i & 1) != 0 ? on << 16 : 0);
    keep(x, x.at<uint32_t>(in.d), values);
}

void decode_set_packed(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (s.types.size() != 2) return d.refuse("two types belong here");
    if (!prepare_packed(d, s, in)) return;
    in.list = d.list({compare_upper(d, s, in), d.constant(value_when_true(s.types[0]), 32)});
    in.d = d.write(s.operands[0], s.types[0]);
    in.run = run_set_packed;
}

}  // namespace

void add_compare(std::vector<Row>& rows) {
    const char* family = "Comparison";
    const auto row = [&](Opcode opcode, const char* allowed, const char* first, const char* second,
                         auto decode) {
        rows.push_back({family,
                        opcode,
                        {},
                        modifiers(allowed),
                        types(first),
                        types(second),
                        Unit::kInteger,
                        decode,
                        ""});
    };
    const char* integer = "eq ne lt le gt ge lo ls hi hs and or xor";
    const char* floating = "eq ne lt le gt ge equ neu ltu leu gtu geu num nan and or xor ftz";
    const char* integers = "b16 b32 b64 u16 u32 u64 s16 s32 s64";
    const char* floats = "f32 f64 f16 bf16";
    const char* results = "u32 s32 f32 u16 s16 f16 bf16";
    row(Opcode::kSetp, integer, integers, "", decode_setp);
    row(Opcode::kSetp, floating, floats, "", decode_setp);
    row(Opcode::kSetp, floating, "f16x2 bf16x2", "", decode_setp_packed);
    row(Opcode::kSet, integer, results, integers, decode_set);
    row(Opcode::kSet, floating, results, floats, decode_set);
    row(Opcode::kSet, floating, "f16x2 bf16x2 u32 s32", "f16x2 bf16x2", decode_set_packed);
}

}  // namespace smt::runtime::device::simulated
