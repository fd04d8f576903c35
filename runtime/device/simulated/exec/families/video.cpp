// SIMD video instructions on two halves or four bytes, in their plain form: all elements in order.
#include <algorithm>

#include "runtime/device/simulated/exec/families/lanes.h"

namespace smt::runtime::device::simulated {
namespace {

// target: what to do with elements of which width and signs.
constexpr uint32_t kSignedD = 1, kSignedA = 2, kSignedB = 4, kSaturate = 8, kAccumulate = 16, kBytes = 32;
constexpr int kOperationAt = 8;

int64_t element(uint32_t value, int index, int bits, bool is_signed) {
    const uint32_t field = value >> (index * bits) & ((1u << bits) - 1);
    const int shift = 64 - bits;
    return is_signed ? static_cast<int64_t>(static_cast<uint64_t>(field) << shift) >> shift
                     : static_cast<int64_t>(field);
}

int64_t operate_video(Opcode opcode, int64_t a, int64_t b) {
    switch (opcode) {
        case Opcode::kVadd2:
        case Opcode::kVadd4:
            return a + b;
        case Opcode::kVsub2:
        case Opcode::kVsub4:
            return a - b;
        case Opcode::kVavrg2:
        case Opcode::kVavrg4:
            return a + b >= 0 ? (a + b + 1) >> 1 : (a + b) >> 1;
        case Opcode::kVabsdiff2:
        case Opcode::kVabsdiff4:
            return a < b ? b - a : a - b;
        case Opcode::kVmin2:
        case Opcode::kVmin4:
            return std::min(a, b);
        default:
            return std::max(a, b);
    }
}

int64_t saturate_video(int64_t value, int bits, bool is_signed) {
    const int64_t most = is_signed ? (1ll << (bits - 1)) - 1 : (1ll << bits) - 1;
    const int64_t least = is_signed ? -(1ll << (bits - 1)) : 0;
    return std::clamp(value, least, most);
}

uint32_t on_word(uint32_t target, uint32_t a, uint32_t b, uint32_t c) {
    const auto opcode = static_cast<Opcode>(target >> kOperationAt);
    const int bits = (target & kBytes) != 0 ? 8 : 16;
    const bool accumulate = (target & kAccumulate) != 0;
    uint32_t result = accumulate ? c : 0;
    for (int i = 0; i * bits < 32; ++i) {
        int64_t value = operate_video(opcode, element(a, i, bits, (target & kSignedA) != 0),
                                      element(b, i, bits, (target & kSignedB) != 0));
        if ((target & kSaturate) != 0) value = saturate_video(value, bits, (target & kSignedD) != 0);
        if (accumulate)
            result += static_cast<uint32_t>(value);
        else
            result |= (static_cast<uint32_t>(value) & ((1u << bits) - 1)) << (i * bits);
    }
    return result;
}

void run_video(Execution& x, const Instruction& in) {
    const uint32_t* a = x.at<uint32_t>(in.a);
    const uint32_t* b = x.at<uint32_t>(in.b);
    const uint32_t* c = x.at<uint32_t>(in.c);
    uint32_t values[kLanes];
    for (int i = 0; i < kLanes; ++i) values[i] = on_word(in.target, a[i], b[i], c[i]);
    keep(x, x.at<uint32_t>(in.d), values);
}

void decode_video(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (s.types.size() != 3) return d.refuse("three types belong here");
    for (const ptx::Operand& operand : s.operands)
        if (!operand.selector.empty() || operand.minus)
            return d.refuse("selected elements are not supported");
    read_three(d, s, in, Type::kB32);
    in.d = d.write(s.operands[0], Type::kB32);
    const bool bytes = std::string_view(ptx::name(s.opcode)).back() == '4';
    in.target = static_cast<uint32_t>(s.opcode) << kOperationAt | (bytes ? kBytes : 0) |
                (s.has(Modifier::kSat) ? kSaturate : 0) | (s.has(Modifier::kAdd) ? kAccumulate : 0) |
                (s.types[0] == Type::kS32 ? kSignedD : 0) | (s.types[1] == Type::kS32 ? kSignedA : 0) |
                (s.types[2] == Type::kS32 ? kSignedB : 0);
    in.run = run_video;
}

}  // namespace

void add_video(std::vector<Row>& rows) {
    const TypeSet words = types("u32 s32");
    for (Opcode opcode : {Opcode::kVadd2, Opcode::kVsub2, Opcode::kVavrg2, Opcode::kVabsdiff2, Opcode::kVmin2,
                          Opcode::kVmax2, Opcode::kVadd4, Opcode::kVsub4, Opcode::kVavrg4, Opcode::kVabsdiff4,
                          Opcode::kVmin4, Opcode::kVmax4})
        rows.push_back({"SIMD video",
                        opcode,
                        {},
                        modifiers("sat add"),
                        words,
                        words,
                        Unit::kInteger,
                        decode_video,
                        "without selectors and masks"});
}

}  // namespace smt::runtime::device::simulated
