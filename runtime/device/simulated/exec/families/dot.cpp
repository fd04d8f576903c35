// Dot products of small integers.
#include "runtime/device/simulated/exec/families/lanes.h"

namespace smt::runtime::device::simulated {
namespace {

template <bool Signed>
int32_t byte(uint32_t value, int i) {
    const uint32_t bits = value >> (8 * i) & 0xff;
    return Signed ? static_cast<int8_t>(bits) : static_cast<int32_t>(bits);
}

template <bool Signed>
int32_t half(uint32_t value, int i) {
    const uint32_t bits = value >> (16 * i) & 0xffff;
    return Signed ? static_cast<int16_t>(bits) : static_cast<int32_t>(bits);
}

template <bool A, bool B>
Handler dot4() {
    return lanewise<uint32_t, uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b, uint32_t c) {
        for (int i = 0; i < 4; ++i) c += static_cast<uint32_t>(byte<A>(a, i) * byte<B>(b, i));
        return c;
    });
}

template <bool A, bool B, int From>
Handler dot2() {
    return lanewise<uint32_t, uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b, uint32_t c) {
        for (int i = 0; i < 2; ++i)
            c += static_cast<uint32_t>(half<A>(a, i)) * static_cast<uint32_t>(byte<B>(b, From + i));
        return c;
    });
}

void decode_dot(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (s.types.size() != 2) return d.refuse("two types belong here");
    read_three(d, s, in, Type::kB32);
    in.d = d.write(s.operands[0], Type::kB32);
    const bool a = s.types[0] == Type::kS32;
    const bool b = s.types[1] == Type::kS32;
    if (s.opcode == Opcode::kDp4a) {
        in.run = a ? (b ? dot4<true, true>() : dot4<true, false>())
                   : (b ? dot4<false, true>() : dot4<false, false>());
        return;
    }
    if (s.has(Modifier::kHi))
        in.run = a ? (b ? dot2<true, true, 2>() : dot2<true, false, 2>())
                   : (b ? dot2<false, true, 2>() : dot2<false, false, 2>());
    else
        in.run = a ? (b ? dot2<true, true, 0>() : dot2<true, false, 0>())
                   : (b ? dot2<false, true, 0>() : dot2<false, false, 0>());
}

}  // namespace

void add_dot(std::vector<Row>& rows) {
    const TypeSet words = types("u32 s32");
    rows.push_back({"Dot products", Opcode::kDp4a, {}, {}, words, words, Unit::kInteger, decode_dot, ""});
    rows.push_back({"Dot products",
                    Opcode::kDp2a,
                    {},
                    modifiers("lo hi"),
                    words,
                    words,
                    Unit::kInteger,
                    decode_dot,
                    ""});
}

}  // namespace smt::runtime::device::simulated
