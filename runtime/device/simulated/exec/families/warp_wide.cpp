// Instructions that the threads of a warp execute together: shuffles, votes, matches, reductions.
// Each is three functions: what a thread brings, what comes out, what a thread takes home.
#include <algorithm>

#include "runtime/device/simulated/exec/families/floating.h"
#include "runtime/device/simulated/exec/families/synchronization.h"

namespace smt::runtime::device::simulated {
namespace {

// Where the operands are: a and b, c of the instruction; list: a predicate source or result.
Slot listed(const Execution& x, const Instruction& in) { return x.group->code->slots[in.list]; }

template <class T>
void gather_value(Execution& x, const Instruction& in, Exchange& e) {
    const T* a = x.at<T>(in.a);
    for_lanes(x.mask, [&](int i) { e.a[static_cast<size_t>(i)] = static_cast<uint64_t>(a[i]); });
}

void scatter_word(Execution& x, const Instruction& in, const Exchange& e) {
    if (in.d == kSink) return;
    uint32_t* d = x.at<uint32_t>(in.d);
    for_lanes(x.mask, [&](int i) { d[i] = static_cast<uint32_t>(e.d[static_cast<size_t>(i)]); });
}

// A thread that is not in the mask it names: undefined in PTX, an illegal instruction on an H100.
bool is_outsider(const uint32_t* members, int lane) { return (members[lane] >> lane & 1) == 0; }

// All participants of an instruction without .sync are the active threads.
void run_warp_wide(Execution& x, const Instruction& in) {
    const Collective& collective = collective_of(in);
    if (in.count == 0) return x.cta->run_collective(x, in, collective, x.mask);
    const Slot slot = x.group->code->slots[in.list + in.count];
    const uint32_t* const members = x.at<uint32_t>(slot);
    int outsider = -1;
    for_lanes(x.mask, [&](int lane) {
        if (outsider < 0 && is_outsider(members, lane)) outsider = lane;
    });
    if (outsider >= 0)
        return x.cta->fail(x, Fault::Kind::kBadBarrier, outsider, Space::kNone, 0, 0,
                           "a thread outside the mask of its own warp-wide operation");
    x.cta->run_collective(x, in, collective, x.uniform<uint32_t>(slot));
}

void set_collective(Instruction& in, const Collective& collective) {
    in.run = run_warp_wide;
    in.value = reinterpret_cast<uint64_t>(&collective);
}

// ---- shfl: target is the mode

enum Mode : uint32_t { kUp, kDown, kBfly, kIdx };

void gather_shuffle(Execution& x, const Instruction& in, Exchange& e) {
    gather_value<uint32_t>(x, in, e);
    const uint32_t* b = x.at<uint32_t>(in.b);
    const uint32_t* c = x.at<uint32_t>(in.c);
    for_lanes(x.mask, [&](int i) {
        e.b[static_cast<size_t>(i)] = b[i];
        e.c[static_cast<size_t>(i)] = c[i];
    });
}

int source_lane(uint32_t mode, int lane, int by, int bound, bool* in_range) {
    int from = 0;
    switch (mode) {
        case kUp:
            from = lane - by;
            break;
        case kDown:
            from = lane + by;
            break;
        case kBfly:
            from = lane ^ by;
            break;
        default:
            from = by;
            break;
    }
    *in_range = mode == kUp ? from >= bound : from <= bound;
    return *in_range ? from : lane;
}

void compute_shuffle(const Instruction& in, Exchange& e) {
    for_lanes(e.lanes, [&](int lane) {
        const auto i = static_cast<size_t>(lane);
        const uint32_t clamp = e.c[i] & 31;
        const uint32_t segment = e.c[i] >> 8 & 31;
        const uint32_t least = static_cast<uint32_t>(lane) & segment;
        const uint32_t bound = least | (clamp & ~segment);
        uint32_t by = e.b[i] & 31;
        if (in.target == kIdx) by = least | (by & ~segment);
        bool in_range = false;
        int from = source_lane(in.target, lane, static_cast<int>(by), static_cast<int>(bound), &in_range);
        // The value of a thread that takes no part is undefined; we give the reader's own.
        if ((e.lanes >> from & 1) == 0) from = lane;
        e.d[i] = e.a[static_cast<size_t>(from)];
        if (in_range) e.results |= 1u << lane;
    });
}

void scatter_shuffle(Execution& x, const Instruction& in, const Exchange& e) {
    x.set_predicate(listed(x, in), e.results);
    scatter_word(x, in, e);
}

constexpr Collective kShuffle{gather_shuffle, compute_shuffle, scatter_shuffle};

// Lists: [predicate, members]; count 1 says where the members are, 0 that there are none.
void finish_list(Decoder& d, Instruction& in, Slot first, const ptx::Operand* members) {
    std::vector<Slot> slots{first};
    if (members != nullptr) {
        slots.push_back(d.read(*members, Type::kB32));
        in.count = 1;
    }
    in.list = d.list(slots);
}

void decode_shfl(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    const bool sync = s.has(Modifier::kSync);
    if (s.operands.size() != (sync ? 5u : 4u)) return d.refuse("the number of operands does not fit");
    in.target = s.has(Modifier::kUp)     ? kUp
                : s.has(Modifier::kDown) ? kDown
                : s.has(Modifier::kBfly) ? kBfly
                                         : kIdx;
    read_three(d, s, in, Type::kB32);
    auto [value, predicate] = d.write_pair(s.operands[0], Type::kB32, false);
    in.d = value;
    finish_list(d, in, predicate, sync ? &s.operands[4] : nullptr);
    set_collective(in, kShuffle);
}

// ---- vote

enum Vote : uint32_t { kAllOf, kAnyOf, kUniform, kBallot };

void gather_vote(Execution& x, const Instruction& in, Exchange& e) {
    e.predicates |= x.predicate(in.a) & x.mask;
}

void compute_vote(const Instruction& in, Exchange& e) {
    bool result = false;
    switch (in.target) {
        case kAllOf:
            result = e.predicates == e.lanes;
            break;
        case kAnyOf:
            result = e.predicates != 0;
            break;
        case kUniform:
            result = e.predicates == 0 || e.predicates == e.lanes;
            break;
        default:
            break;
    }
    e.results = result ? kAll : 0;
    e.d.fill(e.predicates);
}

void scatter_vote(Execution& x, const Instruction& in, const Exchange& e) {
    if (in.target == kBallot)
        scatter_word(x, in, e);
    else
        x.set_predicate(in.d, e.results);
}

constexpr Collective kVote{gather_vote, compute_vote, scatter_vote};

void decode_vote(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    const bool sync = s.has(Modifier::kSync);
    if (s.operands.size() != (sync ? 3u : 2u)) return d.refuse("the number of operands does not fit");
    const bool ballot = s.has(Modifier::kBallot);
    if (ballot != (s.types[0] == Type::kB32)) return d.refuse("the type does not fit the mode");
    in.target = ballot ? kBallot : s.has(Modifier::kAll) ? kAllOf : s.has(Modifier::kAny) ? kAnyOf : kUniform;
    in.a = d.read_predicate(s.operands[1]);
    in.d = ballot ? d.write(s.operands[0], Type::kB32) : d.write_predicate(s.operands[0]);
    finish_list(d, in, kSink, sync ? &s.operands[2] : nullptr);
    set_collective(in, kVote);
}

// ---- match

void compute_match_any(const Instruction&, Exchange& e) {
    for_lanes(e.lanes, [&](int i) {
        uint32_t same = 0;
        for_lanes(e.lanes, [&](int k) {
            same |= e.a[static_cast<size_t>(k)] == e.a[static_cast<size_t>(i)] ? 1u << k : 0;
        });
        e.d[static_cast<size_t>(i)] = same;
    });
}

void compute_match_all(const Instruction&, Exchange& e) {
    const uint64_t first = e.a[static_cast<size_t>(std::countr_zero(e.lanes))];
    bool all = true;
    for_lanes(e.lanes, [&](int i) { all &= e.a[static_cast<size_t>(i)] == first; });
    e.d.fill(all ? e.lanes : 0);
    e.results = all ? kAll : 0;
}

constexpr Collective kMatchAny32{gather_value<uint32_t>, compute_match_any, scatter_shuffle};
constexpr Collective kMatchAny64{gather_value<uint64_t>, compute_match_any, scatter_shuffle};
constexpr Collective kMatchAll32{gather_value<uint32_t>, compute_match_all, scatter_shuffle};
constexpr Collective kMatchAll64{gather_value<uint64_t>, compute_match_all, scatter_shuffle};

void decode_match(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    in.a = d.read(s.operands[1], s.types[0]);
    auto [value, predicate] = d.write_pair(s.operands[0], Type::kB32, false);
    in.d = value;
    finish_list(d, in, predicate, &s.operands[2]);
    const bool wide = ptx::bits(s.types[0]) == 64;
    if (s.has(Modifier::kAny))
        set_collective(in, wide ? kMatchAny64 : kMatchAny32);
    else
        set_collective(in, wide ? kMatchAll64 : kMatchAll32);
}

// ---- redux

template <class T, class F>
void compute_reduction(const Instruction&, Exchange& e) {
    bool first = true;
    T result{};
    for_lanes(e.lanes, [&](int i) {
        const T value = static_cast<T>(e.a[static_cast<size_t>(i)]);
        result = first ? value : F{}(result, value);
        first = false;
    });
    e.d.fill(static_cast<uint32_t>(result));
}

template <class T, class F>
constexpr Collective kReduction{gather_value<uint32_t>, compute_reduction<T, F>, scatter_word};

using Sum = decltype([](uint32_t a, uint32_t b) { return a + b; });
using LanesAnd = decltype([](uint32_t a, uint32_t b) { return a & b; });
using LanesOr = decltype([](uint32_t a, uint32_t b) { return a | b; });
using LanesXor = decltype([](uint32_t a, uint32_t b) { return a ^ b; });
using Least = decltype([](auto a, auto b) { return std::min(a, b); });
using Most = decltype([](auto a, auto b) { return std::max(a, b); });

void decode_redux(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    in.a = d.read(s.operands[1], s.types[0]);
    in.d = d.write(s.operands[0], s.types[0]);
    finish_list(d, in, kSink, &s.operands[2]);
    const bool is_signed = s.types[0] == Type::kS32;
    if (s.has(Modifier::kAdd))
        set_collective(in, kReduction<uint32_t, Sum>);
    else if (s.has(Modifier::kAnd))
        set_collective(in, kReduction<uint32_t, LanesAnd>);
    else if (s.has(Modifier::kOr))
        set_collective(in, kReduction<uint32_t, LanesOr>);
    else if (s.has(Modifier::kXor))
        set_collective(in, kReduction<uint32_t, LanesXor>);
    else if (s.has(Modifier::kMin))
        set_collective(in, is_signed ? kReduction<int32_t, Least> : kReduction<uint32_t, Least>);
    else
        set_collective(in, is_signed ? kReduction<int32_t, Most> : kReduction<uint32_t, Most>);
}

// ---- elect, activemask, bar.warp.sync

void compute_election(const Instruction&, Exchange& e) {
    const int leader = std::countr_zero(e.lanes);
    e.d.fill(static_cast<uint64_t>(leader));
    e.results = 1u << leader;
}

void gather_nothing(Execution&, const Instruction&, Exchange&) {}
void compute_nothing(const Instruction&, Exchange&) {}
void scatter_nothing(Execution&, const Instruction&, const Exchange&) {}

constexpr Collective kElection{gather_nothing, compute_election, scatter_shuffle};
constexpr Collective kMeeting{gather_nothing, compute_nothing, scatter_nothing};

void decode_elect(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    auto [value, predicate] = d.write_pair(s.operands[0], Type::kB32, false);
    in.d = value;
    finish_list(d, in, predicate, &s.operands[1]);
    set_collective(in, kElection);
}

void decode_activemask(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    in.d = d.write(s.operands[0], Type::kB32);
    in.run = [](Execution& x, const Instruction& i) {
        for_lanes(x.mask, [&](int lane) { x.at<uint32_t>(i.d)[lane] = x.mask; });
    };
}

void decode_warp_barrier(Decoder& d, const ptx::Instruction& s, Instruction& in) {
    finish_list(d, in, kSink, &s.operands[0]);
    set_collective(in, kMeeting);
}

}  // namespace

void add_warp_wide(std::vector<Row>& rows) {
    const char* family = "Within a warp";
    const auto row = [&](Opcode opcode, const char* required, const char* allowed, const char* first,
                         auto decode, Unit unit = Unit::kInteger) {
        rows.push_back(
            {family, opcode, modifiers(required), modifiers(allowed), types(first), {}, unit, decode, ""});
    };
    row(Opcode::kShfl, "", "sync up down bfly idx", "b32", decode_shfl);
    row(Opcode::kVote, "", "sync all any uni", "pred", decode_vote);
    row(Opcode::kVote, "ballot", "sync", "b32", decode_vote);
    row(Opcode::kMatch, "any sync", "", "b32 b64", decode_match);
    row(Opcode::kMatch, "all sync", "", "b32 b64", decode_match);
    row(Opcode::kRedux, "sync", "add min max", "u32 s32", decode_redux);
    row(Opcode::kRedux, "sync", "and or xor", "b32", decode_redux);
    row(Opcode::kElect, "sync", "", "", decode_elect);
    row(Opcode::kActivemask, "", "", "b32", decode_activemask);
    row(Opcode::kBar, "warp sync", "", "", decode_warp_barrier, Unit::kBarrier);
}

}  // namespace smt::runtime::device::simulated
