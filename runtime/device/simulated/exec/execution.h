// What a handler sees: the operands of one warp and everything around it. Handlers are free functions
// made from small functions on one lane:
//
//   in.run = lanewise<uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b) { return a + b; });
//
// computes all 32 lanes and keeps those of the active threads, so a lane's function must be harmless
// on any value; what may fault or has an effect walks active lanes itself (for_lanes).
#pragma once

#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "runtime/device/simulated/exec/code.h"

namespace smt::runtime::device::simulated {

struct Warp;
struct Group;

struct Execution {
    std::array<std::byte*, 4> bases{};  // by Slot::Base
    uint32_t mask = 0;                  // lanes that execute: active and past the guard
    Warp* warp = nullptr;
    Group* group = nullptr;
    Cta::State* cta = nullptr;
    Step step;          // filled in by handlers that know more than the decoder
    bool left = false;  // the handler has settled where the group goes on

    template <class T>
    T* at(Slot slot) const {
        return reinterpret_cast<T*>(bases[slot.word >> 29] + slot.offset());
    }
    uint32_t& predicate(Slot slot) const { return *at<uint32_t>(slot); }
    void set_predicate(Slot slot, uint32_t value) const {
        if (slot == kSink) return;
        uint32_t& old = predicate(slot);
        old = (old & ~mask) | (value & mask);
    }
    template <class T>
    T uniform(Slot slot) const {  // of the first active lane
        return at<T>(slot)[std::countr_zero(mask)];
    }
};

template <class F>
void for_lanes(uint32_t mask, F&& f) {
    for (; mask != 0; mask &= mask - 1) f(std::countr_zero(mask));
}

template <class T>
void keep(const Execution& x, T* to, const T* values) {
    if (x.mask == kAll) {
        std::memcpy(to, values, sizeof(T) * kLanes);
        return;
    }
    for (int i = 0; i < kLanes; ++i) to[i] = (x.mask >> i & 1) != 0 ? values[i] : to[i];
}

namespace detail {

// Operands are a, b, c of the instruction, in order.
template <class D, class F, class... S, size_t... I>
void lanewise(Execution& x, const Instruction& in, std::index_sequence<I...>) {
    const Slot slots[] = {in.a, in.b, in.c};
    D* d = x.at<D>(in.d);
    const auto run = [&](D* to, const S*... s) {
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
        for (int i = 0; i < kLanes; ++i) to[i] = F{}(s[i]...);
    };
    if (x.mask == kAll) {
        run(d, x.at<const S>(slots[I])...);
        return;
    }
    alignas(64) D values[kLanes];
    run(values, x.at<const S>(slots[I])...);
    keep(x, d, values);
}

// The same for a predicate result.
template <class F, class... S, size_t... I>
uint32_t lane_mask(Execution& x, const Instruction& in, std::index_sequence<I...>) {
    const Slot slots[] = {in.a, in.b, in.c};
    const auto run = [&](const S*... s) {
        alignas(64) uint32_t bits[kLanes];
        for (int i = 0; i < kLanes; ++i) bits[i] = F{}(s[i]...) ? 1u << i : 0u;
        uint32_t mask = 0;
        for (int i = 0; i < kLanes; ++i) mask |= bits[i];
        return mask;
    };
    return run(x.at<const S>(slots[I])...);
}

}  // namespace detail

template <class D, class... S, class F>
constexpr Handler lanewise(F) {
    return [](Execution& x, const Instruction& in) {
        detail::lanewise<D, F, S...>(x, in, std::index_sequence_for<S...>{});
    };
}

}  // namespace smt::runtime::device::simulated
