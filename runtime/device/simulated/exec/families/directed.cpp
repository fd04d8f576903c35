// Rounding toward zero, down and up: the host's floating-point unit in another mode for the length of
// one instruction (Instruction::target holds the mode). This file is compiled with -frounding-math;
// the barriers keep arithmetic between the two changes of the mode.
#include <cfenv>

#include "runtime/device/simulated/exec/families/floating.h"

namespace smt::runtime::device::simulated {
namespace {

struct Add {
    template <class T>
    T operator()(T a, T b, T) const {
        return a + b;
    }
};
struct Sub {
    template <class T>
    T operator()(T a, T b, T) const {
        return a - b;
    }
};
struct Mul {
    template <class T>
    T operator()(T a, T b, T) const {
        return a * b;
    }
};
struct Fma {
    template <class T>
    T operator()(T a, T b, T c) const {
        return std::fma(a, b, c);
    }
};
struct Div {
    template <class T>
    T operator()(T a, T b, T) const {
        return a / b;
    }
};
struct Rcp {
    template <class T>
    T operator()(T a, T, T) const {
        return T{1} / a;
    }
};
struct Sqrt {
    template <class T>
    T operator()(T a, T, T) const {
        return std::sqrt(a);
    }
};

template <class T, class F, bool Ftz, bool Sat>
[[gnu::noinline]] void run(Execution& x, const Instruction& in) {
    const T* a = x.at<T>(in.a);
    const T* b = in.count > 1 ? x.at<T>(in.b) : a;
    const T* c = in.count > 2 ? x.at<T>(in.c) : a;
    T values[kLanes];
    std::fesetround(static_cast<int>(in.target));
    asm volatile("" ::: "memory");
    for (int i = 0; i < kLanes; ++i) values[i] = F{}(take<Ftz>(a[i]), take<Ftz>(b[i]), take<Ftz>(c[i]));
    asm volatile("" ::"r"(values) : "memory");
    std::fesetround(FE_TONEAREST);
    for (int i = 0; i < kLanes; ++i) values[i] = finish<Ftz, Sat>(values[i]);
    keep(x, x.at<T>(in.d), values);
}

template <class F>
Handler pick(Type type, bool ftz, bool sat) {
    if (type == Type::kF64) return run<double, F, false, false>;
    if (ftz) return sat ? run<float, F, true, true> : run<float, F, true, false>;
    return sat ? run<float, F, false, true> : run<float, F, false, false>;
}

}  // namespace

Handler directed(Opcode opcode, Type type, bool ftz, bool sat) {
    switch (opcode) {
        case Opcode::kAdd:
            return pick<Add>(type, ftz, sat);
        case Opcode::kSub:
            return pick<Sub>(type, ftz, sat);
        case Opcode::kMul:
            return pick<Mul>(type, ftz, sat);
        case Opcode::kMad:
        case Opcode::kFma:
            return pick<Fma>(type, ftz, sat);
        case Opcode::kDiv:
            return pick<Div>(type, ftz, sat);
        case Opcode::kRcp:
            return pick<Rcp>(type, ftz, sat);
        case Opcode::kSqrt:
            return pick<Sqrt>(type, ftz, sat);
        default:
            return nullptr;
    }
}

}  // namespace smt::runtime::device::simulated
