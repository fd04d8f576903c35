// Selection: one of two values.
#include "runtime/device/simulated/exec/families/floating.h"

namespace smt::runtime::device::simulated {
namespace {

template <class T>
void run_selp(Execution& x, const Instruction& in) {
    const T* a = x.at<T>(in.a);
    const T* b = x.at<T>(in.b);
    const uint32_t p = x.predicate(in.c);
    T values[kLanes];
    for (int i = 0; i < kLanes; ++i) values[i] = (p >> i & 1) != 0 ? a[i] : b[i];
    keep(x, x.at<T>(in.d), values);
}

void decode_selp(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    read_two(d, s, in, s.types[0]);
    in.c = d.read_predicate(s.operands[3]);
    in.d = d.write(s.operands[0], s.types[0]);
    in.run = for_bits(s.types[0], []<class T>() -> Handler { return run_selp<T>; });
}

void decode_slct(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    if (s.types.size() != 2) return d.refuse("two types belong here");
    read_two(d, s, in, s.types[0]);
    in.c = d.read(s.operands[3], s.types[1]);
    in.d = d.write(s.operands[0], s.types[0]);
    const bool single = s.types[1] == Type::kF32;
    const bool ftz = s.has(Modifier::kFtz);
    in.run = for_bits(s.types[0], [single, ftz]<class T>() -> Handler {
        if (!single) return lanewise<T, T, T, int32_t>([](T a, T b, int32_t c) { return c >= 0 ? a : b; });
        if (ftz) return lanewise<T, T, T, float>([](T a, T b, float c) { return flush(c) >= 0 ? a : b; });
        return lanewise<T, T, T, float>([](T a, T b, float c) { return c >= 0 ? a : b; });
    });
}

}  // namespace

void add_select(std::vector<Row>& rows) {
    const auto row = [&](Opcode opcode, const char* allowed, const char* first, const char* second,
                         auto decode) {
        rows.push_back({"Selection",
                        opcode,
                        {},
                        modifiers(allowed),
                        types(first),
                        types(second),
                        Unit::kInteger,
                        decode,
                        ""});
    };
    row(Opcode::kSelp, "", "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64", "", decode_selp);
    row(Opcode::kSlct, "ftz", "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64", "s32 f32", decode_slct);
}

}  // namespace smt::runtime::device::simulated
