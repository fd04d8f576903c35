// Logic, shifts and permutation of bytes.
#include <algorithm>

#include "runtime/device/simulated/exec/families/lanes.h"

namespace smt::runtime::device::simulated {
namespace {

void decode_and(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    integer_binary(d, s, in, [](auto a, auto b) { return static_cast<decltype(a)>(a & b); });
}
void decode_or(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    integer_binary(d, s, in, [](auto a, auto b) { return static_cast<decltype(a)>(a | b); });
}
void decode_xor(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    integer_binary(d, s, in, [](auto a, auto b) { return static_cast<decltype(a)>(a ^ b); });
}
void decode_not(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    integer_unary(d, s, in, [](auto a) { return static_cast<decltype(a)>(~a); });
}
void decode_cnot(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    integer_unary(d, s, in, [](auto a) { return static_cast<decltype(a)>(a == 0 ? 1 : 0); });
}

// Predicates are 32 lanes in a word, so logic on them is logic on words.
void decode_predicate_logic(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    in.a = d.read_predicate(s.operands[1]);
    if (s.opcode != Opcode::kNot) in.b = d.read_predicate(s.operands[2]);
    in.d = d.write_predicate(s.operands[0]);
    switch (s.opcode) {
        case Opcode::kAnd:
            in.run = [](Execution& x, const Instruction& i) {
                x.set_predicate(i.d, x.predicate(i.a) & x.predicate(i.b));
            };
            break;
        case Opcode::kOr:
            in.run = [](Execution& x, const Instruction& i) {
                x.set_predicate(i.d, x.predicate(i.a) | x.predicate(i.b));
            };
            break;
        case Opcode::kXor:
            in.run = [](Execution& x, const Instruction& i) {
                x.set_predicate(i.d, x.predicate(i.a) ^ x.predicate(i.b));
            };
            break;
        default:
            in.run = [](Execution& x, const Instruction& i) { x.set_predicate(i.d, ~x.predicate(i.a)); };
            break;
    }
}

template <class T>
T shift_left(T a, uint32_t by) {
    return by >= 8 * sizeof(T) ? T{0} : static_cast<T>(wrap(a) << by);
}

template <class T>
T shift_right(T a, uint32_t by) {
    const uint32_t most = 8 * sizeof(T) - 1;
    if (std::is_signed_v<T>) return static_cast<T>(a >> std::min(by, most));
    return by > most ? T{0} : static_cast<T>(a >> by);
}

void decode_shift(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    in.a = d.read(s.operands[1], s.types[0]);
    in.b = d.read(s.operands[2], Type::kU32);
    in.d = d.write(s.operands[0], s.types[0]);
    if (s.opcode == Opcode::kShl)
        in.run = for_integers(s.types[0], []<class T>() {
            return lanewise<T, T, uint32_t>([](T a, uint32_t b) { return shift_left(a, b); });
        });
    else
        in.run = for_integers(s.types[0], []<class T>() {
            return lanewise<T, T, uint32_t>([](T a, uint32_t b) { return shift_right(a, b); });
        });
}

uint64_t both(uint32_t a, uint32_t b) { return static_cast<uint64_t>(b) << 32 | a; }

// The 64 bits b:a shifted; 32 of them remain.
void decode_funnel(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    read_three(d, s, in, Type::kB32);
    in.d = d.write(s.operands[0], Type::kB32);
    const bool left = s.has(Modifier::kL);
    if (s.has(Modifier::kWrap)) {
        in.run =
            left ? lanewise<uint32_t, uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b, uint32_t c) {
                return static_cast<uint32_t>(both(a, b) << (c & 31) >> 32);
            })
                 : lanewise<uint32_t, uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b, uint32_t c) {
                       return static_cast<uint32_t>(both(a, b) >> (c & 31));
                   });
        return;
    }
    in.run = left ? lanewise<uint32_t, uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b, uint32_t c) {
        return static_cast<uint32_t>(both(a, b) << std::min(c, 32u) >> 32);
    })
                  : lanewise<uint32_t, uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b, uint32_t c) {
                        return static_cast<uint32_t>(both(a, b) >> std::min(c, 32u));
                    });
}

// ---- three-input logic

uint32_t look_up(uint32_t a, uint32_t b, uint32_t c, uint64_t table) {
    uint32_t result = 0;
    for (uint32_t row = 0; row < 8; ++row) {
        if ((table >> row & 1) == 0) continue;
        result |= ((row & 4) != 0 ? a : ~a) & ((row & 2) != 0 ? b : ~b) & ((row & 1) != 0 ? c : ~c);
    }
    return result;
}

// count: 0, or the combination with a predicate: 1 and, 2 or. list: the result p, the source q.
void run_lop3(Execution& x, const Instruction& in) {
    const uint32_t* a = x.at<uint32_t>(in.a);
    const uint32_t* b = x.at<uint32_t>(in.b);
    const uint32_t* c = x.at<uint32_t>(in.c);
    uint32_t values[kLanes];
    for (int i = 0; i < kLanes; ++i) values[i] = look_up(a[i], b[i], c[i], in.value);
    if (in.count != 0) {
        uint32_t set = 0;
        for (int i = 0; i < kLanes; ++i) set |= values[i] != 0 ? 1u << i : 0;
        const Slot* predicates = &x.group->code->slots[in.list];
        const uint32_t q = x.predicate(predicates[1]);
        x.set_predicate(predicates[0], in.count == 1 ? set & q : set | q);
    }
    keep(x, x.at<uint32_t>(in.d), values);
}

template <uint8_t Table>
Handler common_lop3() {
    return lanewise<uint32_t, uint32_t, uint32_t, uint32_t>(
        [](uint32_t a, uint32_t b, uint32_t c) { return look_up(a, b, c, Table); });
}

void decode_lop3(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    read_three(d, s, in, Type::kB32);
    auto table = d.immediate(s.operands[4]);
    if (!table || *table > 255) return d.refuse("the truth table must be a constant from 0 to 255");
    in.value = *table;
    in.run = run_lop3;
    if (s.operands.size() == 5) {
        in.d = d.write(s.operands[0], Type::kB32);
        if (*table == 0x96) in.run = common_lop3<0x96>();  // a ^ b ^ c
        if (*table == 0xe8) in.run = common_lop3<0xe8>();  // majority
        if (*table == 0xca) in.run = common_lop3<0xca>();  // a ? b : c
        return;
    }
    in.count = s.has(Modifier::kAnd) ? 1 : 2;
    const Slot q = d.read_predicate(s.operands[5]);
    auto [value, p] = d.write_pair(s.operands[0], Type::kB32, false);
    in.d = value;
    in.list = d.list({p, q});
}

// ---- bytes

uint32_t byte_of(uint64_t bytes, uint32_t index) {
    return static_cast<uint32_t>(bytes >> (8 * (index & 7)) & 0xff);
}

uint32_t permute(uint32_t a, uint32_t b, uint32_t c) {
    const uint64_t bytes = both(a, b);
    uint32_t result = 0;
    for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t control = c >> (4 * i) & 0xf;
        uint32_t value = byte_of(bytes, control);
        if ((control & 8) != 0) value = (value & 0x80) != 0 ? 0xff : 0;
        result |= value << (8 * i);
    }
    return result;
}

// The special modes: which byte goes to each place, highest first, for each control value.
template <uint32_t C0, uint32_t C1, uint32_t C2, uint32_t C3>
Handler permute_by() {
    return lanewise<uint32_t, uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b, uint32_t c) {
        constexpr uint32_t controls[] = {C0, C1, C2, C3};
        return permute(a, b, controls[c & 3]);
    });
}

void decode_prmt(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    read_three(d, s, in, Type::kB32);
    in.d = d.write(s.operands[0], Type::kB32);
    in.run = lanewise<uint32_t, uint32_t, uint32_t, uint32_t>(
        [](uint32_t a, uint32_t b, uint32_t c) { return permute(a, b, c); });
    if (s.has(Modifier::kF4e)) in.run = permute_by<0x3210, 0x4321, 0x5432, 0x6543>();
    if (s.has(Modifier::kB4e)) in.run = permute_by<0x5670, 0x6701, 0x7012, 0x0123>();
    if (s.has(Modifier::kRc8)) in.run = permute_by<0x0000, 0x1111, 0x2222, 0x3333>();
    if (s.has(Modifier::kEcl)) in.run = permute_by<0x3210, 0x3211, 0x3222, 0x3333>();
    if (s.has(Modifier::kEcr)) in.run = permute_by<0x0000, 0x1110, 0x2210, 0x3210>();
    if (s.has(Modifier::kRc16)) in.run = permute_by<0x1010, 0x3232, 0x1010, 0x3232>();
}

}  // namespace

void add_bits(std::vector<Row>& rows) {
    const char* family = "Logic, shifts and bytes";
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
    row(Opcode::kAnd, "", "", "b16 b32 b64", decode_and);
    row(Opcode::kOr, "", "", "b16 b32 b64", decode_or);
    row(Opcode::kXor, "", "", "b16 b32 b64", decode_xor);
    row(Opcode::kNot, "", "", "b16 b32 b64", decode_not);
    for (Opcode opcode : {Opcode::kAnd, Opcode::kOr, Opcode::kXor, Opcode::kNot})
        row(opcode, "", "", "pred", decode_predicate_logic);
    row(Opcode::kCnot, "", "", "b16 b32 b64", decode_cnot);
    row(Opcode::kShl, "", "", "b16 b32 b64", decode_shift);
    row(Opcode::kShr, "", "", "b16 b32 b64 u16 u32 u64 s16 s32 s64", decode_shift);
    row(Opcode::kShf, "", "l r clamp wrap", "b32", decode_funnel);
    row(Opcode::kLop3, "", "and or", "b32", decode_lop3);
    row(Opcode::kPrmt, "", "f4e b4e rc8 ecl ecr rc16", "b32", decode_prmt);
}

}  // namespace smt::runtime::device::simulated
